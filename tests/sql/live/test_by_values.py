"""Rows of a live table by their values: all that have them are found, whatever became of the rows before."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas import limits
from barnabas.sql.live import by_values, rows
from barnabas.sql.live.by_values import RowsByValues, Values
from barnabas.sql.live.rows import LivePartition, LiveRows
from barnabas.sql.live.tables import Followed, LiveTables
from barnabas.tables.scalar_format import ScalarFormat
from tests.sql.live.records import records

KEY = ScalarFormat(pa.field("id", pa.int64()))
SIZES = st.integers(1, 4)
CHANGES = st.tuples(st.integers(0, 1), st.integers(0, 5), st.one_of(st.none(), st.sampled_from("abc")))


def table_of(count: int = 0) -> LiveRows:
    """Rows of two partitions."""
    live = LiveRows(KEY)
    live.partitions = {0: LivePartition(), 1: LivePartition()}
    if count:
        live.take(0, records([(b"%d" % each, b"v%d" % each, each) for each in range(count)]))
    return live


def decode(batch: pa.RecordBatch) -> pa.Table:
    """The columns of records: the text of the value."""
    return pa.table({"v": batch.column("value").cast(pa.string())})


def found(index: RowsByValues, live: LiveRows, *wanted: str, definition: object = "t") -> list[tuple[int, bytes, str]]:
    """Partition, key and value of the rows that have one of the values."""
    values: list[Values] = [(each,) for each in wanted]
    batch = index.records(live, definition, ["v"], values, decode)
    names = ("partition", "key", "value")
    rows_ = zip(*(batch.column(each).to_pylist() for each in names), strict=True)
    return [(partition, key, value.decode()) for partition, key, value in rows_ if value.decode() in wanted]


@given(st.lists(st.tuples(CHANGES, SIZES), max_size=60))
@settings(max_examples=60, deadline=None)
def test_the_rows_with_a_value_are_found_after_any_changes(changes: list[tuple[tuple[int, int, str | None], int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "SPARE", 5)  # so that records which are no rows are forgotten
        live, index, there = table_of(), RowsByValues(), dict[tuple[int, bytes], str]()
        for offset, ((partition, key, value), times) in enumerate(changes):
            name = b"%d" % key
            live.take(partition, records([(name, None if value is None else value.encode(), offset)], partition))
            there.pop((partition, name), None)
            if value is not None:
                there[partition, name] = value
            if offset % times == 0:
                for each in "abc":
                    assert sorted(found(index, live, each)) == sorted((*place, each) for place in there if there[place] == each)
        assert sorted(found(index, live, "a", "c", "z")) == sorted(
            (*place, there[place]) for place in there if there[place] in "ac"
        )


def test_only_the_rows_that_came_since_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_values, "PIECE_ROWS", 40)
    live, index, decoded = table_of(100), RowsByValues(), list[int]()

    def noted(batch: pa.RecordBatch) -> pa.Table:
        decoded.append(batch.num_rows)
        return decode(batch)

    assert index.records(live, "t", ["v"], [("v7",)], noted).num_rows == 1
    live.take(0, records([(b"7", b"other", 100)]))
    index.records(live, "t", ["v"], [("v8",)], noted)
    index.records(live, "t", ["v"], [("v8",)], noted)
    assert decoded == [40, 40, 20, 1]
    assert found(index, live, "other") == [(0, b"7", "other")]


def test_another_definition_of_the_table_forgets_all() -> None:
    live, index = table_of(10), RowsByValues()
    assert found(index, live, "v1", definition="first") == [(0, b"1", "v1")]
    index.records(live, "second", ["v"], [], lambda batch: pa.table({"v": ["new"] * batch.num_rows}))
    assert found(index, live, "v1", definition="second") == []
    assert found(index, live, "v1", definition="third") == [(0, b"1", "v1")]


def test_an_index_needs_memory_and_goes_when_rows_need_it(monkeypatch: pytest.MonkeyPatch) -> None:
    tables, live = LiveTables(), table_of(100)
    followed = Followed(KEY)
    followed.rows = live
    tables._tables["t", "id", "format"] = followed
    index = tables.by_values(live, ["v"])
    assert index is not None
    assert found(index, live, "v1")
    assert tables.by_values(live, ["v"]) is index
    monkeypatch.setattr(limits, "MAX_SQL_LIVE_BYTES", live.size + 10)
    assert tables.by_values(live, ["w"]) is None
    assert tables.by_values(live, ["v"]) is index
    assert tables.room(followed) == live.size + 10
    assert tables.by_values(live, ["v"]) is None
