"""The logical types that each type may have. A logical type that does not fit is a plain property, as in Avro's specification."""

from __future__ import annotations

from typing import Any

from barnabas.registry.formats.avro.types import Fixed, Primitive

_FITS = {
    "date": "int",
    "time-millis": "int",
    "time-micros": "long",
    "timestamp-millis": "long",
    "timestamp-micros": "long",
    "timestamp-nanos": "long",
    "local-timestamp-millis": "long",
    "local-timestamp-micros": "long",
    "local-timestamp-nanos": "long",
    "big-decimal": "bytes",
    "uuid": "string",
}
_FIXED_SIZES = {"uuid": 16, "duration": 12}


def logical_attributes(kind: Primitive | Fixed) -> dict[str, Any]:
    """`logicalType` and its arguments if it fits `kind`; otherwise an empty dict. A scale of 0 is left out, because it is the
    default."""
    properties = kind.properties
    name = properties.get("logicalType") if properties else None
    if properties is None or not isinstance(name, str):
        return {}
    if name == "decimal":
        return _decimal(kind, properties)
    fits = _FIXED_SIZES.get(name) == kind.size if isinstance(kind, Fixed) else _FITS.get(name) == kind.kind
    return {"logicalType": name} if fits else {}


def _decimal(kind: Primitive | Fixed, properties: dict[str, Any]) -> dict[str, Any]:
    precision, scale = properties.get("precision"), properties.get("scale", 0)
    if type(precision) is not int or type(scale) is not int or precision <= 0 or not 0 <= scale <= precision:
        return {}
    if isinstance(kind, Fixed):
        if precision > _digits(kind.size):
            return {}
    elif kind.kind != "bytes":
        return {}
    return {"logicalType": "decimal", "precision": precision} | ({"scale": scale} if scale else {})


def _digits(size: int) -> int:
    """The number of decimal digits that always fit into a signed number of `size` bytes."""
    return int((8 * size - 1) * 0.30102999566398119521) if size else 0
