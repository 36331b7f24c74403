"""The schema ids in records, by cases and against the reader of records."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.records.batch import build_batch, iterate_records
from barnabas.protocol.records.batch_header import HEADER_SIZE
from barnabas.protocol.records.record import Headers, Record
from barnabas.protocol.records.schema_ids import NO_SCHEMA_ID, name_known_schemas, read_known, schema_ids

ID = b"\0\0\0\0\7"
GUID = b"\1" + bytes(range(16))
KEY, VALUE = "__key_schema_id", "__value_schema_id"
Triple = tuple[bytes | None, bytes | None, Headers]


def batch_of(records: Sequence[Triple]) -> bytes:
    return bytes(build_batch([Record(0, 0, *each) for each in records]))


def found(*records: Triple, keys: bool = True, values: bool = True) -> tuple[list[bytes | None], list[bytes | None]] | None:
    data = batch_of(records)[HEADER_SIZE:]
    ids = schema_ids(data, len(records), keys=keys, values=values)
    return None if ids is None else (ids.of_keys, ids.of_values)


@pytest.mark.parametrize(
    ("record", "key", "value"),
    [
        ((None, None, ()), None, None),
        ((ID, ID + b"rest", ()), ID, ID),
        ((ID[:4], ID[:4], ()), NO_SCHEMA_ID, NO_SCHEMA_ID),
        ((b"", b"\1" + ID, ()), NO_SCHEMA_ID, NO_SCHEMA_ID),
        ((ID, b"x" * 200, ()), ID, NO_SCHEMA_ID),
        ((b"k", b"v", ((VALUE, GUID), (KEY, GUID + b"\2\2"))), GUID, GUID),
        ((b"k", b"v", (("a", None), (VALUE, ID), ("b", b"x" * 300))), NO_SCHEMA_ID, ID),
        ((b"k", ID, ((VALUE, b"\2" + bytes(16)),)), NO_SCHEMA_ID, NO_SCHEMA_ID),
        ((b"k", ID, ((VALUE, GUID[:-1]),)), NO_SCHEMA_ID, NO_SCHEMA_ID),
        ((b"k", ID, ((VALUE, None),)), NO_SCHEMA_ID, ID),
        ((b"k", b"v", ((VALUE, GUID), (VALUE, ID))), NO_SCHEMA_ID, GUID),
        ((None, None, ((VALUE, GUID), (KEY, GUID))), None, None),
    ],
)
def test_where_ids_are(record: Triple, key: bytes | None, value: bytes | None) -> None:
    assert found(record) == ([key], [value])
    assert found(record, keys=False) == ([], [value])
    assert found(record, values=False) == ([key], [])


KNOWN = frozenset({ID, GUID})
SMALL = st.one_of(st.none(), st.binary(max_size=12), st.binary(min_size=100, max_size=200), st.just(ID), st.just(GUID))
NAMES = st.one_of(st.sampled_from([KEY, VALUE]), st.text(max_size=20))
RECORDS = st.lists(st.tuples(SMALL, SMALL, st.lists(st.tuples(NAMES, SMALL), max_size=3).map(tuple)), min_size=1, max_size=8)


def naive(part: bytes | None, headers: Headers, name: str) -> bytes | None:
    if part is None:
        return None
    in_header = next((value for key, value in headers if key == name and value is not None), None)
    if in_header is not None:
        if in_header[:1] == b"\1" and len(in_header) >= 17:
            return in_header[:17]
        return in_header[:5] if in_header[:1] == b"\0" and len(in_header) >= 5 else NO_SCHEMA_ID
    return part[:5] if part[:1] == b"\0" and len(part) >= 5 else NO_SCHEMA_ID


@given(RECORDS)
def test_as_the_reader_of_records(records: list[Triple]) -> None:
    batch = batch_of(records)
    expected = [(naive(r.key, r.headers, KEY), naive(r.value, r.headers, VALUE)) for r in iterate_records(batch)]
    assert found(*records) == ([key for key, _ in expected], [value for _, value in expected])


@given(RECORDS, st.data())
def test_bytes_that_are_no_records_raise_nothing(records: list[Triple], data: st.DataObject) -> None:
    damaged = bytearray(batch_of(records)[HEADER_SIZE:])
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(damaged[: data.draw(st.integers(0, len(damaged)))])
    for each in (bytes(damaged), cut):
        for keys, values in ((KNOWN, KNOWN), (None, KNOWN), (KNOWN, None)):
            if name_known_schemas(each, len(records), keys, values):
                assert read_known(each, len(records), keys, values)


@pytest.mark.parametrize("known", [frozenset(), frozenset({ID}), frozenset({GUID}), KNOWN])
@given(RECORDS)
def test_known_ids(known: frozenset[bytes], records: list[Triple]) -> None:
    data = batch_of(records)[HEADER_SIZE:]
    for keys, values in ((known, known), (None, known), (known, None)):
        assert name_known_schemas(data, len(records), keys, values) is read_known(data, len(records), keys, values)
        assert not name_known_schemas(data + b"\0", len(records), keys, values)
    assert name_known_schemas(data, len(records), None, None)
