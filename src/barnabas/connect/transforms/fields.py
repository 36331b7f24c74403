"""Transforms of the fields of keys and values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import ConfigError, Importance, Type
from barnabas.connect.errors import ConnectError
from barnabas.connect.transforms.interface import FieldTransform, Transform, column, fields_of, struct_of, with_column
from barnabas.connect.validators import UniqueList

if TYPE_CHECKING:
    from barnabas.connect.converters.interface import Array

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
    ).define("replace.null.with.default", Type.BOOLEAN, True, documentation="Has no effect here: columns have no defaults.")

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._name, self._names = config["field"], _path(config["field"], config)

    def changed(self, values: Array, records: pa.Table) -> Array:
        found = values
        for name in self._names:
            fields = fields_of(found, "field extraction")
            if fields and name not in fields:
                raise ConnectError(f"Unknown field: {self._name}")
            found = fields.get(name, found)
        return found


class HoistField(FieldTransform):
    """Puts the key or value into a struct of one field."""

    config = ConfigDef().define(
        "field", Type.STRING, importance=MEDIUM, documentation="Field name for the single field of the struct that is made."
    )

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._name = config["field"]

    def changed(self, values: Array, records: pa.Table) -> Array:
        made: Array = pa.StructArray.from_arrays([values], [self._name])
        return made


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
        .define("replace.null.with.default", Type.BOOLEAN, True, documentation="Has no effect here: columns have no defaults.")
    )

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._origins = {each: config[f"{each}.field"].rstrip("!?") for each in self.ORIGINS if config[f"{each}.field"]}
        self._static = (config["static.field"] or "").rstrip("!?")
        self._constant = config["static.value"]
        if not self._origins and not self._static:
            raise ConfigError("No field insertion configured")
        if self._static and self._constant is None:
            raise ConfigError(f"No value specified for static field: {self._static}")

    def changed(self, values: Array, records: pa.Table) -> Array:
        if pa.types.is_null(values.type):
            return values
        fields = fields_of(values, "field insertion")
        for origin, name in self._origins.items():
            found = column(records, origin)
            fields[name] = found.cast(self.TYPES[origin]) if pa.types.is_null(found.type) else found
        if self._static:
            fields[self._static] = pa.repeat(self._constant, len(values))
        return struct_of(fields, values)


class ReplaceField(FieldTransform):
    """Drops fields, keeps some alone, or gives them other names."""

    config = (
        ConfigDef()
        .define("exclude", Type.LIST, (), importance=MEDIUM, documentation="Fields to exclude. This goes before include.")
        .define("include", Type.LIST, (), importance=MEDIUM, documentation="Fields to include; the others are left out.")
        .define("renames", Type.LIST, (), importance=MEDIUM, documentation="Field rename mappings: foo:bar,abc:xyz.")
        .define("replace.null.with.default", Type.BOOLEAN, True, documentation="Has no effect here: columns have no defaults.")
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
            self._renames.get(name, name): each
            for name, each in fields_of(values, "field replacement").items()
            if name not in self._exclude and (not self._include or name in self._include)
        }
        return struct_of(kept, values)


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
        .define("replace.null.with.default", Type.BOOLEAN, True, documentation="Has no effect here: columns have no defaults.")
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
            {name: self._masked(name, each) if name in self._names else each for name, each in fields.items()}, values
        )

    def _masked(self, name: str, values: Array) -> Array:
        kind, given = values.type, self._replacement
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
        elif pa.types.is_struct(kind) or pa.types.is_list(kind) or pa.types.is_map(kind):
            empty = pa.scalar([] if not pa.types.is_struct(kind) else None, kind)
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
        .define("replace.null.with.default", Type.BOOLEAN, True, documentation="Has no effect here: columns have no defaults.")
    )

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._names = list(config["fields"])
        if not self._names:
            raise ConfigError("Invalid value [] for configuration fields: Empty list")

    def apply(self, records: pa.Table) -> pa.Table:
        values = column(records, "value")
        fields = fields_of(values, "copying fields from value to key")
        if missing := [name for name in self._names if fields and name not in fields]:
            raise ConnectError(f"Field does not exist: {missing[0]}")
        return with_column(records, "key", struct_of({name: fields[name] for name in self._names if fields}, values))


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
    """Sets name and version of a schema. Columns have neither, so records stay as they are."""

    config = (
        ConfigDef()
        .define("schema.name", Type.STRING, None, importance=HIGH, documentation="Schema name to set.")
        .define("schema.version", Type.INT, None, importance=HIGH, documentation="Schema version to set.")
        .define("replace.null.with.default", Type.BOOLEAN, True, documentation="Has no effect here: columns have no defaults.")
    )

    def changed(self, values: Array, records: pa.Table) -> Array:
        return values
