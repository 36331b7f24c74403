"""The judgement on what holds a link back, and the loss without its source."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from barnabas.mirror.fetch_times import FetchTimes, Part, summed
from barnabas.mirror.status import LinkStatus, LinkTimes, PartitionStatus, decode_link, encode
from barnabas.mirror.why import Holder, Loss, Times, Verdict, all_times, loss_of, verdict

EQUAL = PartitionStatus(
    topic="orders",
    partition=0,
    state="mirroring",
    start_offset=0,
    end_offset=10,
    source_end_offset=10,
    lag=0,
    lag_ms=0,
    reason="",
    producer_id_end=0,
    lag_bytes=0,
    silent_ms=300,
)
BEHIND = replace(EQUAL, end_offset=5, lag=5, lag_ms=2500, lag_bytes=500)


def times(round_trip_ms: float = 0.2, size: float = 1e9, **seconds: float) -> Times:
    return all_times([LinkTimes(seconds=seconds, bytes=int(size), fetchers=2, round_trip_ms=round_trip_ms, window_s=30.0)])


def judge(
    *partitions: PartitionStatus, found: Times | None = None, errors: tuple[str, ...] = (), is_paused: bool = False
) -> Verdict:
    return verdict(is_paused=is_paused, errors=errors, partitions=partitions, times=found or times(idle=60.0))


def test_the_loss_is_a_sum_and_the_longest_time() -> None:
    assert loss_of([EQUAL, BEHIND, BEHIND]) == Loss(10, 1000, 2500)
    assert loss_of([EQUAL]) == Loss(0, 0, 300)
    assert loss_of([]) == Loss(0, 0, 0)


def test_a_loss_is_unknown_until_the_source_has_told() -> None:
    assert loss_of([EQUAL, replace(EQUAL, lag=-1, lag_bytes=-1, silent_ms=-1)]) == Loss(-1, -1, -1)


@pytest.mark.parametrize(
    ("part", "holder", "text"),
    [
        ("source", Holder.SOURCE, "its answers begin late, 75% of the time, at 33.3 MB/s"),
        ("line", Holder.LINE, "over 2 connections, with a round trip of 0.2 ms"),
        ("target", Holder.TARGET, "it appends 75% of the time"),
        ("limit", Holder.LIMIT, "io.max.bytes.per.second"),
        ("error", Holder.SOURCE, "errors, 75% of the time"),
    ],
)
def test_the_largest_part_of_the_time_holds_a_copy_back(part: str, holder: Holder, text: str) -> None:
    found = judge(BEHIND, found=times(**{part: 45.0, "idle": 15.0}))
    assert found.holder is holder
    assert text in found.text


def test_a_copy_that_follows_is_not_held_back() -> None:
    assert judge(EQUAL, found=times(line=60.0)).holder is Holder.NOTHING
    assert judge(BEHIND, found=times(idle=55.0, line=5.0)) == Verdict(Holder.NOTHING, "nothing: the copies follow closely")
    assert judge().holder is Holder.NOTHING


def test_a_small_window_over_a_distance_is_told() -> None:
    small = judge(BEHIND, found=times(50.0, size=60 * 3_000_000, line=60.0))
    assert "one connection has only 150 kB on its way: set socket.send.buffer.bytes=-1 in the source" in small.text
    assert "socket.send.buffer.bytes" not in judge(BEHIND, found=times(50.0, size=60 * 30_000_000, line=60.0)).text
    assert "socket.send.buffer.bytes" not in judge(BEHIND, found=times(0.2, size=60 * 3_000_000, line=60.0)).text


@pytest.mark.parametrize(
    ("given", "holder"),
    [
        ({"is_paused": True}, Holder.LIMIT),
        ({"errors": ("no connection",)}, Holder.SOURCE),
    ],
)
def test_a_pause_and_errors_come_before_times(given: dict[str, Any], holder: Holder) -> None:
    assert judge(BEHIND, found=times(target=60.0), **given).holder is holder


@pytest.mark.parametrize(
    ("reason", "state", "holder"),
    [
        ("fewer than min.insync.replicas are in sync here", "mirroring", Holder.TARGET),
        ("the disk does not take the records", "mirroring", Holder.TARGET),
        ("the source has other records at offset 5", "stopped", Holder.COPIES),
        ("the source answers TOPIC_AUTHORIZATION_FAILED", "mirroring", Holder.SOURCE),
    ],
)
def test_the_reason_of_a_partition_is_told(reason: str, state: str, holder: Holder) -> None:
    found = judge(EQUAL, replace(BEHIND, reason=reason, state=state))
    assert found.holder is holder
    assert reason in found.text


def test_times_of_brokers_are_added() -> None:
    first, second = FetchTimes(0.0), FetchTimes(0.0)
    first.waited(0.05, 1.0)
    first.add(Part.TARGET, 0.15, 1.0)
    first.answered(4_000_000, 1.0)
    second.add(Part.IDLE, 0.2, 1.0)
    here = summed([first, second], 2.0)
    assert decode_link(encode(LinkStatus(times=here))).times == here
    found = all_times([here, here, LinkTimes()])
    assert found.shares[Part.TARGET] == pytest.approx(0.375)
    assert found.shares[Part.LINE] == pytest.approx(0.125)
    assert found.shares[Part.IDLE] == pytest.approx(0.5)
    assert found.round_trip_ms == pytest.approx(50.0)
    assert (found.fetchers, found.bytes, found.bytes_per_s) == (4, 8_000_000, 4_000_000)
