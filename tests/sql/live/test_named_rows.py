"""Live rows with names in place of keys: in memory as in a scan."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.columnar.decode import SCHEMA
from barnabas.sql.live.few_records import Few
from barnabas.sql.live.rows import LivePartition, LiveRows
from barnabas.tables.declared import columns_of
from barnabas.tables.memory_scan import MemoryScan
from barnabas.tables.row_names import ROW, RowNames, name_of
from tests.sql.live.records import records as records_of

COLUMNS = columns_of("birds", key="row")
KEYS = st.none() | st.sampled_from([b"a", b"x" * 24]) | st.builds(lambda offset: name_of(None, 3, offset), st.integers(0, 40))
RECORDS = st.lists(st.tuples(KEYS, st.sampled_from([b"1", b"2"]) | st.none()), max_size=12)


@given(st.lists(st.tuples(RECORDS, st.booleans()), max_size=6), st.integers(0, 10))
@settings(max_examples=100, deadline=None)
def test_live_rows_are_those_of_a_loop(steps: list[tuple[list[tuple[bytes | None, bytes | None]], bool]], log_start: int) -> None:
    live, offset = LiveRows(RowNames()), 0
    expected: dict[bytes, tuple[bytes | None, bytes, int]] = {}
    live.partitions[3] = LivePartition()
    for pairs, is_few in steps:
        triples = [(key, value, offset + place) for place, (key, value) in enumerate(pairs)]
        offset += len(pairs)
        if is_few:
            keys, values, offsets = [key for key, _ in pairs], [value for _, value in pairs], [each[2] for each in triples]
            live.take_few(3, Few(keys, values, offsets, [0] * len(triples), offset))
        else:
            batch = records_of(triples)
            place = batch.schema.get_field_index("partition")
            live.take(3, batch.set_column(place, SCHEMA.field("partition"), pa.array([3] * len(triples), pa.int32())))
        for key, value, at in triples:
            name = name_of(key, 3, at)
            expected.pop(name, None)
            if value is not None:
                expected[name] = key if name == name_of(None, 3, at) else None, value, at
    live.partitions[3].drop_before(log_start)
    kept = {name: row for name, row in expected.items() if row[2] >= log_start}
    found = MemoryScan("birds", COLUMNS, [ROW, "_key", "value", "_offset"], live.all()).table().to_pylist()
    texts = {name: f"3:{int.from_bytes(name[16:], 'big')}" for name in kept}
    assert [tuple(row.values()) for row in found] == [(texts[name], *row) for name, row in kept.items()]
    assert live.is_canonical
    assert live.having(expected) == set(kept)
    for name, row in kept.items():
        assert live.of_key(name).column("offset").to_pylist() == [row[2]]
