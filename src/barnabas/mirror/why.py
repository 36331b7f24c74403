"""The judgement on what holds a link back, from the status of all brokers; and the loss if the source died now. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from barnabas.mirror.fetch_times import Part
from barnabas.mirror.status import LinkTimes, PartitionStatus

MEGA = 1_000_000
FAR_MS = 5.0  # a round trip from which on windows of TCP matter
WINDOW_BYTES = 300_000  # a connection with a send buffer of 100 kB, the default of brokers, has less than this on its way
FOLLOWS_SHARE = 0.8  # of idle time: a copy that lacks a few records at this moment follows well
UNKNOWN = -1


class Holder(Enum):
    """The part that holds a link back."""

    NOTHING = "nothing"
    SOURCE = "source"
    LINE = "line"
    TARGET = "target"
    LIMIT = "limit"
    COPIES = "copies"  # a person must act on some of them


class Verdict(NamedTuple):
    """The holder, and a sentence for an operator."""

    holder: Holder
    text: str


class Loss(NamedTuple):
    """The records that the copies would lack if the source died now; UNKNOWN (-1) where the source has not told."""

    records: int
    bytes: int
    milliseconds: int


def loss_of(partitions: Iterable[PartitionStatus]) -> Loss:
    """The recovery point of all copies together: sums, and the longest time."""
    found = list(partitions)

    def total(values: Sequence[int]) -> int:
        return UNKNOWN if any(value < 0 for value in values) else sum(values)

    times = [each.lost_ms for each in found]
    return Loss(
        total([each.lag for each in found]),
        total([each.lag_bytes for each in found]),
        UNKNOWN if any(value < 0 for value in times) else max(times, default=0),
    )


class Times(NamedTuple):
    """The times of a link on all brokers.

    Args:
        shares: of the time of all fetchers, by `Part`; they add up to 1, or to 0 without a fetcher.
    """

    shares: dict[Part, float]
    bytes_per_s: float
    line_s: float  # of fetchers, while bytes were on their way
    bytes: int
    fetchers: int
    round_trip_ms: float


def all_times(brokers: Iterable[LinkTimes]) -> Times:
    """The times of all brokers."""
    found = [each for each in brokers if each.fetchers]
    seconds = {part: sum(each.seconds.get(part.value, 0.0) for each in found) for part in Part}
    whole = sum(seconds.values())
    trips = [each.round_trip_ms for each in found if each.round_trip_ms >= 0]
    return Times(
        {part: value / whole if whole else 0.0 for part, value in seconds.items()},
        sum(each.bytes / each.window_s for each in found if each.window_s),
        seconds[Part.LINE],
        sum(each.bytes for each in found),
        sum(each.fetchers for each in found),
        min(trips, default=-1.0),
    )


def verdict(*, is_paused: bool, errors: Sequence[str], partitions: Sequence[PartitionStatus], times: Times) -> Verdict:
    """The part that holds a link back most."""
    if is_paused:
        return Verdict(Holder.LIMIT, "the link is paused")
    if errors:
        return Verdict(Holder.SOURCE, f"the source: {'; '.join(errors)}")
    reasons = sorted({each.reason for each in partitions if each.reason})
    of_target = [reason for reason in reasons if "min.insync.replicas" in reason or "the disk" in reason]
    if of_target:
        return Verdict(Holder.TARGET, f"the target: {of_target[0]}")
    stopped = [each for each in partitions if each.state == "stopped"]
    if stopped:
        return Verdict(Holder.COPIES, f"{len(stopped)} of {len(partitions)} partitions are stopped: {stopped[0].reason}")
    of_source = [reason for reason in reasons if "the source" in reason]
    if of_source:
        return Verdict(Holder.SOURCE, of_source[0])
    if not partitions:
        return Verdict(Holder.NOTHING, "there are no copies yet")
    if all(each.lag == 0 for each in partitions):
        return Verdict(Holder.NOTHING, "nothing: the copies have everything")
    if times.shares[Part.IDLE] >= FOLLOWS_SHARE:
        return Verdict(Holder.NOTHING, "nothing: the copies follow closely")
    return _of_times(times)


def _of_times(times: Times) -> Verdict:
    busy = {part: share for part, share in times.shares.items() if part is not Part.IDLE}
    part = max(busy, key=lambda each: busy[each])
    share, rate = f"{busy[part]:.0%} of the time", f"{times.bytes_per_s / MEGA:.1f} MB/s"
    if part is Part.LIMIT:
        return Verdict(Holder.LIMIT, f"a limit: io.max.bytes.per.second of the link or a quota of the source, {share}, at {rate}")
    if part is Part.TARGET:
        return Verdict(Holder.TARGET, f"the target: it appends {share}, at {rate}")
    if part is Part.ERROR:
        return Verdict(Holder.SOURCE, f"the source: errors, {share}")
    if part is Part.SOURCE:
        return Verdict(Holder.SOURCE, f"the source: its answers begin late, {share}, at {rate}")
    text = f"the line: bytes are on their way {share}, at {rate}"
    if times.round_trip_ms >= 0:
        text += f" over {times.fetchers} connections, with a round trip of {times.round_trip_ms:.1f} ms"
    window = times.bytes / times.line_s * times.round_trip_ms / 1000 if times.line_s else 0.0
    if times.round_trip_ms >= FAR_MS and 0 < window < WINDOW_BYTES:
        text += f"; one connection has only {window / 1000:.0f} kB on its way: set socket.send.buffer.bytes=-1 in the source"
    return Verdict(Holder.LINE, text)
