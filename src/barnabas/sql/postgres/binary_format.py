"""Values in Postgres' binary format. Values come as `values.py` makes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from struct import Struct, error
from typing import Any

from barnabas.sql.interface import SqlError
from barnabas.sql.postgres.text_format import INFINITE_DAYS, INFINITE_US, Interval, Write

EPOCH_DAYS = 10_957  # from 1970 to 2000, where Postgres counts from
EPOCH_US = EPOCH_DAYS * 86_400_000_000
NEGATIVE, NAN, POSITIVE_INFINITY, NEGATIVE_INFINITY = 0x4000, 0xC000, 0xD000, 0xF000  # signs of a numeric
NULL = b"\xff\xff\xff\xff"
_INTERVAL, _ARRAY, _DIMENSION, _LENGTH, _NUMERIC = Struct(">qii"), Struct(">iiI"), Struct(">ii"), Struct(">i"), Struct(">hhHH")
_OID = Struct(">I")


def packed(form: str) -> Write:
    """A number of fixed size."""
    pack = Struct(form).pack

    def write(value: Any) -> bytes:
        try:
            return pack(value)
        except error:
            raise SqlError("22003", f"value {value} is out of range") from None

    return write


def boolean(value: bool) -> bytes:
    """One byte."""
    return b"\1" if value else b"\0"


def raw(value: bytes) -> bytes:
    """As it is."""
    return value


def jsonb(value: str) -> bytes:
    """Its version and its text."""
    return b"\1" + value.encode(errors="surrogatepass")


def date(days: int) -> bytes:
    """Days since 2000."""
    if days == -INFINITE_DAYS:
        return _LENGTH.pack(-(2**31))
    try:
        return _LENGTH.pack(days if days == INFINITE_DAYS else days - EPOCH_DAYS)
    except error:
        raise SqlError("22008", "date out of range") from None


_microseconds = packed(">q")


def timestamp(us: int) -> bytes:
    """Microseconds since 2000."""
    if us == -INFINITE_US:
        return _microseconds(-(2**63))
    return _microseconds(us if us == INFINITE_US else us - EPOCH_US)


def interval(value: Interval) -> bytes:
    """Microseconds, days, months."""
    return _INTERVAL.pack(value[2], value[1], value[0])


def numeric(value: Decimal | int) -> bytes:
    """Groups of four decimal digits, with the place of the first group and the count of digits after the point."""
    sign, digits, exponent = (value if isinstance(value, Decimal) else Decimal(value)).as_tuple()
    if not isinstance(exponent, int):
        return _NUMERIC.pack(0, 0, NAN if exponent in ("n", "N") else NEGATIVE_INFINITY if sign else POSITIVE_INFINITY, 0)
    scale = max(0, -exponent)
    shown = "".join(map(str, digits)) + "0" * max(0, exponent)
    whole, fraction = (shown[:-scale] if scale else shown), (shown[-scale:].rjust(scale, "0") if scale else "")
    whole = whole.rjust(-(-len(whole) // 4) * 4, "0")
    fraction = fraction.ljust(-(-len(fraction) // 4) * 4, "0")
    groups = [int((whole + fraction)[at : at + 4]) for at in range(0, len(whole + fraction), 4)]
    weight = len(whole) // 4 - 1
    while groups and not groups[0]:
        del groups[0]
        weight -= 1
    while groups and not groups[-1]:
        del groups[-1]
    if not groups:
        weight, sign = 0, 0
    head = _NUMERIC.pack(len(groups), weight, NEGATIVE if sign else 0, scale)
    return head + Struct(f">{len(groups)}H").pack(*groups)


def unbound_numeric(value: Decimal) -> bytes:
    """A numeric without sizes: without zeros at its end, which its type added."""
    with localcontext(prec=38):
        whole = value.normalize()
    return numeric(whole)


def array(element_oid: int, write: Write, *, lower_bound: int = 1) -> Callable[[Sequence[Any]], bytes]:
    """Dimensions and elements. Raises SqlError 2202E for lists of lists of different lengths."""

    def write_array(values: Sequence[Any]) -> bytes:
        sizes, flat = [len(values)], list(values)
        while any(isinstance(each, list) for each in flat):
            size = len(flat[0] or ())
            flat = _flattened(flat, size)
            sizes.append(size)
        if not flat:
            return _ARRAY.pack(0, 0, element_oid)
        parts = [NULL if each is None else with_length(write(each)) for each in flat]
        head = _ARRAY.pack(len(sizes), int(any(each is None for each in flat)), element_oid)
        return head + b"".join(_DIMENSION.pack(size, lower_bound) for size in sizes) + b"".join(parts)

    return write_array


def record(writes: Sequence[Write], oids: Sequence[int]) -> Callable[[Sequence[Any]], bytes]:
    """The count of values, and the type and the bytes of each."""

    def write_record(values: Sequence[Any]) -> bytes:
        parts = [
            _OID.pack(oid) + (NULL if value is None else with_length(write(value)))
            for write, oid, value in zip(writes, oids, values, strict=True)
        ]
        return _LENGTH.pack(len(parts)) + b"".join(parts)

    return write_record


def _flattened(lists: Sequence[Sequence[Any] | None], size: int) -> list[Any]:
    if any(each is None or len(each) != size for each in lists):
        raise SqlError("2202E", "the binary format has no arrays of lists of different lengths", hint="The text format has them.")
    return [element for each in lists for element in each or ()]


def with_length(data: bytes) -> bytes:
    """A field: its length and its bytes."""
    return _LENGTH.pack(len(data)) + data
