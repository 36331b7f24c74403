"""The forms of MariaDB's and MySQL's values in records, as Debezium has them: from Python's values to columns of types."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from barnabas.connect.plugins.debezium.table_columns import decimal_parameters
from barnabas.connect.plugins.mysql_capture.settings import Settings

TIME, DATA = "io.debezium.time.", "io.debezium.data."
DAY_0 = datetime.date(1970, 1, 1)
EPOCH = datetime.datetime.combine(DAY_0, datetime.time())  # without a zone, as the values are
WHOLE_SECONDS = len("2020-01-01T00:00:00")
MICROSECOND = datetime.timedelta(microseconds=1)
_NUMBERS = re.compile(r"\((\d+)(?:,(\d+))?\)")
_WORDS = re.compile(r"'((?:[^']|'')*)'")


class Form(NamedTuple):
    """The form of a column: its type, how a value becomes one of the type, and the name and the parameters of its schema."""

    kind: Any
    convert: Callable[[Any], Any]
    name: str | None = None
    parameters: Mapping[str, str] | None = None

    def column(self, values: list[Any]) -> Any:
        """The values, null where there is none."""
        return pa.array([None if each is None else self.convert(each) for each in values], self.kind)


def form_of(declared: str, settings: Settings) -> Form:
    """The form of a column.

    Args:
        declared: its type, such as `int(11) unsigned`.
    """
    kind = declared.partition("(")[0].split(" ")[0].lower()
    found = _NUMBERS.search(declared)
    first, second = (int(each or 0) for each in found.groups()) if found else (0, 0)
    if kind in _INTEGERS:
        signed, unsigned = _INTEGERS[kind]
        return Form(unsigned if "unsigned" in declared else signed, int)
    if kind in {"decimal", "numeric"}:
        return _decimal(first or 10, second, settings)
    if kind in _TIMES:
        form = _TIMES[kind](first, settings.times == "connect")
        return form._replace(convert=_of_time(form.convert))
    if kind == "bit":
        return Form(pa.bool_(), _bit_set) if first <= 1 else Form(pa.binary(), _bits, f"{DATA}Bits", {"length": str(first)})
    if kind == "binary":  # the binary log leaves out the zeros at the end
        return Form(pa.binary(), lambda value: _bytes(value).ljust(first, b"\0"))
    if kind in {"varbinary", "tinyblob", "blob", "mediumblob", "longblob", "geometry", "point", "polygon"}:
        return Form(pa.binary(), _bytes)
    if kind in {"enum", "set"}:
        words = [each.replace("''", "'") for each in _WORDS.findall(declared)]
        return Form(pa.string(), _text, f"{DATA}{'Enum' if kind == 'enum' else 'EnumSet'}", {"allowed": ",".join(words)})
    return _NAMED.get(kind, Form(pa.string(), _text))


_INTEGERS: Mapping[str, tuple[Any, Any]] = {
    "tinyint": (pa.int16(), pa.int16()), "smallint": (pa.int16(), pa.int32()), "mediumint": (pa.int32(), pa.int32()),
    "int": (pa.int32(), pa.int64()), "bigint": (pa.int64(), pa.uint64()),
}  # fmt: skip


def _decimal(precision: int, scale: int, settings: Settings) -> Form:
    if settings.decimals == "string":
        return Form(pa.string(), lambda value: format(value, "f"))
    if settings.decimals == "double":
        return Form(pa.float64(), float)
    kind: Any = pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    return Form(kind, lambda value: value, None, decimal_parameters(kind))


def _date(_digits: int, is_connect: bool) -> Form:
    if is_connect:
        return Form(pa.date32(), lambda value: value)
    return Form(pa.int32(), lambda value: (value - DAY_0).days, f"{TIME}Date")


def _datetime(digits: int, is_connect: bool) -> Form:
    if is_connect:
        return Form(pa.timestamp("ms", "UTC"), lambda value: (value - EPOCH) // MICROSECOND // 1000)
    if digits <= 3:
        return Form(pa.int64(), lambda value: (value - EPOCH) // MICROSECOND // 1000, f"{TIME}Timestamp")
    return Form(pa.int64(), lambda value: (value - EPOCH) // MICROSECOND, f"{TIME}MicroTimestamp")


def _timestamp(digits: int, _is_connect: bool) -> Form:
    return Form(pa.string(), lambda value: _zoned(value, digits), f"{TIME}ZonedTimestamp")


def _time(_digits: int, is_connect: bool) -> Form:
    if is_connect:
        return Form(pa.time32("ms"), lambda value: value // MICROSECOND // 1000)
    return Form(pa.int64(), lambda value: value // MICROSECOND, f"{TIME}MicroTime")


_TIMES: Mapping[str, Callable[[int, bool], Form]] = {
    "date": _date, "datetime": _datetime, "timestamp": _timestamp, "time": _time,
}  # fmt: skip


def _of_time(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The driver makes a text of what is no time, such as 0000-00-00; the binary log has null for it."""
    return lambda value: None if isinstance(value, str) else convert(value)


def _zoned(value: datetime.datetime, digits: int) -> str:
    """In ISO 8601, with all digits of the column behind the second."""
    return f"{value.isoformat(timespec='microseconds')[: WHOLE_SECONDS + (digits + 1 if digits else 0)]}Z"


def _text(value: Any) -> str:
    match value:
        case str():
            return value
        case bytes():
            return value.decode("utf-8", "replace")
        case set():
            return ",".join(sorted(value))
        case dict() | list():
            return json.dumps(_decoded(value))
    return str(value)


def _decoded(value: Any) -> Any:
    """A document of JSON whose texts may be bytes."""
    match value:
        case bytes():
            return value.decode()
        case dict():
            return {_decoded(name): _decoded(each) for name, each in value.items()}
        case list():
            return [_decoded(each) for each in value]
    return value


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def _year(value: Any) -> int:
    """Year 0 is 1900 in the binary log; no other year before 1901 is one of a column."""
    return 0 if int(value) == 1900 else int(value)


def _bit_set(value: Any) -> bool:
    return bool(_number(value))


def _bits(value: Any) -> bytes:
    length = len(value) if isinstance(value, bytes) else -(-len(value) // 8)
    return _number(value).to_bytes(length, "little")


def _number(value: Any) -> int:
    """Bits: the binary log gives them as a text of digits, a query as bytes."""
    return int.from_bytes(value, "big") if isinstance(value, bytes) else int(value, 2)


_NAMED: Mapping[str, Form] = {
    "float": Form(pa.float32(), float), "double": Form(pa.float64(), float), "real": Form(pa.float64(), float),
    "year": Form(pa.int32(), _year, f"{TIME}Year"), "json": Form(pa.string(), _text, f"{DATA}Json"),
}  # fmt: skip
