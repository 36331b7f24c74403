"""Meters are kept while they matter, bounded in number, and exact for those who share one."""

from __future__ import annotations

import heapq
import random

import pytest

from barnabas import limits
from barnabas.quota.entities import CONTROLLER_MUTATION_RATE, PRODUCER_BYTE_RATE
from barnabas.quota.meters import Meter, MeterKey, Meters, Span

SPAN = Span(11, 1)
QUOTA = 1_000_000.0


def key(client_id: str, quota: str = PRODUCER_BYTE_RATE) -> MeterKey:
    return MeterKey(quota, "", client_id)


def test_a_meter_is_found_again_and_takes_another_bound() -> None:
    meters = Meters(SPAN, SPAN, most=100)
    meter = meters.get(key("a"), 10.0, 0)
    assert meters.get(key("a"), 20.0, 0) is meter
    assert (meter.bound, len(meters)) == (20.0, 1)


def test_whoever_comes_anew_waits_for_what_is_owed_or_what_another_broker_told() -> None:
    meter = Meters(SPAN, SPAN, most=100).get(key("a"), 10.0, 0)
    assert meter.wait_ms(0) <= 0
    meter.take(12.5, 0)  # 2.5 of these were saved up
    assert (meter.wait_ms(0), meter.wait_ms(400)) == (1000, 600)
    meter.tell(3_000, 0)
    meter.tell(2_000, 0)
    assert meter.wait_ms(400) == 2_600
    meter.change(20.0)
    assert meter.wait_ms(400) == meter.throttle_ms(400) > 0, (
        "another bound: what is owed, and no longer what was told by that of before"
    )


def test_those_that_nobody_uses_for_long_are_forgotten() -> None:
    meters = Meters(SPAN, SPAN, most=100)
    meters.get(key("a"), 10.0, 0)
    assert not meters.expire(limits.QUOTA_METER_IDLE_MS)
    assert meters.expire(limits.QUOTA_METER_IDLE_MS + 1)
    assert len(meters) == 0


def test_too_many_make_room_or_share_one() -> None:
    meters = Meters(SPAN, SPAN, most=2)
    old, debtor = meters.get(key("old"), 10.0, 0), meters.get(key("debtor"), 10.0, 0)
    debtor.take(1e6, 0)
    late_ms = 12_000
    assert meters.get(key("new"), 10.0, late_ms).key == key("new")
    assert old not in list(meters), "nothing was known of it that mattered"
    assert debtor in list(meters), "what it owes is not forgotten"
    crowd = meters.get(key("newer"), 10.0, late_ms)
    assert meters.get(key("newest"), 10.0, late_ms) is crowd


def test_changes_of_metadata_may_use_what_all_windows_saved_up() -> None:
    meter = Meters(SPAN, Span(11, 1), most=100).get(key("a", CONTROLLER_MUTATION_RATE), 2.0, 0)
    meter.take(22, 0)
    assert meter.throttle_ms(0) == 0
    meter.take(1, 0)
    assert meter.throttle_ms(0) == 500


def test_what_is_forgiven_need_not_be_waited_for_but_was_used() -> None:
    meter = Meter(key("a"), 10.0, SPAN)
    meter.take(102.5, 0)
    assert meter.throttle_ms(0) == 10_000
    meter.forgive(9_000, 0)
    assert meter.throttle_ms(0) == 1_000
    assert meter.per_second(0) == pytest.approx(10.25)


@pytest.mark.parametrize("clients", [1, 10, 100])
@pytest.mark.parametrize("seed", range(3))
def test_those_who_share_a_quota_get_it_to_five_per_cent_over_ten_windows(clients: int, seed: int) -> None:
    """Producers in virtual time, each sending again as soon as it may; every ten windows after the first second are measured."""
    chance = random.Random(seed)
    meter = Meter(key("all"), QUOTA, SPAN)
    waiting = [(chance.uniform(0, 5), client) for client in range(clients)]
    heapq.heapify(waiting)
    sent: list[tuple[float, int]] = []
    while waiting[0][0] < 40_000:
        now_ms, client = heapq.heappop(waiting)
        size = chance.randrange(500, 20_000)
        meter.take(size, now_ms)
        sent.append((now_ms, size))
        heapq.heappush(waiting, (now_ms + meter.throttle_ms(now_ms) + chance.uniform(0.2, 2), client))
    for second in range(1, 30):
        passed = sum(size for at_ms, size in sent if second * 1_000 <= at_ms < (second + 10) * 1_000)
        assert passed == pytest.approx(10 * QUOTA, rel=0.05), second
