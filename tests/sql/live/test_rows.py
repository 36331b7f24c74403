"""The rows of a partition equal a plain dictionary after each kind of change."""

from __future__ import annotations

import itertools
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from barnabas.columnar.few_records import Few
from barnabas.sql.live import rows, slots
from barnabas.sql.live.rows import LivePartition, LiveRows, together
from barnabas.tables.formats import Raw
from tests.sql.live.records import Triple, records

KEYS = st.none() | st.integers(0, 30).map(lambda number: b"key %d" % number)
VALUES = st.none() | st.binary(max_size=9) | st.just(b"x")
CHANGES = st.one_of(
    st.tuples(st.just("take"), st.lists(st.tuples(KEYS, VALUES), max_size=40)),
    st.tuples(st.just("fresh"), st.integers(1, 40)),
    st.tuples(st.just("few"), st.lists(st.tuples(KEYS, VALUES), max_size=5)),
    st.tuples(st.just("drop"), st.integers(0, 30)),
)


@given(changes=st.lists(CHANGES, max_size=25))
def test_rows_are_the_newest_records_of_their_keys(changes: list[Any]) -> None:
    live, model, offsets = LiveRows(Raw("key")), dict[bytes, Triple](), itertools.count()
    part = live.partitions[3] = LivePartition()
    slots_of = dict[Triple, int]()
    with patch.object(rows, "SPARE", 10), patch.object(slots, "FEW", 8), patch.object(slots, "SEALED", 12):
        for kind, what in changes:
            if kind == "drop":
                start = part.log_start + what
                part.drop_before(start)
                model = {key: each for key, each in model.items() if each[2] >= start}
            else:
                made = [(b"fresh %d" % number, b"x") for number in range(what)] if kind == "fresh" else what
                triples: list[Triple] = [(key, value, next(offsets)) for key, value in made]
                if kind == "few":
                    places = [offset for _, _, offset in triples]
                    times = [offset * 1_000 for offset in places]
                    part.take_few(Few([key for key, _, _ in triples], [value for _, value, _ in triples], places, times, 0))
                else:
                    part.take(records(triples))
                for each in triples:
                    if each[0] is not None:
                        model.pop(each[0], None)
                        if each[1] is not None:
                            model[each[0]] = each
            assert list(part.rows) == list(model)
            assert live.all().equals(records(list(model.values()), 3))
            for each in list(model.values())[-3:]:
                key = each[0]
                assert key is not None
                assert live.of_key(key).equals(records([each], 3))
                slot = part.rows[key]
                assert all(other == each for other, known in slots_of.items() if known == slot), "a slot is one record"
                slots_of[each] = slot
            some = list(part.rows.values())[::-2]
            assert part.records(3, some).equals(records(list(model.values())[::-2], 3))
    assert part.size >= sum(len(key) for key in model)
    assert live.of_key(b"unknown").num_rows == 0
    assert live.having([b"key 1", b"key 2"]) == {b"key 1", b"key 2"} & set(model)


def test_records_that_are_no_rows_go() -> None:
    part = LivePartition()
    with patch.object(rows, "SPARE", 100):
        for round_ in range(50):
            part.take(records([(b"%d" % (number % 10), b"x" * 100, round_ * 2_000 + number) for number in range(2_000)]))
    assert part.size < 2_500 * 150
    assert part.records(0).num_rows == 10


def test_no_rows_are_an_empty_batch() -> None:
    assert together([]).num_rows == 0
    assert LivePartition().records(0).schema == pa.schema(records([]).schema)
