"""Defaults of fields: in the schemas that converters write, and in place of nulls."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from barnabas.connect.converters.avro_schema import record_text
from barnabas.connect.converters.defaults import defaults_of, filled
from barnabas.connect.converters.registered_json import json_schema_text
from barnabas.connect.converters.registry import converter
from barnabas.testing import Broker

JSON = "org.apache.kafka.connect.json.JsonConverter"
AVRO = "io.confluent.connect.avro.AvroConverter"


def field(name: str, kind: Any, default: str | None = None, *, nullable: bool = True) -> Any:
    return pa.field(name, kind, nullable, None if default is None else {b"connect.default": default.encode()})


ROW = pa.struct([field("id", pa.int32(), nullable=False), field("n", pa.int32(), "5"), field("t", pa.string())])
COLUMN = pa.array([{"id": 1, "n": None, "t": None}, None, {"id": 2, "n": 7, "t": "x"}], ROW)


@pytest.fixture(scope="module")
def registry() -> Iterator[str]:
    with Broker() as broker:
        yield broker.schema_registry_url


def made(name: str, **config: str) -> Any:
    return converter(
        {"value.converter": name, **{f"value.converter.{key}": value for key, value in config.items()}}, {}, is_key=False
    )


@pytest.mark.parametrize(("fills", "expected"), [("true", 5), ("false", None)])
@pytest.mark.parametrize("schemas", ["true", "false"])
def test_json_has_the_default_in_place_of_null(schemas: str, fills: str, expected: int | None) -> None:
    its = made(JSON, **{"schemas.enable": schemas, "replace.null.with.default": fills})
    texts = [json.loads(each) for each in its.encode(COLUMN.take(pa.array([0, 2])), "t").to_pylist()]
    payloads = [each["payload"] if schemas == "true" else each for each in texts]
    assert payloads == [{"id": 1, "n": expected, "t": None}, {"id": 2, "n": 7, "t": "x"}]


@pytest.mark.parametrize(("ignores", "expected"), [("false", 5), ("true", None)])
def test_avro_has_the_default_in_place_of_null(registry: str, ignores: str, expected: int | None) -> None:
    its = made(AVRO, **{"schema.registry.url": registry, "ignore.default.for.nullables": ignores})
    found = its.decode(its.encode(COLUMN, f"nulls-{ignores}"))
    assert found.column.to_pylist() == [{"id": 1, "n": expected, "t": None}, None, {"id": 2, "n": 7, "t": "x"}]


def test_another_default_is_another_schema(registry: str) -> None:
    """Types that differ in what is known of their fields alone are equal for Arrow."""
    its = made(AVRO, **{"schema.registry.url": registry})
    ids = []
    for default in ("5", "6", "5"):
        column = pa.array([{"n": 1}], pa.struct([field("n", pa.int32(), default)]))
        ids.append(its.encode(column, "altered")[0].as_py()[:5])
    assert ids[0] == ids[2] != ids[1]


@pytest.mark.parametrize(
    ("kind", "default", "expected"),
    [
        (pa.int64(), "-1", {"type": [{"type": "long", "connect.default": -1}, "null"], "default": -1}),
        (pa.string(), '""', {"type": [{"type": "string", "connect.default": ""}, "null"], "default": ""}),
        (pa.bool_(), "false", {"type": [{"type": "boolean", "connect.default": False}, "null"], "default": False}),
        (pa.binary(), '"/wA="', {"type": [{"type": "bytes", "connect.default": "\xff\0"}, "null"], "default": "\xff\0"}),
        (pa.float64(), '"NaN"', {"type": ["null", "double"], "default": None}),  # which JSON lacks
    ],
)
def test_avro_has_the_type_of_a_default_first(kind: Any, default: str, expected: Any) -> None:
    (found,) = json.loads(record_text(pa.struct([field("x", kind, default)]), "R", None))["fields"]
    assert found == {"name": "x", **expected}
    (required,) = json.loads(record_text(pa.struct([field("x", kind, default, nullable=False)]), "R", None))["fields"]
    first = expected["type"][0] if expected["default"] is not None else "double"
    assert required == {"name": "x", "type": first, **({"default": expected["default"]} if first != "double" else {})}


def test_json_schema_has_defaults_and_required_fields_of_inner_objects() -> None:
    found = json.loads(json_schema_text(pa.struct([field("row", ROW)]), "R"))["properties"]["row"]
    assert (found["required"], found["properties"]["n"]) == (
        ["id"],
        {"type": ["null", "integer"], "connect.type": "int32", "default": 5},
    )


def test_values_of_all_types_stand_in_place_of_nulls() -> None:
    fields = [
        field("d", pa.decimal128(5, 2), '"Arw="'), field("b", pa.binary(), '"/w=="'), field("f", pa.float64(), '"NaN"'),
        field("s", pa.struct([field("x", pa.int16(), "3")])), field("wrong", pa.int32(), '"x"'),
    ]  # fmt: skip
    column = pa.array([None, {"d": None, "b": None, "f": None, "s": {"x": None}, "wrong": None}, {"f": 1.0}], pa.struct(fields))
    found = filled(column.slice(1), defaults_of(column.type)).to_pylist()
    assert str(found[0].pop("f")) == "nan"
    assert found[0] == {"d": Decimal("7.00"), "b": b"\xff", "s": {"x": 3}, "wrong": None}
    assert found[1] == {"d": Decimal("7.00"), "b": b"\xff", "f": 1.0, "s": None, "wrong": None}
