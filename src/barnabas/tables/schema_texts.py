"""The text of a schema for declared columns: Avro, JSON Schema or Protobuf. The columns that the schema gives back hold the same values.

A type without such a form is refused: a schema would give its values back as numbers or texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from barnabas.tables.column_types import JSON, UUID, Field, mark_of, missing_of, type_name
from barnabas.tables.errors import TableError

SCHEMA_TYPES = {"avro": "AVRO", "json_schema": "JSON", "protobuf": "PROTOBUF"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_AVRO: dict[pa.DataType, Any] = {
    pa.bool_(): "boolean", pa.int8(): "int", pa.int16(): "int", pa.int32(): "int", pa.int64(): "long", pa.float32(): "float",
    pa.float64(): "double", pa.string(): "string", pa.binary(): "bytes", pa.date32(): {"type": "int", "logicalType": "date"},
    pa.timestamp("us", "UTC"): {"type": "long", "logicalType": "timestamp-micros"},
    pa.timestamp("us"): {"type": "long", "logicalType": "local-timestamp-micros"},
}  # fmt: skip
_JSON: dict[pa.DataType, str] = {
    pa.bool_(): "boolean", pa.string(): "string", pa.float64(): "number", pa.float32(): "number",
    **dict.fromkeys((pa.int8(), pa.int16(), pa.int32(), pa.int64()), "integer"),
}  # fmt: skip
_PROTOBUF: dict[pa.DataType, str] = {
    pa.bool_(): "bool", pa.int8(): "int32", pa.int16(): "int32", pa.int32(): "int32", pa.int64(): "int64", pa.float32(): "float",
    pa.float64(): "double", pa.string(): "string", pa.binary(): "bytes", pa.timestamp("us", "UTC"): "google.protobuf.Timestamp",
}  # fmt: skip


_IMPORTS = {"google.protobuf.Timestamp": "google/protobuf/timestamp.proto"}


def schema_text(format_name: str, name: str, fields: Sequence[Field]) -> str:
    """The schema of values with these columns.

    Args:
        format_name: a key of SCHEMA_TYPES.
        name: of the record; what no name may have becomes `_`.

    Raises:
        TableError: the format has no such type, or a column's name is none there.
    """
    makers: dict[str, Callable[[str, Sequence[Field]], str]] = {"avro": _avro, "json_schema": _json_schema, "protobuf": _protobuf}
    if format_name != "json_schema":
        _check_names(format_name, fields)
    return makers[format_name](_legal(name), fields)


def _legal(name: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return plain if _NAME.fullmatch(plain) else f"_{plain}"


def _check_names(format_name: str, fields: Sequence[Field]) -> None:
    for each in fields:
        if _NAME.fullmatch(each.name) is None:
            raise TableError(f"the format {format_name} has no name {each.name!r}: letters, digits and _")


def with_fields(format_name: str, text: str, fields: Sequence[Field]) -> str:
    """The text of an Avro record or of an object's JSON Schema with more fields. Raises TableError."""
    found = json.loads(text)
    if not isinstance(found, dict) or not isinstance(
        found.get("fields" if format_name == "avro" else "properties"), (list, dict)
    ):
        raise TableError("the schema is none of a record, so it cannot have another column")
    if format_name == "avro":
        found["fields"] += [avro_field(each, f"{found['name']}_{each.name}") for each in fields]
    else:
        found["properties"].update({each.name: json_property(each) for each in fields})
    return json.dumps(found)


def _refused(format_name: str, field: Field) -> TableError:
    return TableError(f"the format {format_name} has no type for the column {field.name}: {type_name(field)}")


def avro_field(field: Field, path: str) -> dict[str, Any]:
    """A field of an Avro record. A column that may be null has the default null, or the value that records without the field have."""
    kind = _avro_type(field, path)
    missing = missing_of(field)
    if field.nullable and missing is not None:
        return {"name": field.name, "type": [kind, "null"], "default": json.loads(missing)}
    return {"name": field.name, "type": ["null", kind], "default": None} if field.nullable else {"name": field.name, "type": kind}


def _avro(name: str, fields: Sequence[Field]) -> str:
    return json.dumps({"type": "record", "name": name, "fields": [avro_field(each, f"{name}_{each.name}") for each in fields]})


def _avro_type(field: Field, path: str) -> Any:
    kind: Any = field.type
    if mark_of(field) == UUID:
        return {"type": "string", "logicalType": "uuid"}
    if kind in _AVRO:
        return _AVRO[kind]
    if pt.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if pt.is_list(kind):
        return {"type": "array", "items": ["null", _avro_type(kind.value_field.with_name(field.name), path)]}
    if pt.is_map(kind) and pt.is_string(kind.key_type):
        return {"type": "map", "values": ["null", _avro_type(kind.item_field.with_name(field.name), path)]}
    if pt.is_struct(kind):
        return {"type": "record", "name": path, "fields": [avro_field(each, f"{path}_{each.name}") for each in kind]}
    raise _refused("avro", field)


def json_property(field: Field) -> dict[str, Any]:
    """A property of a JSON Schema."""
    made = _json_type(field)
    if not field.nullable:
        return made
    if isinstance(made.get("type"), str):
        return {**made, "type": ["null", made["type"]]}
    return made


def _json_schema(name: str, fields: Sequence[Field]) -> str:
    made = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": name,
        "type": "object",
        "properties": {each.name: json_property(each) for each in fields},
        "additionalProperties": False,  # otherwise a property that is added would not be compatible
        "required": [each.name for each in fields if not each.nullable],
    }
    return json.dumps(made if made["required"] else {key: value for key, value in made.items() if key != "required"})


def _json_type(field: Field) -> dict[str, Any]:
    kind: Any = field.type
    if mark_of(field) == JSON:
        return {}
    if kind in _JSON and not mark_of(field):
        return {"type": _JSON[kind]}
    if pt.is_list(kind):
        return {"type": "array", "items": json_property(kind.value_field.with_name(field.name))}
    if pt.is_map(kind) and pt.is_string(kind.key_type):
        return {"type": "object", "additionalProperties": json_property(kind.item_field.with_name(field.name))}
    if pt.is_struct(kind):
        return {"type": "object", "properties": {each.name: json_property(each) for each in kind}}
    raise _refused("json_schema", field)


def _protobuf(name: str, fields: Sequence[Field]) -> str:
    return protobuf_text(name, fields, protobuf_scalar)


def protobuf_scalar(kind: Any) -> tuple[str, str] | None:
    """The type of Protobuf for a type in Arrow, and no options."""
    return (_PROTOBUF[kind], "") if kind in _PROTOBUF else None


def protobuf_text(
    name: str, fields: Sequence[Field], typed: Callable[[Any], tuple[str, str] | None], imports: Mapping[str, str] = _IMPORTS
) -> str:
    """The schema of a message.

    Args:
        typed: the type of a field and its options, such as `[deprecated = true]`, by the type in Arrow; None: there is none.
        imports: the files of types and options, by a text that stands where one of them is used.

    Raises:
        TableError: a type that Protobuf lacks.
    """
    _check_names("protobuf", fields)
    body = _message(_legal(name), fields, typed)
    files = [f'import "{file}";\n' for word, file in imports.items() if word in body]
    return f'syntax = "proto3";\n{"".join(files)}{body}'


def _message(name: str, fields: Sequence[Field], typed: Callable[[Any], tuple[str, str] | None]) -> str:
    lines, inner = [], []
    for number, each in enumerate(fields, 1):
        kind: Any = each.type
        word, options = "optional", ""
        if pt.is_list(kind):
            word, kind = "repeated", kind.value_type
        is_map = pt.is_map(kind) and pt.is_string(kind.key_type)
        found = typed(kind.item_type if is_map else kind)
        if pt.is_struct(kind):
            title = f"{each.name}_message"
            inner.append(_message(title, list(kind), typed))
            text = title
        elif found is not None and not mark_of(each):
            text, options = found
            word, text = ("", f"map<string, {text}>") if is_map else (word, text)
        else:
            raise _refused("protobuf", each)
        lines.append(f"  {word} {text} {each.name} = {number}{options};")
    return f"message {name} {{\n" + "\n".join([*inner, *lines]) + "\n}\n"
