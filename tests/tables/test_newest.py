"""The newest row of each key, in comparison with a loop over the records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import polars as pl
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.tables import Table, newest
from barnabas.tables.formats import Raw
from barnabas.tables.scan import Columns
from barnabas.tables.source import Chunk, Snapshot
from tests.tables.memory_source import MemorySource

COLUMNS = Columns(Raw("_key"), Raw("value"))
Records = list[tuple[int, bytes | None, bytes | None]]  # partition, key and value


def rows_of(records: Records) -> list[tuple[int, bytes, bytes]]:
    """Partition, key and value of the newest row of each key, in the order of the log."""
    found: dict[tuple[int, bytes], tuple[int, bytes | None]] = {}
    for place, (partition, key, value) in enumerate(records):
        if key is not None:
            found[partition, key] = place, value
    rows = [(partition, place, key, value) for (partition, key), (place, value) in found.items() if value is not None]
    return [(partition, key, value) for partition, _, key, value in sorted(rows)]


def source_of(records: Records) -> MemorySource:
    source = MemorySource("users", partitions=2)
    for partition, key, value in records:
        source.append(partition, [(key, value)])
    return source


def shown(table: Any) -> list[tuple[int, bytes, bytes]]:
    return [(row["_partition"], row["_key"], row["value"]) for row in table.to_pylist()]


RECORDS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from([b"a", b"b", b"c", b"", b"dd"]) | st.none(),
        st.sampled_from([b"1", b"2", b"3", b""]) | st.none(),
    ),
    max_size=30,
)


@given(RECORDS, st.integers(1, 6), st.integers(0, 4), st.sampled_from([0, 200, 1 << 30]))
@settings(max_examples=60, deadline=None)
def test_newest_rows_are_those_of_a_loop(records: Records, merged_rows: int, max_gap: int, max_short_bytes: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(newest, "MERGED_ROWS", merged_rows)
        patch.setattr(newest, "MAX_SHORT_BYTES", max_short_bytes)
        patch.setattr(newest, "MAX_GAP", max_gap)
        patch.setattr(newest, "MAX_RANGES", 3)
        users = Table(source_of(records), COLUMNS).newest_by_key()
        expected = rows_of(records)
        assert shown(users.arrow()) == expected
        is_two = pc.field("value") == b"2"
        assert shown(users.arrow(filter=is_two)) == [row for row in expected if row[2] == b"2"]
        by_key = (pc.field("_key") == b"a") & (pc.field("_partition") == 1)
        assert shown(users.arrow(filter=by_key)) == [row for row in expected if row[:2] == (1, b"a")]
        assert users.count() == len(expected)


RECORDS_OF_ONE_USER: Records = [
    (0, b"ann", b"old"),
    (0, b"bob", b"old"),
    (0, b"ann", b"new"),
    (0, b"bob", None),
    (1, b"eve", b"x"),
]


def test_every_way_of_reading_shows_the_newest_rows() -> None:
    users = Table(source_of(RECORDS_OF_ONE_USER), COLUMNS).newest_by_key()
    expected = [(b"ann", b"new"), (b"eve", b"x")]
    assert duckdb.execute("select _key, value from users order by _key").fetchall() == expected
    assert duckdb.execute("select _key from users where value = 'old'::blob").fetchall() == []
    assert users.duckdb().project("_key, value").fetchall() == expected
    lazy = users.scan_polars()
    assert lazy.select("_key", "value").collect().rows() == expected
    assert lazy.filter(pl.col("value") == b"old").collect().height == 0
    older = (pl.col("_offset") == 0) & (pl.col("_partition") == 0)
    assert lazy.filter(older).collect().height == 0  # a condition on the offset brings no older row back
    assert users.head(1).num_rows == 1
    assert users.snapshot().to_polars().height == 2
    assert "newest rows of" in repr(users)


def test_a_count_reads_keys_alone() -> None:
    source = source_of(RECORDS_OF_ONE_USER)
    assert Table(source, COLUMNS).newest_by_key().count() == 2
    assert len(source.requests) == 2  # one pass over each partition


def test_conditions_on_partition_and_key_make_both_passes_read_less() -> None:
    source = source_of(RECORDS_OF_ONE_USER)
    users = Table(source, COLUMNS).newest_by_key()
    reading = users.scan(["value"], (pc.field("_partition") == 1) & (pc.field("value") == b"x") & (pc.field("_offset") < 5))
    assert reading.to_table().to_pydict() == {"value": [b"x"]}
    assert {partition for partition, _, _ in source.requests} == {1}
    assert reading.explain().skipped_offsets == 4


class CompactedMeanwhile(MemorySource):
    """Between the two passes writes newer records, and then compacts."""

    is_done = False

    def chunks(self, snapshot: Snapshot, partition: int, start: int, end: int) -> Iterator[Chunk]:
        if len(self.requests) == 1 and not self.is_done:
            self.is_done = True
            self.append(0, [(b"ann", b"newest")])
            self.append(0, [(b"new", b"not in the snapshot")])
            self.remove_batch(0, 2)  # the record of ann in the snapshot
            self.remove_batch(0, 4)  # the one of cid, which retention deletes for good
        return super().chunks(snapshot, partition, start, end)


def test_a_row_that_compaction_removes_meanwhile_comes_from_the_newer_record() -> None:
    source = CompactedMeanwhile("users")
    for key, value in [(b"ann", b"old"), (b"bob", b"stays"), (b"ann", b"new"), (b"gone", None), (b"cid", b"deleted")]:
        source.append(0, [(key, value)])
    users = Table(source, COLUMNS).newest_by_key()
    assert users.arrow(["_key", "value"]).to_pydict() == {"_key": [b"bob", b"ann"], "value": [b"stays", b"newest"]}


class EagerCompaction(MemorySource):
    """Replaces the newest record of a key whenever it is about to be read."""

    def chunks(self, snapshot: Snapshot, partition: int, start: int, end: int) -> Iterator[Chunk]:
        if len(self.requests) % 3 == 1:
            last = self._ends[0] - 1
            self.append(0, [(b"ann", b"again")])
            self.remove_batch(0, last)
        return super().chunks(snapshot, partition, start, end)


def test_endless_compaction_is_an_error() -> None:
    source = EagerCompaction("users")
    source.append(0, [(b"ann", b"first")])
    with pytest.raises(Exception, match="compaction removes records faster than they are read"):
        Table(source, COLUMNS).newest_by_key().arrow()
