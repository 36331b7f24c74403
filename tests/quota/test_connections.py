"""Rates of new connections: what is saved up comes in at once, the rest at the rate."""

from __future__ import annotations

from barnabas.quota.connections import AddressRates, ConnectionRate
from barnabas.quota.meters import Span

SPAN = Span(5, 1)


def test_connections_beyond_what_was_saved_up_come_in_one_after_the_other() -> None:
    rate = ConnectionRate(2, SPAN)
    assert [rate.enter(0) for _ in range(12)] == [0] * 10 + [500, 1_000]
    assert [rate.enter(2_000) for _ in range(3)] == [0, 0, 500]


def test_an_address_over_its_rate_is_told_when_there_is_room() -> None:
    rates = AddressRates(SPAN, most=100)
    assert [rates.wait_ms("a", 2, 0) for _ in range(11)] == [0] * 10 + [500]
    assert rates.wait_ms("a", 2, 200) == 300, "one that is refused is not counted"
    assert rates.wait_ms("b", 2, 200) == 0
    assert rates.wait_ms("a", 2, 500) == 0


def test_addresses_without_number_are_forgotten() -> None:
    rates = AddressRates(SPAN, most=2)
    rates.wait_ms("a", 2, 0)
    rates.wait_ms("b", 2, 0)
    rates.wait_ms("c", 2, 10_000)
    assert len(rates) == 1, "nothing was known of the others that mattered"
    rates.wait_ms("d", 2, 10_000)
    rates.wait_ms("e", 2, 10_000)
    assert len(rates) == 2
