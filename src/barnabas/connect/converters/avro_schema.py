"""Schemas in Avro as Confluent's converter writes them, for the types of Arrow that stand for Kafka Connect's schemas.

Avro's own attributes say how values are written; `connect.name`, `connect.version` and `connect.type` keep what Avro lacks, such as the
names of Debezium's types. `named` reads these names back.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from barnabas.connect.converters.json_schema import LOGICAL, NAME, VERSION, extras_of, name_of, schema_of
from barnabas.connect.errors import ConnectError

types: Any = pa.types
DEFAULT = "ConnectDefault"  # Confluent's name of a record without one
PARTS = ("version", "parameters", "default", "name")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN = {
    "boolean": "boolean", "int32": "int", "int64": "long", "float": "float", "double": "double", "string": "string", "bytes": "bytes",
    "int8": {"type": "int", "connect.type": "int8"}, "int16": {"type": "int", "connect.type": "int16"},
}  # fmt: skip
_TIMES: Mapping[str, Any] = {"time-millis": (pa.int32(), pa.time32("ms")), "time-micros": (pa.int64(), pa.time64("us"))}
_LOGICAL = {"Date": ("int", "date"), "Time": ("int", "time-millis"), "Timestamp": ("long", "timestamp-millis")}


def record_text(kind: Any, name: str | None, version: int | None) -> str:
    """The schema of a struct. Raises ConnectError for a type or a name that Avro lacks."""
    made = _Schemas().record(kind, name or DEFAULT, version if name is not None or version is not None else None)
    return json.dumps(made)


def plain_text(kind: Any) -> str:
    """The schema of a value that is no struct. Raises ConnectError."""
    return json.dumps(_Schemas().made(pa.field("value", kind), DEFAULT))


class _Schemas:
    """The schemas of one text, with the names of the records that are defined."""

    def __init__(self) -> None:
        self._records: dict[str, tuple[str, Any]] = {}  # names and types, by the name in Avro

    def made(self, field: pa.Field[Any], path: str) -> Any:
        """The schema of a field that is not null.

        Args:
            path: the name of a record that has none.
        """
        kind: Any = field.type
        name, version = name_of(field.metadata), extras_of(field.metadata).get("version")
        if types.is_struct(kind):
            return self.record(kind, name or path, version)
        if types.is_list(kind) or types.is_large_list(kind):
            return {"type": "array", "items": self._optional(kind.value_field, path), **_extras(field)}
        if types.is_map(kind):
            if not types.is_string(kind.key_type):
                raise ConnectError(f"the map {field.name} has keys of the type {kind.key_type}, and those of Avro are strings")
            return {"type": "map", "values": self._optional(kind.item_field, path), **_extras(field)}
        found, more = _scalar(field.name, kind), _extras(field)
        return found if not more else {"type": found, **more} if isinstance(found, str) else {**found, **more}

    def _optional(self, field: pa.Field[Any], path: str) -> Any:
        made = self.made(field, path)
        return ["null", made] if field.nullable else made

    def _field(self, field: pa.Field[Any], path: str) -> dict[str, Any]:
        """Type and default of a field; the default is one of the first type of a union."""
        default = _default(field)
        if default is None:
            return {"type": self._optional(field, path), **({"default": None} if field.nullable else {})}
        made = self.made(field, path)
        return {"type": [made, "null"] if field.nullable else made, "default": default}

    def record(self, kind: Any, name: str, version: int | None) -> Any:
        """The schema of a struct; the name alone of one that is known."""
        space, own = _legal(name)
        whole = f"{space}.{own}" if space else own
        if whole in self._records:
            known_name, known = self._records[whole]
            if known_name == name and known.equals(kind, check_metadata=True):
                return whole
            raise ConnectError(f"two structs have the name {whole} and other fields, which Avro does not allow")
        self._records[whole] = name, kind
        fields = []
        for each in kind:
            if _NAME.fullmatch(each.name) is None:
                raise ConnectError(f"Avro has no field with the name {each.name!r}: letters, digits and _")
            fields.append({"name": each.name, **self._field(each, f"{own}_{each.name}")})
        made: dict[str, Any] = {"type": "record", "name": own, **({"namespace": space} if space else {}), "fields": fields}
        if version is not None:
            made["connect.version"] = version
        if not name.startswith(DEFAULT):
            made["connect.name"] = name
        return made


def _legal(name: str) -> tuple[str, str]:
    """Namespace and name of a record, with _ where Avro allows no such letter."""
    parts = [re.sub(r"[^A-Za-z0-9_]", "_", each) for each in name.split(".")]
    *space, own = [each if _NAME.fullmatch(each) else f"_{each}" for each in parts]
    return ".".join(space), own


def _scalar(name: str, kind: Any) -> Any:
    if types.is_null(kind):
        return "string"
    try:
        schema = schema_of(kind)
    except ConnectError:
        raise ConnectError(f"the field {name} has the type {kind}, and Kafka Connect has none that stands for it") from None
    logical = str(schema.get("name", "")).removeprefix(LOGICAL)
    if logical == "Decimal":
        scale = kind.scale
        return {
            "type": "bytes", "scale": scale, "precision": kind.precision, "connect.version": 1,
            "connect.parameters": {"scale": str(scale)}, "connect.name": LOGICAL + logical, "logicalType": "decimal",
        }  # fmt: skip
    if logical in _LOGICAL:
        base, own = _LOGICAL[logical]
        return {"type": base, "connect.version": 1, "connect.name": LOGICAL + logical, "logicalType": own}
    return _PLAIN[schema["type"]]


def _extras(field: pa.Field[Any]) -> dict[str, Any]:
    """What the schema of a field has beside its type."""
    found = {**extras_of(field.metadata), "default": _default(field)}
    return {f"connect.{part}": found[part] for part in PARTS if found.get(part) is not None}


def _default(field: pa.Field[Any]) -> Any:
    """The default of a field as Avro has it: bytes are a text; None for none, and for a number that JSON lacks."""
    found, kind = extras_of(field.metadata).get("default"), field.type
    if types.is_binary(kind) or types.is_decimal(kind):
        return None if found is None else b64decode(found).decode("latin-1")
    is_name = isinstance(found, str) and not types.is_string(kind)
    return None if types.is_nested(kind) or is_name else found


def named(text: str, fields: Sequence[pa.Field[Any]]) -> list[pa.Field[Any]]:
    """The fields of a record with what its schema says about their types: names, and which numbers are times."""
    return _named_fields(json.loads(text), fields, {})


def _named_fields(schema: Any, fields: Sequence[pa.Field[Any]], known: dict[str, Any]) -> list[pa.Field[Any]]:
    own = {each["name"]: each["type"] for each in schema.get("fields", ())} if isinstance(schema, dict) else {}
    return [_named(own[each.name], each, known) if each.name in own else each for each in fields]


def _named(schema: Any, field: pa.Field[Any], known: dict[str, Any]) -> pa.Field[Any]:
    if isinstance(schema, list):
        others = [each for each in schema if each != "null"]
        return _named(others[0], field, known) if len(others) == 1 else field
    if isinstance(schema, str):
        schema = known.get(schema, schema)
    if not isinstance(schema, dict):
        return field
    kind: Any = field.type
    match schema.get("type"):
        case "record":
            space = schema.get("namespace")
            known[schema["name"]] = known[f"{space}.{schema['name']}"] = schema
            if types.is_struct(kind):
                field = field.with_type(pa.struct(_named_fields(schema, list(kind), known)))
        case "array" if types.is_list(kind):
            field = field.with_type(pa.list_(_named(schema["items"], kind.value_field, known)))
        case dict() | list():
            return _named(schema["type"], field, known)
    time = _TIMES.get(str(schema.get("logicalType")))
    if time is not None and kind == time[0]:
        field = field.with_type(time[1])
    name = schema.get("connect.name")
    if not isinstance(name, str) or name.startswith(LOGICAL):
        return field
    return field.with_metadata({NAME: name.encode(), VERSION: str(schema.get("connect.version", "")).encode()})
