"""Avro schemas in Arrow, by the rules of Spark's own Avro reader.

A union of null and one type becomes that type, nullable. `int` with `long` is `long`, and `float` with `double` is `double`.
Any other union is a struct with a field for each branch: `member0`, `member1`, … Times of day become the numbers that Avro
stores.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from barnabas.schemas.arrow.shapes import Recursive, Shape, list_of, map_of, struct_of
from barnabas.schemas.avro_codec import AvroCodec
from barnabas.schemas.avro_names import NAMED, full_name

MOST_DIGITS = 38
_PLAIN: dict[str, pa.DataType] = {
    "null": pa.string(), "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64(),
    "bytes": pa.binary(), "string": pa.string(), "fixed": pa.binary(), "enum": pa.string(),
}  # fmt: skip


def _since_midnight(unit_us: int) -> Any:
    def convert(value: datetime.time) -> int:
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return (seconds * 1_000_000 + value.microsecond) // unit_us

    return convert


_LOGICAL: dict[tuple[str, str], Shape] = {
    ("string", "uuid"): Shape(pa.string(), str, mark="uuid"),
    ("int", "date"): Shape(pa.date32()),
    ("int", "time-millis"): Shape(pa.int32(), _since_midnight(1000)),
    ("long", "time-micros"): Shape(pa.int64(), _since_midnight(1)),
    ("long", "timestamp-millis"): Shape(pa.timestamp("us", "UTC")),
    ("long", "timestamp-micros"): Shape(pa.timestamp("us", "UTC")),
    ("long", "local-timestamp-millis"): Shape(pa.timestamp("us")),
    ("long", "local-timestamp-micros"): Shape(pa.timestamp("us")),
}


def shape_of(codec: AvroCodec) -> Shape:
    """Raises Recursive."""
    return _shape(codec.schema, {}, ())


def _shape(schema: Any, names: dict[str, Any], inside: tuple[str, ...]) -> Shape:
    if isinstance(schema, list):
        return _union(schema, names, inside)
    if isinstance(schema, str):
        return _shape(names[schema], names, inside) if schema in names else Shape(_PLAIN[schema], is_null=schema == "null")
    kind = schema["type"]
    if isinstance(kind, dict | list):
        return _shape(kind, names, inside)
    if kind in NAMED:
        name = full_name(schema, "")
        names[name] = schema
        if name in inside:
            raise Recursive(f"the record {name} contains itself, and tables have no such type")
        inside = (*inside, name)
    if kind in ("record", "error"):
        return struct_of({field["name"]: _shape(field["type"], names, inside) for field in schema["fields"]})
    if kind == "array":
        return list_of(_shape(schema["items"], names, inside))
    if kind == "map":
        return map_of(_shape(schema["values"], names, inside))
    if kind in names:
        return _shape(names[kind], names, inside)
    if schema.get("logicalType") == "decimal" and kind in ("bytes", "fixed"):
        digits, scale = schema["precision"], schema.get("scale", 0)
        return (
            Shape(pa.decimal128(digits, scale)) if digits <= MOST_DIGITS else Shape(pa.string(), lambda value: format(value, "f"))
        )
    return _LOGICAL.get((kind, schema.get("logicalType", "")), Shape(_PLAIN[kind]))


def _union(branches: list[Any], names: dict[str, Any], inside: tuple[str, ...]) -> Shape:
    others = [each for each in branches if each != "null"]
    is_null = len(others) < len(branches)
    shapes = [_shape(each, names, inside) for each in others]
    if not shapes:
        return Shape(pa.string(), is_null=True)
    if len(shapes) == 1:
        return shapes[0]._replace(is_null=is_null)
    kinds = {each if isinstance(each, str) else "" for each in others}
    if kinds == {"int", "long"}:
        return Shape(pa.int64(), is_null=is_null)
    if kinds == {"float", "double"}:
        return Shape(pa.float64(), is_null=is_null)
    tests = [_test(each, names) for each in others]
    tags = [_tag(each) for each in others]

    def to_arrow(value: Any) -> Any:
        for number, (test, shape) in enumerate(zip(tests, shapes, strict=True)):
            if test(value):
                return {f"member{number}": value if shape.to_arrow is None else shape.to_arrow(value)}
        raise ValueError(f"a {type(value).__name__} is of no branch of the union")

    def from_arrow(value: Any) -> Any:
        for name, each in value.items() if isinstance(value, dict) else ():
            number = name.removeprefix("member")
            if each is not None and number.isdigit() and int(number) < len(shapes):
                convert = shapes[int(number)].from_arrow
                return {tags[int(number)]: each if convert is None else convert(each)}
        return None if isinstance(value, dict) else value

    kind = pa.struct([shape.field(f"member{number}") for number, shape in enumerate(shapes)])
    return Shape(kind, to_arrow, from_arrow, is_null)


_CLASSES: Mapping[str, Any] = {
    "boolean": bool, "int": int, "long": int, "float": float, "double": float, "bytes": bytes, "string": str, "fixed": bytes,
    "array": list, "map": dict,
}  # fmt: skip


def _test(branch: Any, names: dict[str, Any]) -> Any:
    """A function that says whether a decoded value is of this branch."""
    schema = names.get(branch, branch) if isinstance(branch, str) else branch
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind in ("record", "error"):
        fields = {field["name"] for field in schema["fields"]}
        return lambda value: isinstance(value, dict) and value.keys() == fields
    if kind == "enum":
        return lambda value: isinstance(value, str) and value in schema["symbols"]
    if isinstance(schema, dict) and "logicalType" in schema:
        return lambda value: not isinstance(value, str | dict | list | bool)
    if kind == "fixed":
        return lambda value: isinstance(value, bytes) and len(value) == schema["size"]
    wanted = _CLASSES[kind]
    return lambda value: isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))


def _tag(branch: Any) -> str:
    if isinstance(branch, str):
        return branch
    kind: str = branch["type"]
    return full_name(branch, "") if kind in NAMED else kind
