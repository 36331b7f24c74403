"""JSON that is read by columns: it has the values of JSON that is read record by record, or is declined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
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
        b'{"name":"\\ud800"}', b'{"price":NaN}', b'{"price":9007199254740993}', b'{"price":1e400}', b'{"price":-0.0}',
        b'{"id":{"a":1}}', b'{"id":1,}',
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
        b'{"price":9007199254740993}',
        b"[]",
        b'""',
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


FIELDS = {
    "int32": (5, 1.0), "int64": (2**63 - 1, -1), "float": (0.5, 7), "double": (0.1, -0.0, 3), "string": ("", "ü\U0001f600"),
    "boolean": (True, False),
}  # fmt: skip


def _schema(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, **more}


def _schemas() -> st.SearchStrategy[dict[str, Any]]:
    """Schemas of structs with fields that are required, that have names, texts and defaults, and that are nested."""
    plain = st.builds(
        _schema,
        st.sampled_from(list(FIELDS)),
        optional=st.booleans(),
        name=st.none() | st.just("n"),
        doc=st.none() | st.just("d"),
    )
    lists = st.builds(_schema, st.just("array"), items=plain, optional=st.booleans())
    structs = st.builds(_schema, st.just("struct"), fields=_fields(plain), optional=st.booleans())
    return st.builds(_schema, st.just("struct"), fields=_fields(plain | lists | structs), optional=st.booleans())


def _fields(kinds: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[list[dict[str, Any]]]:
    return st.dictionaries(st.sampled_from("abc"), kinds, min_size=1).map(
        lambda named: [{**each, "field": name} for name, each in named.items()]
    )


def _value(draw: st.DrawFn, schema: dict[str, Any]) -> Any:
    """A value of a schema, or one that does not fit: null, absent, beyond the range, of another type, with another field."""
    odd = draw(st.integers(0, 19))
    if odd == 0 or (odd < 5 and schema["optional"]):
        return None
    if odd == 19:
        return draw(st.sampled_from([2**63, 2**70, 1.5, 1e300, "x", "", [], [None], {}, {"other": 1}, True]))
    match schema["type"]:
        case "struct":
            made = {each["field"]: _value(draw, each) for each in schema["fields"] if draw(st.integers(0, 19))}
            return made if draw(st.integers(0, 9)) else {**made, "other": 1}
        case "array":
            return [_value(draw, schema["items"]) for _ in range(draw(st.integers(0, 2)))]
    return draw(st.sampled_from(FIELDS[schema["type"]]))


@st.composite
def _envelopes(draw: st.DrawFn) -> list[bytes | None]:
    schema = draw(_schemas())
    rows = [{"schema": schema, "payload": _value(draw, schema)} for _ in range(draw(st.integers(1, 4)))]
    blank = draw(st.sampled_from([b"", b" "]))
    payloads = [msgspec.json.encode(each).replace(b',"payload":', b',"payload":' + blank) for each in rows]
    return [*payloads, *draw(st.sampled_from([[], [None]]))]


@settings(max_examples=40)  # each reads many rows one by one
@given(_envelopes(), st.sampled_from(["true", "false"]))
def test_any_envelopes_are_read_as_they_are_one_by_one(rows: list[bytes | None], fills: str) -> None:
    payloads = pa.array([rows[number % len(rows)] for number in range(FEW_ROWS)], pa.binary())
    converter = JsonConverter({"replace.null.with.default": fills}, is_key=False)
    found = converter.decode(payloads)
    with pytest.MonkeyPatch.context() as patch:
        general = _one_by_one(converter, payloads, patch)
    assert found.column.to_pylist() == general.column.to_pylist()
    assert found.column.type.equals(general.column.type, check_metadata=True)
    assert (found.bad, found.metadata) == (general.bad, general.metadata)


def test_columns_keep_what_a_schema_says_about_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = {"type": "struct", "optional": True, "field": "in", "fields": [{"field": "x", "type": "int64", "name": "X"}]}
    items = {"type": "array", "optional": True, "field": "list", "items": {"type": "string", "doc": "d"}}
    schema = {"type": "struct", "fields": [{"field": "id", "type": "int64"}, inner, items]}
    rows = [{"id": 1, "in": None, "list": ["a"]}, {"id": 2, "in": {"x": 3}, "list": None}] * FEW_ROWS
    payloads = pa.array([None, *(msgspec.json.encode({"schema": schema, "payload": each}) for each in rows)], pa.binary())
    found = JsonConverter({}, is_key=False).decode(payloads).column
    general = _one_by_one(JsonConverter({}, is_key=False), payloads, monkeypatch).column
    assert found.to_pylist() == general.to_pylist() == [None, *rows]
    assert found.type.equals(general.type, check_metadata=True)
    assert not found.type.field("id").nullable
    assert found.type.field("in").type.field("x").metadata == {b"connect.name": b"X", b"connect.version": b""}


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
