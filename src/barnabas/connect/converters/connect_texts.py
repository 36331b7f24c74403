"""Values as the texts of Kafka Connect's `Values`, and texts as values: what `SimpleHeaderConverter` writes, and `InsertHeader` reads."""

from __future__ import annotations

import base64
import datetime
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    Array = pa.Array[Any]

types: Any = pa.types
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_DAY_MS = 86_400_000
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")
_DATE, _MOMENT, _TIME = (
    re.compile(each) for each in (r"\d{4}-\d\d-\d\d", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", r"\d\d:\d\d:\d\d\.\d{3}Z")
)
_DELIMITERS = re.compile(r"[,:{}\[\]\"]")
_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_WIDTHS = {kind: at for at, kind in enumerate((*_INTEGERS, pa.float32(), pa.float64()))}


def texts_of(column: Array) -> list[str | None]:
    """The texts of a column. Nested texts are in quotes."""
    return [None if each is None else _text(each, column.type, is_inner=False) for each in column.to_pylist()]


def _text(value: Any, kind: Any, *, is_inner: bool) -> str:
    if value is None:
        return "null"
    if kind is not None and types.is_floating(kind):
        return float_text(value, is_single=types.is_float32(kind) or types.is_float16(kind))
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case Decimal():
            return str(value)
        case str():
            return _quoted(value) if is_inner else value
        case bytes():
            found = base64.b64encode(value).decode()
            return f'"{found}"' if is_inner else found
        case dict():
            fields = {each.name: each.type for each in kind}
            return "{" + ",".join(f'"{name}":{_text(each, fields[name], is_inner=True)}' for name, each in value.items()) + "}"
        case list() if types.is_map(kind):
            pairs = (
                f"{_text(key, kind.key_type, is_inner=True)}:{_text(each, kind.item_type, is_inner=True)}" for key, each in value
            )
            return "{" + ",".join(pairs) + "}"
        case list():
            return "[" + ",".join(_text(each, kind.value_type, is_inner=True) for each in value) + "]"
    return _time_text(value)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _time_text(value: Any) -> str:
    """A time. The form follows from the value alone, whatever its type is, as in Kafka."""
    match value:
        case datetime.datetime():
            moment = value if value.tzinfo is not None else value.replace(tzinfo=datetime.UTC)
        case datetime.date():
            moment = datetime.datetime.combine(value, datetime.time(), datetime.UTC)
        case _:
            moment = datetime.datetime.combine(_EPOCH.date(), value, datetime.UTC)
    moment = moment.astimezone(datetime.UTC)
    since_ms = (moment - _EPOCH) // datetime.timedelta(milliseconds=1)
    clock = f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03d}Z"
    if since_ms < _DAY_MS:
        return clock
    day = f"{moment.year:04d}-{moment:%m-%d}"
    return day if since_ms % _DAY_MS == 0 else f"{day}T{clock}"


def float_text(value: float, *, is_single: bool) -> str:
    """A number as Java's Float and Double show it."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    number = np.float32(value) if is_single else np.float64(value)
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return np.format_float_positional(number, unique=True, trim="0")
    mantissa, _, exponent = np.format_float_scientific(number, unique=True, trim="0").partition("e")
    return f"{mantissa}E{int(exponent)}"


class Parsed:
    """A value that was read, with its type; the type is None if Kafka Connect has no schema for it."""

    def __init__(self, value: Any, kind: Any, text: str) -> None:
        self.value, self.kind, self.text = value, kind, text

    @property
    def column(self) -> Array:
        """A column with this value alone; its text, where it has no type."""
        made: Array = pa.array([self.text], pa.string()) if self.kind is None else pa.array([self.value], self.kind)
        return made


def parsed(text: str) -> Parsed:
    """A literal as `Values.parseString` reads it. A text that is nothing else is a string as it is."""
    stripped = text.strip()
    if stripped[:1] in {"[", "{"}:
        found = _Reader(text).whole()
    else:
        found = _scalar(stripped) or _scalar(_DELIMITERS.split(stripped, maxsplit=1)[0])  # Kafka reads up to a delimiter
    return found if found is not None else Parsed(text, pa.string(), text)


def _scalar(token: str) -> Parsed | None:
    """A value that is no string; None if there is none."""
    if token in {"true", "false"}:
        return Parsed(token == "true", pa.bool_(), token)
    if _NUMBER.fullmatch(token):
        value, kind = _number(Decimal(token))
    elif _DATE.fullmatch(token):
        value, kind = _day(token), pa.date32()
    elif _MOMENT.fullmatch(token):
        clock = _clock(token[11:])
        value, kind = None if clock is None else _day(token) + clock, pa.timestamp("ms", "UTC")
    elif _TIME.fullmatch(token):
        clock = _clock(token)
        value, kind = None if clock is None else (_EPOCH + clock).time(), pa.time32("ms")
    else:
        return None
    return None if value is None else Parsed(value, kind, _text(value, kind, is_inner=False))


def _number(value: Decimal) -> tuple[Any, Any]:
    """A number in the smallest type that takes it."""
    if abs(value) < 2**64 and value == value.to_integral_value() and -(2**63) <= value < 2**63:
        return int(value), next(kind for kind, bits in zip(_INTEGERS, (8, 16, 32, 64), strict=True) if _fits(int(value), bits))
    exponent = value.as_tuple().exponent
    if exponent:
        if abs(value) <= Decimal(float(np.finfo(np.float32).max)):
            return float(np.float32(float(value))), pa.float32()
        if abs(value) <= Decimal(float(np.finfo(np.float64).max)):
            return float(value), pa.float64()
        return value, None
    return value, pa.decimal128(38, 0) if len(value.as_tuple().digits) <= 38 else None


def _fits(value: int, bits: int) -> bool:
    return -(1 << bits - 1) <= value < 1 << bits - 1


def _day(text: str) -> datetime.datetime:
    """A day; months and days beyond their end go on, as in Java's lenient calendar."""
    year, month, day = int(text[:4]), int(text[5:7]) - 1, int(text[8:10])
    first = datetime.datetime(year + month // 12, month % 12 + 1, 1, tzinfo=datetime.UTC)
    return first + datetime.timedelta(days=day - 1)


def _clock(text: str) -> datetime.timedelta | None:
    hour, minute, second, milli = int(text[:2]), int(text[3:5]), int(text[6:8]), int(text[9:12])
    if hour > 23:
        return None
    return datetime.timedelta(hours=hour, minutes=minute, seconds=second, milliseconds=milli)


class _Broken(Exception):
    """The text is no list and no map."""


class _Reader:
    """Reads lists and maps."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def whole(self) -> Parsed | None:
        """The value; what follows it is left out. None if the text is no list and no map."""
        try:
            return self._value()
        except (_Broken, IndexError):
            return None

    def _next(self) -> str:
        while self._text[self._at].isspace():
            self._at += 1
        return self._text[self._at]

    def _takes(self, mark: str) -> bool:
        found = self._next() == mark
        self._at += found
        return found

    def _value(self) -> Parsed:
        if self._takes("["):
            return self._list()
        if self._takes("{"):
            return self._map()
        if self._takes('"'):
            return self._string()
        end = _DELIMITERS.search(self._text, self._at)
        token = self._text[self._at : len(self._text) if end is None else end.start()].strip()
        found = Parsed(None, pa.null(), "null") if token == "null" else _scalar(token)
        if found is None:
            raise _Broken
        self._at += len(self._text[self._at :]) if end is None else end.start() - self._at
        return found

    def _string(self) -> Parsed:
        begin = self._at
        while self._text[self._at] != '"':
            self._at += 2 if self._text[self._at] == "\\" else 1
        found = self._text[begin : self._at]
        self._at += 1
        return Parsed(found, pa.string(), _quoted(found))

    def _list(self) -> Parsed:
        found: list[Parsed] = []
        while not self._takes("]"):
            found.append(self._value())
            if not self._takes(",") and self._next() != "]":
                raise _Broken
        kind, texts = _common(found)
        values = [each.value for each in found]
        return Parsed(
            values, None if kind is None else pa.list_(pa.field("element", kind, nullable=False)), "[" + ",".join(texts) + "]"
        )

    def _map(self) -> Parsed:
        keys: list[Parsed] = []
        found: list[Parsed] = []
        while not self._takes("}"):
            keys.append(self._value())
            if not self._takes(":"):
                raise _Broken
            found.append(self._value())
            if not self._takes(",") and self._next() != "}":
                raise _Broken
        (key, key_texts), (kind, texts) = _common(keys), _common(found)
        shown = "{" + ",".join(f"{name}:{each}" for name, each in zip(key_texts, texts, strict=True)) + "}"
        pairs = list(zip((each.value for each in keys), (each.value for each in found), strict=True))
        return Parsed(
            pairs, None if key is None or kind is None else pa.map_(key, pa.field("value", kind, nullable=False)), shown
        )


def _common(found: list[Parsed]) -> tuple[Any, list[str]]:
    """The type of all values, and their texts in it."""
    kinds = {each.kind for each in found}
    if len(kinds) == 1:
        (kind,) = kinds
        return None if kind == pa.null() else kind, [each.text for each in found]
    if kinds and all(each in _WIDTHS for each in kinds):
        widest = max(kinds, key=_WIDTHS.__getitem__)
        texts = [_text(float(each.value), widest, is_inner=True) for each in found] if types.is_floating(widest) else None
        return widest, texts or [each.text for each in found]
    if any(each.kind == pa.null() for each in found) and found and not isinstance(found[0], Mapping):
        raise _Broken
    return None, [each.text for each in found]
