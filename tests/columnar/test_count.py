"""Counting gives as many records as decoding, whatever the bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.columnar.batches import CorruptBatch
from barnabas.columnar.count import RecordCounter
from barnabas.columnar.decode import RecordDecoder
from barnabas.protocol.records.batch_header import HEADER, read_header
from barnabas.protocol.records.record import assemble, build_batch
from tests.tables.memory_source import MemorySource

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(-1, 3), st.integers(1, 5), st.sampled_from([0, 0, 1, 4])),
        st.tuples(st.just("end"), st.integers(0, 3), st.booleans()),
    ),
    max_size=12,
)


def written(steps: list[tuple[object, ...]]) -> MemorySource:
    source = MemorySource("t", chunk_batches=1_000)
    for step in steps:
        match step:
            case ("append", int(producer), int(count), int(codec)):
                source.append(0, [(None, b"%d" % each) for each in range(count)], producer_id=producer, compression=codec)
            case ("end", int(producer), bool(commit)):
                source.end_transaction(producer, commit=commit)
    return source


@given(STEPS, st.integers(-1, 40), st.integers(-1, 40))
def test_as_many_as_are_decoded(steps: list[tuple[object, ...]], start: int, end: int) -> None:
    source = written(steps)
    for chunk in source.chunks(source.snapshot(), 0, start, end):
        decoded = RecordDecoder("t", 0).decode(chunk.records, start, end, chunk.aborted)
        rows = sum(each.num_rows for each in decoded)
        assert RecordCounter("t", 0).count(chunk.records, start, end, chunk.aborted) == rows


def test_nothing_is_no_records() -> None:
    assert RecordCounter("t", 0).count(b"") == 0
    assert RecordCounter("t", 0).count(build_batch([(None, b"a")])[:-1]) == 0


def test_a_compacted_batch_counts_what_is_left() -> None:
    batch = build_batch([(b"a", b"1")])
    header = read_header(batch)._replace(last_offset_delta=9)  # nine records were removed behind it
    left = assemble(header, batch[HEADER.size :])
    assert RecordCounter("t", 0).count(left) == 1
    assert RecordCounter("t", 0).count(left, 0, 5) == 1
    assert RecordCounter("t", 0).count(left, 1) == 0


def test_damage_is_told() -> None:
    batch = bytearray(build_batch([(None, b"a")]))
    batch[-1] ^= 1
    with pytest.raises(CorruptBatch, match="its checksum is wrong"):
        RecordCounter("t", 0).count(batch)
    lying = assemble(read_header(bytes(batch))._replace(records_count=1_000_000, last_offset_delta=999_999), batch[HEADER.size :])
    with pytest.raises(CorruptBatch, match="1000000 records in"):
        RecordCounter("t", 0).count(lying)
