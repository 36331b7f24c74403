"""Rows with names in place of keys, in comparison with a loop over the records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.tables import Table, TableError, newest
from barnabas.tables.declared import columns_of
from barnabas.tables.row_names import MAGIC, ROW, RowNames, name_of, named_offsets, names_from, places_in
from barnabas.tables.scan import Columns
from barnabas.tables.source import Chunk, Snapshot
from tests.tables.memory_source import MemorySource

COLUMNS = columns_of("birds", key="row")
Records = list[tuple[int, bytes | None, bytes | None]]  # partition, key and value
Row = tuple[int, str, bytes | None, bytes]


def named(partition: int, offset: int) -> bytes:
    """The form that the reference tells, byte by byte."""
    return b"\xffbarnabasrow" + partition.to_bytes(4, "big", signed=True) + offset.to_bytes(8, "big", signed=True)


def rows_of(records: Records) -> list[Row]:
    """Partition, name, own key and value of the newest record of each row, in the order of the log."""
    found: dict[tuple[int, int], tuple[int, bytes | None, bytes | None]] = {}
    ends = [0, 0]
    for partition, key, value in records:
        offset, ends[partition] = ends[partition], ends[partition] + 1
        changed = [each for each in range(offset) if key == named(partition, each)]
        found[partition, changed[0] if changed else offset] = offset, None if changed else key, value
    rows = [(at, offset, name, key, value) for (at, name), (offset, key, value) in found.items() if value is not None]
    return [(at, f"{at}:{name}", key, value) for at, _, name, key, value in sorted(rows, key=lambda row: row[:2])]


def source_of(records: Records) -> MemorySource:
    source = MemorySource("birds", partitions=2)
    for partition, key, value in records:
        source.append(partition, [(key, value)])
    return source


def shown(table: pa.Table) -> list[Row]:
    return [(row["_partition"], row[ROW], row["_key"], row["value"]) for row in table.to_pylist()]


KEYS = (
    st.none()
    | st.sampled_from([b"a", b"", b"x" * 24, MAGIC, named(0, 0)[:-1], named(0, -1), named(7, 0)])
    | st.builds(named, st.integers(0, 1), st.integers(0, 20))
)
RECORDS = st.lists(st.tuples(st.integers(0, 1), KEYS, st.sampled_from([b"1", b"2", b""]) | st.none()), max_size=30)
NAMES = ["_partition", ROW, "_key", "value"]


@given(RECORDS, st.integers(0, 4))
@settings(max_examples=150, deadline=None)
def test_newest_rows_are_those_of_a_loop(records: Records, max_gap: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(newest, "MAX_GAP", max_gap)
        patch.setattr(newest, "MAX_RANGES", 3)
        birds = Table(source_of(records), COLUMNS, newest=True)
        expected = rows_of(records)
        assert shown(birds.arrow(NAMES)) == expected
        assert birds.count() == len(expected)
        for name in ("0:0", "1:3", "0:03", "x", "9999999999:1"):
            assert shown(birds.arrow(NAMES, pc.field(ROW) == name)) == [row for row in expected if row[1] == name]
        both = pc.field(ROW).isin(["0:1", "1:0"])
        assert shown(birds.arrow(NAMES, both)) == [row for row in expected if row[1] in ("0:1", "1:0")]
        is_two = pc.field("value") == b"2"
        assert shown(birds.arrow(NAMES, is_two)) == [row for row in expected if row[3] == b"2"]


@given(RECORDS)
@settings(max_examples=60, deadline=None)
def test_a_stream_has_each_record_that_brings_a_row(records: Records) -> None:
    stream = Table(source_of(records), Columns(COLUMNS.key, COLUMNS.value, skips_deletions=True))
    ends, expected = [0, 0], []
    for partition, key, value in records:
        offset, ends[partition] = ends[partition], ends[partition] + 1
        if value is not None and not any(key == named(partition, each) for each in range(offset)):
            expected.append((partition, f"{partition}:{offset}", key, value))
    assert sorted(shown(stream.arrow(NAMES)), key=str) == sorted(expected, key=str)
    assert stream.count() == len(expected)


def test_a_condition_on_the_name_reads_from_its_place_on() -> None:
    source = source_of([(each % 2, None, b"%d" % each) for each in range(40)])
    rows = Table(source, COLUMNS, newest=True).read(NAMES, None)
    assert rows.report.skipped_offsets == 0
    source.requests.clear()
    assert len(Table(source, COLUMNS, newest=True).arrow(NAMES, pc.field(ROW) == "1:15")) == 1
    assert {(partition, start) for partition, start, _ in source.requests} == {(1, 15)}


def test_rows_that_retention_took_away_are_gone_and_their_changes_stay() -> None:
    source = source_of([(0, None, b"a"), (0, None, b"b"), (0, named(0, 0), b"A"), (0, None, b"c"), (0, named(0, 1), None)])
    source.delete_records(0, 2)
    table = Table(source, COLUMNS, newest=True)
    assert shown(table.arrow(NAMES)) == [(0, "0:0", None, b"A"), (0, "0:3", None, b"c")]


class ChangedMeanwhile(MemorySource):
    """Between the two passes writes newer records, and loses those that the first pass found."""

    is_done = False

    def chunks(self, snapshot: Snapshot, partition: int, start: int, end: int) -> Iterator[Chunk]:
        if len(self.requests) == 1 and not self.is_done:
            self.is_done = True
            for key, value in [(named(0, 0), b"AA"), (named(0, 1), b"BB"), (None, b"late")]:
                self.append(0, [(key, value)])
            self.remove_batch(0, 2)  # the newest record of 0:0 in the snapshot
            self.remove_batch(0, 3)  # the one of 0:3, which retention deletes for good
        return super().chunks(snapshot, partition, start, end)


def test_a_record_that_goes_while_it_is_read_is_found_in_its_next_form() -> None:
    source = ChangedMeanwhile("birds")
    for key, value in [(None, b"a"), (None, b"b"), (named(0, 0), b"A"), (None, b"gone")]:
        source.append(0, [(key, value)])
    assert shown(Table(source, COLUMNS, newest=True).arrow(NAMES)) == [(0, "0:1", None, b"b"), (0, "0:0", None, b"AA")]


@given(st.lists(st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 10**18 - 1)), min_size=1, max_size=20))
def test_names_are_texts_and_bytes(places: list[tuple[int, int]]) -> None:
    partitions, offsets = (np.array(each) for each in zip(*places, strict=True))
    payloads = names_from(partitions.astype(np.int32), offsets)
    assert payloads.to_pylist() == [named(*each) for each in places]
    (texts,) = RowNames().decode(payloads, None, [ROW]).columns
    assert texts.to_pylist() == [f"{partition}:{offset}" for partition, offset in places]
    assert RowNames().encode(pa.RecordBatch.from_arrays([texts], names=[ROW])).equals(payloads)
    assert [each.to_pylist() for each in places_in(texts)] == [partitions.tolist(), offsets.tolist()]


@given(st.lists(st.tuples(KEYS, st.integers(0, 1), st.integers(0, 30)), max_size=20))
def test_one_name_is_as_many(records: list[tuple[bytes | None, int, int]]) -> None:
    keys, partitions, offsets = zip(*records, strict=True) if records else ((), (), ())
    whole = pa.array([b"spare", *keys], pa.binary()).slice(1)
    found = named_offsets(whole, np.array(partitions, np.int32), np.array(offsets, np.int64))
    assert [named(at, each) for at, each in zip(partitions, found.tolist(), strict=True)] == [name_of(*each) for each in records]


def test_other_texts_name_no_row() -> None:
    texts = pa.array(["0:1", "00:1", "1:-1", "1: 1", "", "3000000000:1", "1:9999999999999999999", None])
    partitions, offsets = places_in(texts)
    assert partitions.to_pylist() == [0, *[None] * 7]
    assert offsets.to_pylist() == [1, *[None] * 7]
    payloads = RowNames().encode(pa.RecordBatch.from_arrays([texts], names=[ROW]))
    assert payloads.to_pylist() == [named(0, 1), *(None if each is None else each.encode() for each in texts.to_pylist()[1:])]
    assert RowNames().payload_of(ROW, 5) is None


def test_keys_of_records_are_no_names() -> None:
    keys: Any = pa.array([b"a"], pa.binary())
    with pytest.raises(TableError, match="no names"):
        RowNames().decode(keys, None, [ROW])
