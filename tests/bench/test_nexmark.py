"""Nexmark: the events are as specified, and each query as a view equals the query."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from itertools import islice, pairwise
from typing import Any

import pytest
from bench.nexmark import generator
from bench.nexmark.generator import ACTIVE_PERSONS, AUCTIONS_IN_FLIGHT, CYCLE, FIRST_ID, HOT_STEP, LEAD, events
from bench.nexmark.queries import TABLES, queries

from tests.sql.continuous.harness import Row, Rows, table, watched

COUNT = 50 * 200


@pytest.fixture(scope="module")
def made() -> list[generator.Event]:
    return list(events(COUNT))


def test_streams_take_turns(made: list[generator.Event]) -> None:
    cycle = ["person", *["auction"] * 3, *["bid"] * 46]
    assert [each.stream for each in made[: 2 * CYCLE]] == cycle * 2
    assert [each.at_ms - made[0].at_ms for each in made[:30:10]] == [0, 1, 2]
    assert all(a.at_ms <= b.at_ms for a, b in pairwise(made))
    assert list(events(100)) == made[:100]
    assert list(events(100, seed=2)) != made[:100]


def test_ids_follow_each_other(made: list[generator.Event]) -> None:
    for stream in ("person", "auction"):
        ids = [each.row["id"] for each in made if each.stream == stream]
        assert ids == list(range(FIRST_ID, FIRST_ID + len(ids)))


def test_bids_name_what_is_active_or_soon(made: list[generator.Event]) -> None:
    persons = auctions = 0
    for each in made:
        persons += each.stream == "person"
        auctions += each.stream == "auction"
        if each.stream != "bid":
            continue
        auction, bidder = each.row["auction"] - FIRST_ID, each.row["bidder"] - FIRST_ID
        is_hot = auction % HOT_STEP == 0
        assert is_hot or auctions - AUCTIONS_IN_FLIGHT - 2 < auction < auctions + LEAD
        assert bidder % HOT_STEP == 1 or persons - ACTIVE_PERSONS <= bidder < persons + LEAD


def test_half_of_the_bids_are_for_a_hot_auction(made: list[generator.Event]) -> None:
    bids = [each.row for each in made if each.stream == "bid"]
    hot = sum(bid["auction"] % HOT_STEP == 0 for bid in bids) / len(bids)
    by_hot = sum(bid["bidder"] % HOT_STEP == 1 for bid in bids) / len(bids)
    assert 0.48 < hot < 0.54
    assert 0.73 < by_hot < 0.79
    prices = Counter(len(str(bid["price"])) for bid in bids)
    assert {3, 4, 5, 6, 7, 8} <= set(prices)


def test_sizes_are_as_specified(made: list[generator.Event]) -> None:
    for stream, bytes_ in (("person", generator.PERSON_BYTES), ("auction", generator.AUCTION_BYTES)):
        sizes = [sum(len(v) if isinstance(v, str) else 8 for v in each.row.values()) for each in made if each.stream == stream]
        assert abs(sum(sizes) / len(sizes) - bytes_) < 0.1 * bytes_


@pytest.mark.parametrize("name", queries())
def test_a_view_is_its_query(name: str) -> None:
    tables = {
        each: table(each, columns.replace(" bigint", " bigint").replace(",", ", ").replace(",  ", ", "))
        for each, columns in TABLES.items()
    }
    rows, found = Rows(tables, 0), 0
    stream = events(6 * 500)
    with watched(queries()[name], tables) as view:
        for number in range(6):
            given: dict[str, list[Row]] = {}
            for each in islice(stream, 500):
                given.setdefault(each.stream, []).append(rows.insert(each.stream, _typed(each.row)))
            view.step(given)
            mine, wanted = view.result(), view.expected(rows)
            assert mine == wanted, f"step {number}: missing {wanted - mine}, too many {mine - wanted}"
            found = len(mine)
    assert found > 0, "the query has rows"


def _typed(row: dict[str, Any]) -> dict[str, Any]:
    """A row whose times are times."""
    times: dict[str, Any] = {name: dt.datetime.fromisoformat(row[name]) for name in ("date_time", "expires") if name in row}
    return {**row, **times}
