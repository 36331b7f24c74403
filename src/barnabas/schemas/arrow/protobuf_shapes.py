"""Protobuf messages in Arrow.

A message becomes a struct, and an enum its name. A field that is not set becomes null if the message shows that; otherwise it
has its default. `uint64` becomes a decimal of 20 digits. Timestamps and durations become those of Arrow, and a wrapper becomes
its value. Any other type of google.protobuf becomes a string with JSON.
"""

from __future__ import annotations

import datetime
import json
from typing import Any

import pyarrow as pa
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor

from barnabas.schemas.arrow.shapes import Convert, Recursive, Shape, map_type
from barnabas.schemas.plain import plain
from barnabas.schemas.protobuf_codec import ProtobufCodec

_F: Any = FieldDescriptor
_TYPES: dict[int, pa.DataType] = {
    **dict.fromkeys((_F.TYPE_INT32, _F.TYPE_SINT32, _F.TYPE_SFIXED32), pa.int32()),
    **dict.fromkeys((_F.TYPE_UINT32, _F.TYPE_FIXED32, _F.TYPE_INT64, _F.TYPE_SINT64, _F.TYPE_SFIXED64), pa.int64()),
    **dict.fromkeys((_F.TYPE_UINT64, _F.TYPE_FIXED64), pa.decimal128(20, 0)),
    _F.TYPE_FLOAT: pa.float32(), _F.TYPE_DOUBLE: pa.float64(), _F.TYPE_BOOL: pa.bool_(), _F.TYPE_STRING: pa.string(),
    _F.TYPE_BYTES: pa.binary(),
}  # fmt: skip
_WRAPPERS = {
    "google.protobuf." + name
    for name in (
        "DoubleValue", "FloatValue", "Int64Value", "UInt64Value", "Int32Value", "UInt32Value", "BoolValue", "StringValue", "BytesValue",
    )
}  # fmt: skip
_MICROSECOND = datetime.timedelta(microseconds=1)


def shape_of(codec: ProtobufCodec) -> Shape:
    """Raises Recursive."""
    return _Shapes(codec.pool).message(codec.descriptor, ())


class _Shapes:
    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def message(self, descriptor: Any, inside: tuple[str, ...]) -> Shape:
        name = descriptor.full_name
        known = self._known(descriptor)
        if known is not None:
            return known
        if name in inside:
            raise Recursive(f"the message {name} contains itself, and tables have no such type")
        fields = [(field, self._field(field, (*inside, name))) for field in descriptor.fields]
        readers = [(field.name, _reader(field, shape.to_arrow)) for field, shape in fields]
        writers = {field.name: shape.from_arrow or plain for field, shape in fields}

        def to_arrow(value: Any) -> Any:
            return {name: read(value) for name, read in readers}

        def from_arrow(value: Any) -> Any:
            if not isinstance(value, dict):
                return value
            return {name: writers.get(name, plain)(each) for name, each in value.items() if each is not None}

        return Shape(pa.struct([shape.field(field.name) for field, shape in fields]), to_arrow, from_arrow)

    def _known(self, descriptor: Any) -> Shape | None:
        name = descriptor.full_name
        if name == "google.protobuf.Timestamp":
            return Shape(pa.timestamp("us", "UTC"), lambda value: value.ToMicroseconds(), plain)
        if name == "google.protobuf.Duration":
            return Shape(pa.duration("us"), lambda value: value.ToMicroseconds(), _duration)
        if name in _WRAPPERS:
            inner = self._one(descriptor.fields_by_name["value"], ())
            return Shape(inner.type, lambda value: value.value, plain)
        if descriptor.file.package == "google.protobuf":
            return Shape(pa.string(), self._json, json.loads, mark="json")
        return None

    def _json(self, value: Any) -> str:
        return json.dumps(json_format.MessageToDict(value, descriptor_pool=self._pool), ensure_ascii=False)

    def _field(self, field: Any, inside: tuple[str, ...]) -> Shape:
        """The shape of a field; `to_arrow` takes the field's value (a container for a repeated field)."""
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            key, item = (self._one(field.message_type.fields_by_name[name], inside) for name in ("key", "value"))
            into, out_of = item.to_arrow, item.from_arrow or plain
            return Shape(
                map_type(key.type, item.field("value")),
                lambda found: [(name, found[name] if into is None else into(found[name])) for name in found],
                lambda value: {_key(name): out_of(each) for name, each in value.items()} if isinstance(value, dict) else value,
            )
        one = self._one(field, inside)
        if not _is_repeated(field):
            return one
        into, out_of = one.to_arrow, one.from_arrow or plain
        return Shape(
            pa.list_(one.field("item")),
            list if into is None else lambda found: [into(each) for each in found],
            lambda value: [out_of(each) for each in value] if isinstance(value, list) else value,
        )

    def _one(self, field: Any, inside: tuple[str, ...]) -> Shape:
        if field.message_type is not None:
            return self.message(field.message_type, inside)
        if field.enum_type is not None:
            names = {number: each.name for number, each in field.enum_type.values_by_number.items()}
            return Shape(pa.string(), lambda number: names.get(number, str(number)), _enum)
        return Shape(_TYPES[field.type], None, plain)


def _reader(field: Any, into: Convert | None) -> Convert:
    name, can_be_missing = field.name, field.has_presence and not _is_repeated(field)

    def read(message: Any) -> Any:
        if can_be_missing and not message.HasField(name):
            return None
        value = getattr(message, name)
        return value if into is None else into(value)

    return read


def _is_repeated(field: Any) -> bool:
    found = getattr(field, "is_repeated", None)  # protobuf before 6.31 has only `label`
    return bool(field.label == _F.LABEL_REPEATED if found is None else found)


def _enum(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.lstrip("-").isdigit() else value


def _key(value: Any) -> Any:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _duration(value: Any) -> Any:
    if not isinstance(value, datetime.timedelta):
        return value
    total = value // _MICROSECOND
    sign, total = ("-", -total) if total < 0 else ("", total)
    return f"{sign}{total // 1_000_000}.{total % 1_000_000:06d}s"
