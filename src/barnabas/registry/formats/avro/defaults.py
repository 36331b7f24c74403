"""Default values of fields: checks whether a default fits its type, and converts it to the form of Java's Avro."""

from __future__ import annotations

import struct
from typing import Any

import msgspec

from barnabas.limits import MAX_AVRO_DEPTH
from barnabas.registry.formats.avro.types import Collected, Enum, Fixed, Primitive, Record, Type, Union
from barnabas.registry.formats.interface import InvalidSchema

NOT_FINITE = frozenset(("NaN", "Infinity", "-Infinity"))  # the texts of these numbers as a default of a float or double
_TEXTS = frozenset(("string", "bytes", "enum", "fixed"))
_BOUNDS = {"int": 1 << 31, "long": 1 << 63}


def read_number(text: str) -> float | str:
    """The number of a float or double default that is a text. Raises ValueError."""
    stripped = text.strip()
    if stripped in NOT_FINITE:
        return stripped
    if not stripped.isascii() or any(letter not in "+-.0123456789eE" for letter in stripped):
        raise ValueError(text)
    return float(stripped)


class DefaultCheck:
    """Checks many defaults of one schema. It remembers checked pairs of a type and a value, so a chain of records takes linear
    time."""

    def __init__(self) -> None:
        self._fits: dict[tuple[int, int], bool] = {}

    def fits(self, kind: Type, value: Any, depth: int = 0) -> bool:
        """Whether `value` is a default for `kind`. The default of a union may belong to any branch. Raises InvalidSchema if the
        value is nested too deep."""
        if isinstance(kind, Union):
            return any(self.fits(branch, value, depth) for branch in kind.branches)
        if isinstance(kind, (Collected, Record)):
            return self._composite_fits(kind, value, depth)
        return _simple_fits(kind, value)

    def _composite_fits(self, kind: Collected | Record, value: Any, depth: int) -> bool:
        if depth > MAX_AVRO_DEPTH:
            raise InvalidSchema(f"A default is nested deeper than {MAX_AVRO_DEPTH} levels")
        key = id(kind), id(value)
        known = self._fits.get(key)
        if known is None:
            self._fits[key] = False  # ends the recursion: a default that contains itself is infinite
            known = self._fits[key] = self._parts_fit(kind, value, depth + 1)
        return known

    def _parts_fit(self, kind: Collected | Record, value: Any, depth: int) -> bool:
        if isinstance(kind, Record):
            if not isinstance(value, dict):
                return False
            parts = ((field.type, value.get(field.name, field.default)) for field in kind.fields)
            return all(part is not msgspec.UNSET and self.fits(type_, part, depth) for type_, part in parts)
        assert kind.content is not None
        if kind.kind == "array":
            return isinstance(value, list) and all(self.fits(kind.content, item, depth) for item in value)
        return isinstance(value, dict) and all(self.fits(kind.content, item, depth) for item in value.values())


def _simple_fits(kind: Primitive | Enum | Fixed, value: Any) -> bool:
    name = kind.kind
    if name in _TEXTS:
        return isinstance(value, str)
    if name == "null":
        return value is None
    if name == "boolean":
        return isinstance(value, bool)
    if isinstance(value, bool):
        return False
    if name in _BOUNDS:
        return isinstance(value, int) and -_BOUNDS[name] <= value < _BOUNDS[name]
    return isinstance(value, (int, float)) or (isinstance(value, str) and value in NOT_FINITE)


def java_default(kind: Type, value: Any) -> Any:
    """The value that normalisation writes: numbers in the form of their type, UNSET for a value that does not fit.

    Here the default of a union belongs to its first branch.
    """
    if isinstance(kind, Union):
        return java_default(kind.branches[0], value) if kind.branches else msgspec.UNSET
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return _java_number(kind.kind, value)
    if isinstance(value, str):
        return value if kind.kind in _TEXTS or (kind.kind in ("float", "double") and value in NOT_FINITE) else msgspec.UNSET
    if isinstance(value, list):
        if not isinstance(kind, Collected) or kind.content is None:
            return msgspec.UNSET
        return [_or_null(java_default(kind.content, item)) for item in value]
    return _java_object(kind, value)


def _java_object(kind: Type, value: dict[str, Any]) -> Any:
    if isinstance(kind, Record):
        known = kind.by_name
        return {name: _or_null(java_default(known[name].type, part)) for name, part in value.items() if name in known}
    if isinstance(kind, Collected) and kind.content is not None:
        return {name: _or_null(java_default(kind.content, part)) for name, part in value.items()}
    return value


def _or_null(value: Any) -> Any:
    return None if value is msgspec.UNSET else value


def _java_number(kind: str, value: float) -> Any:
    whole = isinstance(value, int)
    if whole and not -_BOUNDS["long"] <= value < _BOUNDS["long"]:
        return msgspec.UNSET
    if kind == "double":
        return float(value)
    if kind == "float":
        return _as_float(float(value))
    return value if whole and kind in _BOUNDS else msgspec.UNSET


def _as_float(value: float) -> Any:
    """The shortest number that reads as the same 32-bit float."""
    try:
        packed = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return "Infinity" if value > 0 else "-Infinity"
    for digits in range(1, 10):
        short = float(f"{packed:.{digits}g}")
        if struct.pack("<f", short) == struct.pack("<f", packed):
            return short
    return packed
