"""A client's values for the parameters of a statement, text and binary, as Python values.

| Postgres | Python |
|---|---|
| bool · integers, oid · floats | bool · int · float |
| numeric | Decimal |
| text and its kin, json | str |
| bytea · uuid | bytes · UUID |
| date · time · timestamp, timestamptz | date · time · datetime |
| interval | timedelta; a text for one with months |
| array | list |

Infinity, years that Python does not have, and times that are not ISO 8601 stay texts: the engine reads them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from struct import Struct, error, unpack
from typing import Any, NamedTuple
from uuid import UUID

import pyarrow as pa

from barnabas.sql.interface import SqlError
from barnabas.sql.postgres import binary_format, text_format
from barnabas.sql.postgres.array_text import split_array
from barnabas.sql.postgres.messages import BINARY, Bind, decoded, format_of
from barnabas.sql.postgres.types import BY_OID, ELEMENTS, FIRST_OF_USERS, NUMBERS, TEXTS, TYPES, PgType, describe

MAX_DIMENSIONS, MAX_ELEMENTS = 6, 1_000_000  # of an array; the first is Postgres' own
MAX_DIGITS = 131_072  # of a numeric, before the point
_EPOCH_DATE, _EPOCH = date(1970, 1, 1), datetime(1970, 1, 1)  # noqa: DTZ001 - timestamps without a zone
_TRUE = frozenset({"t", "true", "y", "yes", "on", "1"})
_FALSE = frozenset({"f", "false", "n", "no", "off", "0"})
_INTEGER = re.compile(r"\s*[+-]?\d+\s*", re.ASCII)
_DATE = re.compile(r"\s*(\d{4}-\d\d-\d\d)\s*[+-]\d\d(?::?\d\d)?\s*", re.ASCII)
TEXT = TYPES["text"]
_SIZES = {"int2": 15, "int4": 31, "int8": 63}
Read = Callable[[Any], Any]


class _Kind(NamedTuple):
    from_text: Callable[[str], Any]
    from_binary: Callable[[bytes], Any]


def values_of(bind: Bind, oids: Sequence[int], kinds: Sequence[pa.DataType]) -> list[Any]:
    """The parameters of a statement as Python has them. Raises SqlError as `value_of` does.

    Args:
        kinds: their types.
    """
    return [
        value_of(value, oid, format_of(bind.formats, index), kinds[index] if oid >= FIRST_OF_USERS else None)
        for index, (value, oid) in enumerate(zip(bind.values, oids, strict=True))
    ]


def value_of(data: bytes | None, oid: int, form: int, kind: Any = None) -> Any:
    """A parameter as Python has it. Raises SqlError: 22P02 and 22P03 for a text or bytes that are none, 22003 for no number in range.

    Args:
        kind: its type, if it is one of users.
    """
    if data is None:
        return None
    if kind is not None and pa.types.is_list(kind):
        return _array(data, TEXT._replace(oid=describe(pa.field("", kind)).element.oid), form)
    if (element := ELEMENTS.get(oid)) is not None:
        return _array(data, element, form)
    kind = BY_OID.get(oid, BY_OID[25])
    if form == BINARY:
        return _from_binary(kind, data)
    return _from_text(kind, decoded(data))


def _from_text(kind: PgType, shown: str) -> Any:
    if "\0" in shown:
        raise SqlError("22021", 'invalid byte sequence for encoding "UTF8": 0x00')
    try:
        return _KINDS[kind.name].from_text(shown) if kind.name in _KINDS else shown
    except SqlError:
        raise
    except (ValueError, InvalidOperation, OverflowError):
        name = _SPELLED.get(kind.name, kind.name)
        raise SqlError("22P02", f'invalid input syntax for type {name}: "{shown[:200]}"') from None


def _from_binary(kind: PgType, data: bytes) -> Any:
    try:
        if kind.name not in _KINDS:
            raise SqlError("0A000", f"the binary format of type {kind.name} is not supported", hint="Send it as text.")
        return _KINDS[kind.name].from_binary(data)
    except (error, ValueError, OverflowError):
        raise SqlError("22P03", f"incorrect binary data format for type {_SPELLED.get(kind.name, kind.name)}") from None


def _integer(name: str, form: str) -> _Kind:
    bits, pack = _SIZES.get(name, 32), Struct(form)

    def from_text(shown: str) -> int:
        if not _INTEGER.fullmatch(shown) or len(shown) > 400:
            raise ValueError
        found = int(shown)
        low, high = (-(1 << bits), 1 << bits) if name in _SIZES else (0, 1 << 32)
        if not low <= found < high:
            raise SqlError("22003", f'value "{shown.strip()}" is out of range for type {_SPELLED.get(name, name)}')
        return found

    return _Kind(from_text, lambda data: pack.unpack(data)[0])


def _boolean(shown: str) -> bool:
    word = shown.strip().lower()
    if word not in _TRUE | _FALSE:
        raise ValueError
    return word in _TRUE


def _float(shown: str) -> float:
    if "_" in shown:
        raise ValueError
    return float(shown)


def _numeric(shown: str) -> Decimal:
    found = Decimal(shown)
    if "_" in shown or (found.is_finite() and abs(found.adjusted()) > MAX_DIGITS):
        raise ValueError
    return found


def _numeric_binary(data: bytes) -> Decimal:
    count, weight, sign, scale = unpack(">HhHH", data[:8])
    groups = unpack(f">{count}H", data[8:])
    if sign not in (0, binary_format.NEGATIVE):
        names = {
            binary_format.NAN: "NaN",
            binary_format.POSITIVE_INFINITY: "Infinity",
            binary_format.NEGATIVE_INFINITY: "-Infinity",
        }
        if sign not in names:
            raise ValueError
        return Decimal(names[sign])
    if any(each > 9_999 for each in groups) or scale > 16_383:
        raise ValueError
    digits = "".join(f"{each:04d}" for each in groups)
    found = Decimal(f"{'-' if sign else ''}{digits or '0'}E{4 * (weight + 1 - count)}")
    cut = -int(found.as_tuple().exponent) - scale
    return _scaled(found, scale, cut)


def _scaled(number: Decimal, scale: int, cut: int) -> Decimal:
    """With `scale` digits after the point; the wire has whole groups of four."""
    sign, digits, _ = number.as_tuple()
    shown = digits[:-cut] if 0 < cut < len(digits) else digits if cut <= 0 else (0,)
    return Decimal((sign, shown + (0,) * max(0, -cut), -scale))


def _bytea(shown: str) -> bytes:
    if shown.startswith("\\x"):
        return bytes.fromhex(shown[2:])
    plain = re.sub(r"\\(\\|[0-3][0-7][0-7])|\\", _unescaped, shown)
    return plain.encode("utf-8", "surrogateescape")


def _unescaped(found: re.Match[str]) -> str:
    if found[1] is None:
        raise ValueError
    return "\\" if found[1] == "\\" else bytes([int(found[1], 8)]).decode("utf-8", "surrogateescape")


def _date(shown: str) -> date | str:
    plain = _DATE.fullmatch(shown)  # pgjdbc sends `2024-02-29 +00`
    found = _iso(plain[1] if plain else shown)
    return found.date() if isinstance(found, datetime) else found


def _iso(shown: str) -> datetime | str:
    """A time that Python reads; else the text, which the engine may read."""
    try:
        return datetime.fromisoformat(shown.strip())
    except ValueError:
        return shown


def _time(shown: str) -> time | str:
    try:
        return time.fromisoformat(shown.strip())
    except ValueError:
        return shown


def _timestamp(shown: str) -> datetime | str:
    found = _iso(shown)
    return found.replace(tzinfo=None) if isinstance(found, datetime) else found


def _timestamptz(shown: str) -> datetime | str:
    found = _iso(shown)
    return shown if isinstance(found, datetime) and found.tzinfo is None else found  # without an offset the session's zone counts


def _date_binary(data: bytes) -> date | str:
    days = int(unpack(">i", data)[0])
    if days in (2**31 - 1, -(2**31)):
        return "infinity" if days > 0 else "-infinity"
    days += binary_format.EPOCH_DAYS
    try:
        return _EPOCH_DATE + timedelta(days)
    except OverflowError:
        return text_format.date(days).decode()


def _time_binary(data: bytes) -> time | str:
    us = int(unpack(">q", data)[0])
    if not 0 <= us <= text_format.DAY_US:
        raise ValueError
    return "24:00:00" if us == text_format.DAY_US else (_EPOCH + timedelta(microseconds=us)).time()


def _timestamp_binary(data: bytes) -> datetime | str:
    us = int(unpack(">q", data)[0])
    if us in (2**63 - 1, -(2**63)):
        return "infinity" if us > 0 else "-infinity"
    us += binary_format.EPOCH_US
    try:
        return _EPOCH + timedelta(microseconds=us)
    except OverflowError:
        return text_format.timestamp(us).decode()


def _timestamptz_binary(data: bytes) -> datetime | str:
    found = _timestamp_binary(data)
    return (
        f"{found}+00"
        if isinstance(found, str) and found[-1].isdigit()
        else found
        if isinstance(found, str)
        else found.replace(tzinfo=UTC)
    )


def _timetz_binary(data: bytes) -> str:
    us, west_s = unpack(">qi", data)
    if not 0 <= us <= text_format.DAY_US or abs(west_s) >= 86_400:
        raise ValueError
    return text_format.time(us).decode() + text_format.shown_offset(-west_s)


def _interval_binary(data: bytes) -> timedelta | str:
    us, days, months = unpack(">qii", data)
    return text_format.interval((months, days, us)).decode() if months else timedelta(days, microseconds=us)


def _jsonb(data: bytes) -> str:
    if data[:1] != b"\1":
        raise ValueError
    return decoded(data[1:])


def _raw_uuid(data: bytes) -> UUID:
    return UUID(bytes=data)


def _same(shown: str) -> str:
    return shown


def _array(data: bytes, element: PgType, form: int) -> list[Any]:
    if form == BINARY:
        try:
            return _array_binary(data, element)
        except (error, IndexError, ValueError):
            raise SqlError("22P03", f"incorrect binary data format for type {element.name}[]") from None
    return split_array(decoded(data), lambda shown: _from_text(element, shown))


def _array_binary(data: bytes, element: PgType) -> list[Any]:
    dimensions, _, oid = unpack(">iiI", data[:12])
    if oid != element.oid or not 0 <= dimensions <= MAX_DIMENSIONS:
        raise ValueError
    sizes = unpack(">" + "ii" * dimensions, data[12 : 12 + 8 * dimensions])[::2]
    count = 1 if dimensions else 0
    for size in sizes:
        count *= size
        if not 0 <= count <= MAX_ELEMENTS:
            raise ValueError
    found, at = list[Any](), 12 + 8 * dimensions
    for _ in range(count):
        (length,) = unpack(">i", data[at : at + 4])
        at += 4
        if length == -1:
            found.append(None)
        elif length < 0 or at + length > len(data):
            raise ValueError
        else:
            found.append(_from_binary(element, data[at : at + length]))
            at += length
    if at != len(data):
        raise ValueError
    for size in reversed(sizes[1:]):
        found = [found[start : start + size] for start in range(0, len(found), size or 1)]
    return found


_SPELLED = {"int2": "smallint", "int4": "integer", "int8": "bigint", "float8": "double precision", "float4": "real", "bool": "boolean",
            "timestamptz": "timestamp with time zone"}  # fmt: skip
_KINDS: dict[str, _Kind] = {
    "bool": _Kind(_boolean, lambda data: bool(unpack(">?", data)[0])),
    "int2": _integer("int2", ">h"),
    "int4": _integer("int4", ">i"),
    "int8": _integer("int8", ">q"),
    "float4": _Kind(_float, lambda data: unpack(">f", data)[0]),
    "float8": _Kind(_float, lambda data: unpack(">d", data)[0]),
    "numeric": _Kind(_numeric, _numeric_binary),
    "bytea": _Kind(_bytea, bytes),
    "uuid": _Kind(UUID, _raw_uuid),
    "date": _Kind(_date, _date_binary),
    "time": _Kind(_time, _time_binary),
    "timestamp": _Kind(_timestamp, _timestamp_binary),
    "timestamptz": _Kind(_timestamptz, _timestamptz_binary),
    "timetz": _Kind(_same, _timetz_binary),
    "json": _Kind(_same, decoded),
    "interval": _Kind(_same, _interval_binary),
    "jsonb": _Kind(_same, _jsonb),
    **{name: _integer(name, ">I") for name in NUMBERS},
    **{name: _Kind(_same, decoded) for name in TEXTS},
}
