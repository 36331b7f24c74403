"""JSON that is read by columns: it has the values of JSON that is read record by record, or is declined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.connect.converters import json_converter
from barnabas.connect.converters.json_converter import JsonConverter
from barnabas.connect.converters.json_parsing import FEW_ROWS, parsed

MANY = FEW_ROWS + 88
KINDS = {"id": "int64", "name": "string", "price": "double", "ok": "boolean"}
SCHEMA = {"type": "struct", "fields": [{"field": name, "type": kind, "optional": True} for name, kind in KINDS.items()]}


def _row(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "name": f'a "{number}" ü',
        "price": number / 4,
        "ok": number % 2 == 0,
        "more": {"list": [number], "none": None},
    }


def _plain(number: int) -> bytes:
    return msgspec.json.encode(_row(number))


def _envelope(number: int) -> bytes:
    return msgspec.json.encode({"schema": SCHEMA, "payload": _row(number)})


@pytest.fixture(params=[False, True], ids=["plain", "schemas"])
def form(request: pytest.FixtureRequest) -> tuple[JsonConverter, Callable[[int], bytes]]:
    converter = JsonConverter({"schemas.enable": str(request.param).lower()}, is_key=False)
    return converter, _envelope if request.param else _plain


def _one_by_one(converter: JsonConverter, payloads: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    with monkeypatch.context() as patch:
        patch.setattr(json_converter, "parsed", lambda *_: None)
        return converter.decode(payloads)


def test_many_alike_objects_are_read_by_columns(
    form: tuple[JsonConverter, Callable[[int], bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    converter, payload = form
    payloads = pa.array([None if number % 7 == 3 else payload(number) for number in range(MANY)], pa.binary())
    taken = list[Any]()

    def noted(*given: Any) -> Any:
        taken.append(parsed(*given))
        return taken[-1]

    monkeypatch.setattr(json_converter, "parsed", noted)
    found = converter.decode(payloads)
    general = _one_by_one(converter, payloads, monkeypatch)
    assert taken[0] is not None
    assert found.column.to_pylist() == general.column.to_pylist()
    assert found.column.type == general.column.type


@pytest.mark.parametrize(
    "odd",
    [
        b'{"id":1.5}', b'{"id":"x"}', b'{"id":1}{"id":2}', b'{"id":1}\n{"id":2}', b"{}", b"[1]", b"1", b"null", b"", b"{", b'{"id":"}',
        b'{"id":1,"id":2}', b'{"other":1}', b'{"name":"\xff"}', b'{"id":123456789012345678901234567890}', b' {"id":1} ',
        b'{"name":"\\ud800"}', b'{"price":NaN}', b'{"id":{"a":1}}', b'{"id":1,}',
    ],
)  # fmt: skip
def test_an_odd_record_is_read_as_it_is_alone(odd: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    converter = JsonConverter({"schemas.enable": "false"}, is_key=False)
    payloads = pa.array([*(_plain(number) for number in range(MANY)), odd, _plain(MANY)], pa.binary())
    found = converter.decode(payloads)
    general = _one_by_one(converter, payloads, monkeypatch)
    assert found.bad == general.bad
    assert found.column.to_pylist() == general.column.to_pylist()


@pytest.mark.parametrize(
    "odd",
    [
        b'{"id":1.5}',
        b'{"id":"x"}',
        b'{"id":1},"x":{}',
        b'{"id":1}}{',
        b"null",
        b"1",
        b'{"id":1,"other":[1]}',
        b"{}",
        b'{"id":1,"id":2}',
    ],
)
def test_an_odd_payload_is_read_as_it_is_alone(odd: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    converter = JsonConverter({}, is_key=False)
    begin = b'{"schema":' + msgspec.json.encode(SCHEMA) + b',"payload":'
    payloads = pa.array([*(_envelope(number) for number in range(MANY)), begin + odd + b"}"], pa.binary())
    found = converter.decode(payloads)
    general = _one_by_one(converter, payloads, monkeypatch)
    assert found.bad == general.bad
    assert found.column.to_pylist() == general.column.to_pylist()


VALUES = (
    st.none() | st.integers(-(2**63), 2**63 - 1) | st.text() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False)
)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), VALUES), min_size=1, max_size=4))
def test_any_objects_are_read_as_the_library_reads_them(rows: list[dict[str, Any]]) -> None:
    payloads = [msgspec.json.encode(rows[number % len(rows)]) for number in range(FEW_ROWS)]
    with pytest.MonkeyPatch.context() as patch:
        converter = JsonConverter({"schemas.enable": "false"}, is_key=False)
        found = converter.decode(pa.array(payloads, pa.binary())).column
        assert found.to_pylist() == _one_by_one(converter, pa.array(payloads, pa.binary()), patch).column.to_pylist()
