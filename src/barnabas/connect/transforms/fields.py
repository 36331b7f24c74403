"""Transforms of the fields of keys and values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import ConfigError, Importance, Type
from barnabas.connect.converters.json_schema import NAME, OPTIONAL, VERSION, WITHOUT_SCHEMA
from barnabas.connect.errors import ConnectError
from barnabas.connect.transforms.interface import (
    REPLACE_NULL,
    FieldTransform,
    Transform,
    column,
    fields_by_name,
    fields_of,
    has_schema,
    metadata_of,
    struct_of,
    with_column,
)
from barnabas.connect.validators import UniqueList

if TYPE_CHECKING:
    from barnabas.connect.converters.interface import Array, Metadata

HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
SYNTAX = ("field.syntax.version", "V1: the name of a field is one name. V2: dots lead to the fields of fields.")


def _path(name: str, config: Mapping[str, Any]) -> list[str]:
    return name.split(".") if config["field.syntax.version"] == "V2" else [name]


def _with_syntax(made: ConfigDef) -> ConfigDef:
    return made.define(SYNTAX[0], Type.STRING, "V1", importance=HIGH, documentation=SYNTAX[1])


class ExtractField(FieldTransform):
    """Makes one field the whole key or value; of a null key or value it stays null."""

    config = _with_syntax(
        ConfigDef().define("field", Type.STRING, importance=MEDIUM, documentation="Field name to extract.")
    ).define(**REPLACE_NULL)

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._name, self._names = config["field"], _path(config["field"], config)

    def changed(self, values: Array, records: pa.Table) -> Array:
        found = values
        for name in self._names:
            fields = fields_of(found, "field extraction")
            if fields and name not in fields:
                if has_schema(records, self.side):
                    raise ConnectError(f"Unknown field: {self._name}")
                return pa.nulls(len(values))
            found = fields.get(name, found)
        return found

    def metadata(self, records: pa.Table) -> Metadata:
        if not has_schema(records, self.side):
            return super().metadata(records)
        kind: Any = column(records, self.side).type
        field = None
        for name in self._names:
            field = fields_by_name(kind).get(name)
            kind = None if field is None else field.type
        if field is None:
            return None
        return {**(field.metadata or {}), **({OPTIONAL: b""} if field.nullable else {})}


class HoistField(FieldTransform):
    """Puts the key or value into a struct of one field."""

    config = ConfigDef().define(
        "field", Type.STRING, importance=MEDIUM, documentation="Field name for the single field of the struct that is made."
    )

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._name = config["field"]

    def changed(self, values: Array, records: pa.Table) -> Array:
        before = metadata_of(records, self.side) or {}
        kept = {key: each for key, each in before.items() if key not in {OPTIONAL, WITHOUT_SCHEMA}}
        is_nullable = OPTIONAL in before or values.null_count > 0
        made: Array = pa.StructArray.from_arrays([values], fields=[pa.field(self._name, values.type, is_nullable, kept or None)])
        return made

    def metadata(self, records: pa.Table) -> Metadata:
        return None if has_schema(records, self.side) else super().metadata(records)


class InsertField(FieldTransform):
    """Adds fields: from where the record comes, or a constant."""

    ORIGINS = ("topic", "partition", "offset", "timestamp")
    TYPES: ClassVar[Mapping[str, pa.DataType]] = {
        "topic": pa.string(), "partition": pa.int32(), "offset": pa.int64(), "timestamp": pa.timestamp("ms", "UTC"),
    }  # fmt: skip
    config = ConfigDef()
    for _origin in ORIGINS:
        config = config.define(
            f"{_origin}.field", Type.STRING, None,
            documentation=f"Field name for the {_origin} of the record. A ! behind it makes the field required, a ? optional.",
        )  # fmt: skip
    config = (
        config.define("static.field", Type.STRING, None, documentation="Field name for the constant.")
        .define("static.value", Type.STRING, None, documentation="The constant.")
        .define(**REPLACE_NULL)
    )

    def __init__(self, config: Mapping[str, Any]) -> None:
        given = {each: config[f"{each}.field"] for each in (*self.ORIGINS, "static") if config[f"{each}.field"]}
        self._required = {each.rstrip("!") for each in given.values() if each.endswith("!")}
        names = {origin: each[:-1] if each[-1] in "!?" else each for origin, each in given.items()}
        self._static = names.pop("static", "")
        self._origins = names
        self._constant = config["static.value"]
        if not self._origins and not self._static:
            raise ConfigError("No field insertion configured")
        if self._static and self._constant is None:
            raise ConfigError(f"No value specified for static field: {self._static}")

    def changed(self, values: Array, records: pa.Table) -> Array:
        if pa.types.is_null(values.type):
            return values
        fields = fields_of(values, "field insertion")
        names = [*self._origins.values(), *([self._static] if self._static else [])]
        if has_schema(records, self.side) and (twice := [name for name in names if name in fields]):
            raise ConnectError(f"Cannot create field because of field name duplication {twice[0]}")
        for origin, name in self._origins.items():
            found = column(records, origin)
            fields[name] = found.cast(self.TYPES[origin]) if pa.types.is_null(found.type) else found
        if self._static:
            fields[self._static] = pa.repeat(self._constant, len(values))
        added = {name: pa.field(name, fields[name].type, name not in self._required) for name in names}
        return struct_of(fields, values, added)


class ReplaceField(FieldTransform):
    """Drops fields, keeps some alone, or gives them other names."""

    config = (
        ConfigDef()
        .define("exclude", Type.LIST, (), importance=MEDIUM, documentation="Fields to exclude. This goes before include.")
        .define("include", Type.LIST, (), importance=MEDIUM, documentation="Fields to include; the others are left out.")
        .define("renames", Type.LIST, (), importance=MEDIUM, documentation="Field rename mappings: foo:bar,abc:xyz.")
        .define(**REPLACE_NULL)
    )

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._exclude, self._include = set(config["exclude"]), set(config["include"])
        self._renames = {}
        for each in config["renames"]:
            before, colon, after = each.partition(":")
            if not colon or not before or not after:
                raise ConfigError(f"Invalid value {each} for configuration renames: Invalid rename mapping: {each}")
            self._renames[before] = after

    def changed(self, values: Array, records: pa.Table) -> Array:
        if pa.types.is_null(values.type):
            return values
        kept = {
            name: each
            for name, each in fields_of(values, "field replacement").items()
            if name not in self._exclude and (not self._include or name in self._include)
        }
        kinds = {self._renames.get(name, name): field for name, field in fields_by_name(values.type).items()}
        return struct_of({self._renames.get(name, name): each for name, each in kept.items()}, values, kinds)


class MaskField(FieldTransform):
    """Replaces the values of fields by the empty value of their type, or by a given one."""

    config = (
        ConfigDef()
        .define(
            "fields", Type.LIST, importance=HIGH, validator=UniqueList(may_be_empty=False), documentation="Names of fields to mask.",
        )
        .define(
            "replacement", Type.STRING, None, importance=LOW, validator=None,
            documentation="A constant that replaces the values of numeric and string fields.",
        )
        .define(**REPLACE_NULL)
    )  # fmt: skip

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._names, self._replacement = set(config["fields"]), config["replacement"]
        if not self._names:
            raise ConfigError("Invalid value [] for configuration fields: Empty list")
        if self._replacement == "":
            raise ConfigError("Invalid value  for configuration replacement: String must be non-empty")

    def changed(self, values: Array, records: pa.Table) -> Array:
        if pa.types.is_null(values.type):
            return values
        fields = fields_of(values, "mask field")
        return struct_of(
            {
                name: self._masked(name, each, has_schema=has_schema(records, self.side)) if name in self._names else each
                for name, each in fields.items()
            },
            values,
        )

    def _masked(self, name: str, values: Array, *, has_schema: bool) -> Array:
        kind, given = values.type, self._replacement
        if pa.types.is_null(kind):
            return values
        if pa.types.is_struct(kind) and (has_schema or given is not None):
            raise ConnectError(f"Cannot mask value of type {kind}: {name}")
        can_replace = (
            pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        )
        empty: Any
        if given is not None:
            if not can_replace:
                raise ConnectError(f"Cannot mask value of type {kind} with custom replacement: {name}")
            try:
                empty = pc.cast(pa.scalar(given), kind)
            except pa.ArrowInvalid as error:
                raise ConnectError(f"Unable to convert {given} ({name}) to number: {error}") from None
        elif pa.types.is_struct(kind):
            return pa.array([None if each is None else {} for each in values.to_pylist()], pa.struct([]))
        elif pa.types.is_list(kind) or pa.types.is_map(kind):
            empty = pa.scalar([], kind)
        elif pa.types.is_binary(kind):
            empty = pa.scalar(b"", kind)
        elif pa.types.is_string(kind):
            empty = pa.scalar("", kind)
        else:
            empty = pc.cast(pa.scalar(0, pa.int32() if pa.types.is_date(kind) or pa.types.is_time32(kind) else pa.int64()), kind)
        filled: Any = pa.repeat(empty, len(values))
        null: Any = pa.nulls(len(values), kind)
        made: Array = pc.if_else(pc.is_null(values), null, filled)
        return made


class ValueToKey(Transform):
    """Makes the key of fields of the value."""

    config = (
        ConfigDef()
        .define(
            "fields",
            Type.LIST,
            importance=HIGH,
            validator=UniqueList(may_be_empty=False),
            documentation="Field names on the record value to extract as the record key.",
        )
        .define(**REPLACE_NULL)
    )

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._names = list(config["fields"])
        if not self._names:
            raise ConfigError("Invalid value [] for configuration fields: Empty list")

    def apply(self, records: pa.Table) -> pa.Table:
        values = column(records, "value")
        fields = fields_of(values, "copying fields from value to key")
        for name in [name for name in self._names if fields and name not in fields]:
            if has_schema(records, "value"):
                raise ConnectError(f"Field does not exist: {name}")
            fields[name] = pa.nulls(len(values))
        made = struct_of({name: fields[name] for name in self._names if fields}, values)
        return with_column(records, "key", made, None if has_schema(records, "value") else {WITHOUT_SCHEMA: b""})


class Flatten(FieldTransform):
    """Makes the fields of fields fields of the whole, with the names joined."""

    config = ConfigDef().define(
        "delimiter", Type.STRING, ".", importance=MEDIUM, documentation="Delimiter between the names of fields that are joined."
    )

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._delimiter = config["delimiter"]

    def changed(self, values: Array, records: pa.Table) -> Array:
        if pa.types.is_null(values.type):
            return values
        return struct_of(self._flat(values, ""), values)

    def _flat(self, values: Array, prefix: str) -> dict[str, Array]:
        found: dict[str, Array] = {}
        for name, each in fields_of(values, "flattening").items():
            whole = f"{prefix}{name}"
            found |= self._flat(each, f"{whole}{self._delimiter}") if pa.types.is_struct(each.type) else {whole: each}
        return found


class SetSchemaMetadata(FieldTransform):
    """Sets name and version of the schema of records that have one."""

    config = (
        ConfigDef()
        .define("schema.name", Type.STRING, None, importance=HIGH, documentation="Schema name to set.")
        .define("schema.version", Type.INT, None, importance=HIGH, documentation="Schema version to set.")
        .define(**REPLACE_NULL)
    )

    def __init__(self, config: Mapping[str, Any]) -> None:
        name, version = config["schema.name"], config["schema.version"]
        if name is None and version is None:
            raise ConfigError("Neither schema name nor version configured")
        self._set = {} if name is None else {NAME: name.encode(), VERSION: b""}
        if version is not None:
            self._set[VERSION] = str(version).encode()

    def changed(self, values: Array, records: pa.Table) -> Array:
        if not pa.types.is_null(values.type) and not has_schema(records, self.side):
            raise ConnectError("Schema required for [updating schema metadata]")
        return values

    def metadata(self, records: pa.Table) -> Metadata:
        before = super().metadata(records) or {}
        kept = {VERSION: before[VERSION]} if VERSION in before and self._set[VERSION] == b"" else {}
        return {**before, **self._set, **kept}
