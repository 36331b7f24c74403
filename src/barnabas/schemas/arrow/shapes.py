"""The interface between a format's schemas and Arrow: the Arrow type of a schema's values, and the conversion of values to it
and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import pyarrow as pa

from barnabas.schemas.codecs import codec_of
from barnabas.schemas.errors import SchemaDataError
from barnabas.schemas.registered import RegisteredSchema

Convert = Callable[[Any], Any]
WORD = b"barnabas.word"  # the name in SQL that a field was declared by, with its size, if the type says less
MISSING = b"barnabas.missing"  # the JSON of the value that a record without the field has
MARK = b"barnabas.type"  # in the metadata of fields of text that holds JSON or a UUID

map_type: Any = pa.map_  # the stubs take no field for the values, which pyarrow does

MODULES = {
    "AVRO": "barnabas.schemas.arrow.avro_shapes",
    "JSON": "barnabas.schemas.arrow.json_shapes",
    "PROTOBUF": "barnabas.schemas.arrow.protobuf_shapes",
}


class Recursive(SchemaDataError):
    """A schema contains itself; Arrow has no such types."""


class Shape(NamedTuple):
    """The form of a schema's values in Arrow.

    Args:
        type: the type of the column.
        to_arrow: converts a decoded value to one for `pyarrow.array`; None: no conversion is needed.
        from_arrow: converts a value of `to_pylist`, with maps as dicts, to one for the codec's `from_json`; None: no conversion
            is needed.
        is_null: whether the schema itself allows null.
        mark: `json` or `uuid` for texts that hold such.
    """

    type: pa.DataType
    to_arrow: Convert | None = None
    from_arrow: Convert | None = None
    is_null: bool = False
    mark: str = ""

    def field(self, name: str) -> pa.Field[Any]:
        return pa.field(name, self.type, metadata={MARK: self.mark.encode()} if self.mark else None)


def shape_of(schema: RegisteredSchema, message: str | None = None) -> Shape:
    """The shape of a schema's values; `message` names the Protobuf message.

    Raises:
        SchemaDataError: the schema is invalid, or has no type in Arrow.
        LibraryMissing: the extra is not installed.
    """
    codec = codec_of(schema, message=message)
    try:
        made: Shape = import_module(MODULES[schema.schema_type]).shape_of(codec)
    except RecursionError:
        raise Recursive("the schema is nested too deeply for a table") from None
    except UnicodeEncodeError:
        raise SchemaDataError("the schema has a name with half of a surrogate pair, which no column can have") from None
    return made


def struct_of(fields: Mapping[str, Shape], *, keeps_nulls: bool = True) -> Shape:
    """Values are dicts, also from Arrow.

    Args:
        keeps_nulls: if False, a null field is left out of the dict from Arrow, unless its own shape allows null.
    """
    kind = pa.struct([shape.field(name) for name, shape in fields.items()])
    to_arrow = {name: shape.to_arrow for name, shape in fields.items() if shape.to_arrow is not None}
    from_arrow = {name: shape.from_arrow for name, shape in fields.items() if shape.from_arrow is not None}
    not_null = set() if keeps_nulls else {name for name, shape in fields.items() if not shape.is_null}

    def into(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {name: _converted(to_arrow.get(name), each) for name, each in value.items() if name in fields}

    def out_of(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {
            name: _converted(from_arrow.get(name), each)
            for name, each in value.items()
            if each is not None or name not in not_null
        }

    return Shape(kind, into if to_arrow else None, out_of if from_arrow or not_null else None)


def list_of(item: Shape) -> Shape:
    return Shape(pa.list_(item.field("item")), _over_list(item.to_arrow), _over_list(item.from_arrow))


def map_of(item: Shape) -> Shape:
    """Values are dicts, also from Arrow."""
    kind = map_type(pa.string(), item.field("value"))
    return Shape(kind, _over_dict(item.to_arrow), _over_dict(item.from_arrow))


def _over_list(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    return lambda value: [_converted(convert, each) for each in value] if isinstance(value, list) else value


def _over_dict(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    return lambda value: {key: _converted(convert, each) for key, each in value.items()} if isinstance(value, dict) else value


def _converted(convert: Convert | None, value: Any) -> Any:
    return value if convert is None or value is None else convert(value)
