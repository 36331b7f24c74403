"""`Cast`: other types of fields, or of the whole key or value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import ConfigError, Importance, Type
from barnabas.connect.converters.connect_texts import texts_of
from barnabas.connect.errors import ConnectError
from barnabas.connect.transforms.interface import REPLACE_NULL, FieldTransform, fields_of, mapped, struct_of
from barnabas.connect.validators import Checked

if TYPE_CHECKING:
    from barnabas.connect.converters.interface import Array

KINDS: Mapping[str, pa.DataType] = {
    "int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64(), "float32": pa.float32(),
    "float64": pa.float64(), "boolean": pa.bool_(), "string": pa.string(),
}  # fmt: skip


def _not_empty(_name: str, value: Any) -> None:
    if not value:
        raise ConfigError("Must specify at least one field to cast.")


class Cast(FieldTransform):
    """See the module."""

    config = (
        ConfigDef()
        .define(
            "spec", Type.LIST, importance=Importance.HIGH, validator=Checked(_not_empty, "not empty"),
            documentation="Fields and their types, as field1:type,field2:type; one type alone is for the whole. "
            "Types: int8, int16, int32, int64, float32, float64, boolean, string.",
        )
        .define(**REPLACE_NULL)
    )  # fmt: skip

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._whole: pa.DataType | None = None
        self._fields: dict[str, pa.DataType] = {}
        if not config["spec"]:
            raise ConfigError("Invalid value [] for configuration spec: Must specify at least one field to cast.")
        for each in config["spec"]:
            name, colon, kind = each.strip().rpartition(":")
            if kind.strip() not in KINDS:
                raise ConfigError(f"Invalid value {each} for configuration spec: Invalid schema type in cast: {kind.strip()}")
            if colon:
                self._fields[name.strip()] = KINDS[kind.strip()]
            else:
                self._whole = KINDS[kind.strip()]
        if self._whole is not None and len(config["spec"]) > 1:
            raise ConfigError(
                "Cast transformations that specify a type to cast the entire value to may only specify a single cast in their spec"
            )

    def changed(self, values: Array, records: pa.Table) -> Array:
        if self._whole is not None:
            return cast(values, self._whole)
        if pa.types.is_null(values.type):
            return values
        fields = fields_of(values, "cast types")
        return struct_of(
            {name: cast(each, self._fields[name]) if name in self._fields else each for name, each in fields.items()}, values
        )


def cast(values: Array, kind: pa.DataType) -> Array:
    """A column in another type, by Java's rules: numbers lose what the type does not hold. Raises ConnectError."""
    source = values.type
    if source == kind or pa.types.is_null(source):
        return values.cast(kind)
    if pa.types.is_nested(source):
        raise ConnectError(f"Cast transformation does not support casting from {source}")
    if pa.types.is_string(kind):
        return pa.array(texts_of(values), kind)
    if pa.types.is_temporal(source):
        values = _since_epoch(values)
        source = values.type
    try:
        if pa.types.is_floating(source) and pa.types.is_integer(kind):
            return _whole(values, kind)
        if pa.types.is_boolean(kind) and (pa.types.is_integer(source) or pa.types.is_floating(source)):
            return pc.not_equal(values, pa.scalar(0, source))
        if pa.types.is_string(source):
            return _parsed(values, kind)
        made: Array = pc.cast(values, kind, safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise ConnectError(f"Value cannot be cast from {source} to {kind}: {error}") from None
    return made


def _since_epoch(values: Array) -> Array:
    kind: Any = values.type
    if pa.types.is_timestamp(kind):
        return values.cast(pa.timestamp("ms", kind.tz), safe=False).cast(pa.int64())
    if pa.types.is_date(kind):
        return values.cast(pa.date32()).cast(pa.int32())
    return values.cast(pa.time32("ms"), safe=False).cast(pa.int32())


def _whole(values: Array, kind: pa.DataType) -> Array:
    """Numbers without their fraction. Those beyond 32 bits, or 64, become the last number there; then narrower types take the low bits."""
    bits = 64 if pa.types.is_int64(kind) else 32
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def number(each: float) -> int:
        return 0 if each != each else most if each >= most else least if each <= least else int(each)

    return pc.cast(mapped(values, number, pa.int64()), kind, safe=False)


def _parsed(values: Array, kind: pa.DataType) -> Array:
    if pa.types.is_boolean(kind):
        return mapped(values, lambda each: each.lower() == "true", kind)
    made: Array = pc.cast(values, kind)
    return made
