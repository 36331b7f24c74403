"""Schemas in Protobuf as Confluent's converter writes them: decimals, dates and times are messages that a registry knows."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from barnabas.connect.converters.json_schema import PRECISION
from barnabas.connect.converters.json_text import two_complement
from barnabas.connect.converters.leaves import along, converted, decimal_type, decimals, exact_decimal, unscaled
from barnabas.schemas.codecs import codec_of
from barnabas.schemas.registered import RegisteredSchema
from barnabas.tables.schema_texts import protobuf_scalar, protobuf_text

types: Any = pa.types
DECIMAL, DATE, TIME = "confluent.type.Decimal", "google.type.Date", "google.type.TimeOfDay"
IMPORTS = {
    "confluent.field_meta": "confluent/meta.proto",
    DECIMAL: "confluent/type/decimal.proto",
    DATE: "google/type/date.proto",
    TIME: "google/type/timeofday.proto",
    "google.protobuf.Timestamp": "google/protobuf/timestamp.proto",
}
SCALE, DIGITS = "scale", "precision"
OF_DAY: Any = pa.time64("us")
_FIELD_META = 1088  # the number of `confluent.field_meta`
_MOST_NUMBER = 6  # digits of a parameter


def protobuf_schema_text(kind: Any, name: str) -> str:
    """The schema of a struct. Raises TableError for a type or a name that Protobuf lacks."""
    return protobuf_text(name, list(kind), _typed, IMPORTS)


def _typed(kind: Any) -> tuple[str, str] | None:
    if types.is_decimal(kind):
        return DECIMAL, _meta({SCALE: str(kind.scale), **({} if kind.precision == PRECISION else {DIGITS: str(kind.precision)})})
    if types.is_date(kind):
        return DATE, ""
    if types.is_time(kind):
        return TIME, ""
    return ("google.protobuf.Timestamp", "") if types.is_timestamp(kind) else protobuf_scalar(kind)


def _meta(parameters: Mapping[str, str]) -> str:
    pairs = ", ".join(f'{{ key: "{key}", value: "{value}" }}' for key, value in parameters.items())
    return f" [(confluent.field_meta) = {{ params: [{pairs}] }}]"


def in_messages(column: Any, target: Any) -> Any:
    """Values in the types that the codec of Protobuf takes: decimals, dates and times of day as structs of their messages."""
    return converted(column, along(column.type, target, _is_changed), _in_message, {})


def _is_changed(kind: Any, target: Any) -> bool:
    """Whether a format has another type for values."""
    is_message = types.is_struct(target) and (types.is_decimal(kind) or types.is_date(kind) or types.is_time(kind))
    return bool(is_message or (types.is_timestamp(kind) and types.is_timestamp(target)))


def _in_message(column: Any, target: Any) -> tuple[Any, dict[int, str]]:
    kind = column.type
    if types.is_timestamp(kind):
        return column.cast(target, safe=False), {}
    parts: dict[str, Any]
    if types.is_decimal(kind):
        numbers = unscaled(column)
        parts = {
            "value": pa.array([None if each is None else two_complement(each) for each in numbers], pa.binary()),
            "precision": pa.array([None if each is None else len(str(abs(each))) for each in numbers]),
            "scale": pa.array([kind.scale] * len(column), pa.int32()),
        }
    elif types.is_date(kind):
        parts = {"year": pc.year(column), "month": pc.month(column), "day": pc.day(column)}
    else:
        column = column.cast(pa.time64("ns"))
        seconds: Any = pc.divide(column.cast(pa.int64()), 1_000_000_000)
        parts = {
            "hours": pc.divide(seconds, 3600), "minutes": pc.divide(_rest(seconds, 3600), 60), "seconds": _rest(seconds, 60),
            "nanos": _rest(column.cast(pa.int64()), 1_000_000_000),
        }  # fmt: skip
    arrays = [parts[each.name].cast(each.type) if each.name in parts else pa.nulls(len(column), each.type) for each in target]
    return pa.StructArray.from_arrays(arrays, fields=list(target), mask=column.is_null()), {}


def _rest(numbers: Any, divisor: int) -> Any:
    return pc.subtract(numbers, pc.multiply(pc.divide(numbers, divisor), divisor))


def with_messages(schema: RegisteredSchema, fields: Sequence[Any]) -> list[Any]:
    """The fields of a message with decimals, dates and times of day in place of the structs of their messages."""
    codec: Any = codec_of(schema)
    return list(_fields(codec.descriptor, fields))


def _fields(descriptor: Any, fields: Sequence[Any]) -> Iterator[Any]:
    for each in fields:
        own = descriptor.fields_by_name[each.name]
        yield each if own.message_type is None else each.with_type(_type(own, each.type))


def _type(field: Any, kind: Any) -> Any:
    """The type of a field that is a message."""
    message = field.message_type
    if message.GetOptions().map_entry:
        value = message.fields_by_name["value"]
        if value.message_type is None:
            return kind
        item = _value_type(value.message_type, {**parameters_of(field), **parameters_of(value)}, kind.item_type)
        made: Any = kind.item_field.with_type(item)
        return pa.map_(kind.key_field, made)
    if types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_value_type(message, parameters_of(field), kind.value_type)))
    return _value_type(message, parameters_of(field), kind)


def _value_type(message: Any, parameters: Mapping[str, int], kind: Any) -> Any:
    match message.full_name:
        case "confluent.type.Decimal":
            return decimal_type(parameters.get(DIGITS), parameters.get(SCALE, 0))
        case "google.type.Date":
            return pa.date32()
        case "google.type.TimeOfDay":
            return OF_DAY
    return pa.struct(list(_fields(message, list(kind)))) if types.is_struct(kind) else kind


def parameters_of(field: Any) -> dict[str, int]:
    """The parameters in `confluent.field_meta` of a field that are numbers."""
    found = _Options()
    try:
        found.ParseFromString(field.GetOptions().SerializeToString())
    except DecodeError:  # an option of others with this number
        return {}
    pairs = {each.key: each.value for each in found.meta.params}
    return {key: int(value) for key, value in pairs.items() if re.fullmatch(rf"-?[0-9]{{1,{_MOST_NUMBER}}}", value)}


def _options_class() -> Any:
    """A message that has of the options of a field Confluent's alone."""
    text, message, one, many = 9, 11, 1, 3  # types and labels of fields
    file = FileDescriptorProto(name="options.proto", package="barnabas.options", syntax="proto3")
    for name, fields in (
        ("Pair", [("key", 1, text, one, ""), ("value", 2, text, one, "")]),
        ("Meta", [("params", 2, message, many, ".barnabas.options.Pair")]),
        ("Options", [("meta", _FIELD_META, message, one, ".barnabas.options.Meta")]),
    ):
        made: DescriptorProto = file.message_type.add(name=name)
        for own, number, kind, label, of in fields:
            made.field.add(name=own, number=number, type=kind, label=label, type_name=of or None)
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName("barnabas.options.Options"))


_Options = _options_class()


def of_messages(column: Any, target: Any) -> tuple[Any, dict[int, str]]:
    """Structs of messages as values of the types that they stand for, and reasons by place."""
    if not types.is_struct(column.type):
        return column.cast(target), {}
    if types.is_decimal(target):
        return _decimals(column, target)
    made: Callable[[Mapping[str, int]], Any] = _date if types.is_date(target) else _time
    found, bad = [], {}
    for at, each in enumerate(column.to_pylist()):
        try:
            found.append(None if each is None else made(each))
        except ValueError as error:
            found.append(None)
            bad[at] = f"{each} is no {'date' if made is _date else 'time of day'}: {error}"
    return pa.array(found, target), bad


def _date(parts: Mapping[str, int]) -> datetime.date:
    return datetime.date(parts["year"], parts["month"], parts["day"])


def _time(parts: Mapping[str, int]) -> datetime.time:
    return datetime.time(parts["hours"], parts["minutes"], parts["seconds"], parts["nanos"] // 1000)


def _decimals(column: Any, target: Any) -> tuple[Any, dict[int, str]]:
    found: list[Any] = []
    bad: dict[int, str] = {}
    for at, each in enumerate(column.to_pylist()):
        if each is None:
            found.append(None)
            continue
        data, scale = each["value"] or b"", each["scale"]
        if len(data) > target.bit_width // 8 + 1 or abs(scale) > PRECISION * 2:
            found.append(None)
            bad[at] = f"a decimal of {len(data)} bytes with the scale {scale} does not fit to {target}"
            continue
        found.append(exact_decimal(int.from_bytes(data, "big", signed=True), scale))
    column, more = decimals(found, target)
    return column, bad | more
