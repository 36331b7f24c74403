"""In which folder of its topic a record is: Confluent's partitioners, by their class names.

A partitioner depends on nothing but the record, so a record that comes again is in the same file again.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.errors import BadRecords, ConnectError

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # Hive's folder for null, which table readers know
_TOKEN = re.compile(r"'((?:[^']|'')*)'|(Y+|y+|M+|d+|D+|H+|m+|s+|S+)|(.)")
_WRITTEN: dict[str, Callable[[datetime.datetime], int]] = {
    "M": lambda at: at.month, "d": lambda at: at.day, "D": lambda at: at.timetuple().tm_yday, "H": lambda at: at.hour,
    "m": lambda at: at.minute, "s": lambda at: at.second, "S": lambda at: at.microsecond // 1000, "Y": lambda at: at.year,
    "y": lambda at: at.year,
}  # fmt: skip


class Folders(NamedTuple):
    """The folders of some records.

    Args:
        names: of the folders.
        codes: for each record the number of its folder.
    """

    names: list[str]
    codes: Any


class Partitioner(Protocol):
    """Finds the folders of records of one topic partition. Raises BadRecords, ConnectError."""

    def __call__(self, records: pa.Table, times_ms: Any, /) -> Folders: ...


class Default:
    """A folder for each partition of the topic."""

    def __call__(self, records: pa.Table, times_ms: Any) -> Folders:
        partitions: Any = records.column("partition").combine_chunks().dictionary_encode()
        return Folders([f"partition={each}" for each in partitions.dictionary.to_pylist()], partitions.indices.to_numpy())


class ByField:
    """A folder for each value of some fields: `country=de/kind=a`."""

    def __init__(self, fields: list[str]) -> None:
        self._fields = fields

    def __call__(self, records: pa.Table, times_ms: Any) -> Folders:
        names, codes = [""], np.zeros(records.num_rows, np.int64)
        for field in self._fields:
            column: Any = field_of(records, field).dictionary_encode()
            title = field.rpartition(".")[2]
            own = [f"{title}={_text(each)}" for each in column.dictionary.to_pylist()] + [f"{title}={NO_VALUE}"]
            inner = column.indices.fill_null(len(own) - 1).to_numpy()
            pairs, codes = np.unique(codes * len(own) + inner, return_inverse=True)
            names = [f"{names[pair // len(own)]}/{own[pair % len(own)]}".lstrip("/") for pair in pairs.tolist()]
        return Folders(names, codes)


class ByTime:
    """A folder for each span of time, such as `year=2025/month=01/day=31/hour=07`.

    Args:
        path_format: as Joda-Time has it.
        duration_ms: of a span.
    """

    def __init__(self, path_format: str, duration_ms: int, timezone: str) -> None:
        self._format, self._duration_ms, self._zone = path_format, duration_ms, ZoneInfo(timezone)

    def __call__(self, records: pa.Table, times_ms: Any) -> Folders:
        spans, codes = np.unique(self._begun(times_ms), return_inverse=True)
        texts = [joda(self._format, datetime.datetime.fromtimestamp(each / 1000, self._zone)) for each in spans.tolist()]
        names = list(dict.fromkeys(texts))
        places = np.array([names.index(each) for each in texts], np.int64)
        return Folders(names, places[codes])

    def _begun(self, times_ms: Any) -> Any:
        """The beginnings of the spans, which begin at midnight of the time zone."""
        hours = times_ms // 900_000  # the offset of a zone changes at quarters of an hour only
        quarters, codes = np.unique(hours, return_inverse=True)
        shifts = np.array([self._shift_ms(int(each) * 900_000) for each in quarters.tolist()], np.int64)[codes]
        local = times_ms + shifts
        return local // self._duration_ms * self._duration_ms - shifts

    def _shift_ms(self, at_ms: int) -> int:
        offset = datetime.datetime.fromtimestamp(at_ms / 1000, self._zone).utcoffset()
        return 0 if offset is None else int(offset.total_seconds() * 1000)


def joda(pattern: str, at: datetime.datetime) -> str:
    """A time as text, by a pattern of Joda-Time: `'year'=YYYY/'month'=MM`."""
    made = ""
    for quoted, token, other in _TOKEN.findall(pattern):
        if token:
            number = _WRITTEN[token[0]](at)
            made += f"{number % 100:02d}" if token in {"YY", "yy"} else f"{number:0{len(token)}d}"
        else:
            made += quoted.replace("''", "'") or other
    return made


def joda_error(pattern: str) -> str | None:
    """What is wrong with a pattern; None: nothing."""
    for _, _, other in _TOKEN.findall(pattern):
        if other.isalpha() or other == "'":
            return f"{other!r} has no meaning here: Y, M, d, D, H, m, s and S have; other letters are put between '"
    if any(part in {".", ".."} for part in pattern.split("/")):
        return "it leaves its folder"
    return None


def field_of(records: pa.Table, path: str) -> Any:
    """A field of the values, such as `a` or `a.b`. Raises BadRecords if no value has it."""
    column: Any = records.column("value").combine_chunks()
    for name in path.split("."):
        if not pa.types.is_struct(column.type) or column.type.get_field_index(name) < 0:
            raise BadRecords(dict.fromkeys(range(records.num_rows), f"the value has no field {path}"))
        column = pc.struct_field(column, name)
    return column


def times_of(records: pa.Table, field: str | None) -> Any:
    """The times of records in milliseconds, of the record or of a field. Raises BadRecords."""
    column: Any = field_of(records, field) if field is not None else records.column("timestamp").combine_chunks()
    kind = column.type
    if pa.types.is_string(kind):
        column = _parsed(column)
    elif pa.types.is_date(kind):
        column = column.cast(pa.timestamp("ms"))
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
    if not pa.types.is_integer(column.type):
        raise ConnectError(f"the field {field} has no times but values of the type {kind}")
    if column.null_count:
        rows = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)).tolist()
        raise BadRecords(dict.fromkeys(rows, f"the {'timestamp' if field is None else f'field {field}'} has no time"))
    return column.cast(pa.int64()).to_numpy()


def _parsed(column: Any) -> Any:
    """Texts in ISO 8601 as times; null for others, and for null."""
    made = []
    for each in column.to_pylist():
        try:
            at = None if each is None else datetime.datetime.fromisoformat(each)
        except ValueError:
            at = None
        made.append(at if at is None or at.tzinfo is not None else at.replace(tzinfo=datetime.UTC))
    return pa.array(made, pa.timestamp("ms", "UTC"))


def _text(value: Any) -> str:
    """A value as a part of a path: no character of it is a slash."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return quote(text, safe=" !$&'()*+,;=:@[]{}<>|^~#") or NO_VALUE


def partitioner_of(name: str, config: Mapping[str, Any]) -> Partitioner:
    """The partitioner of a class name, which may be short."""
    match name:
        case "Field":
            return ByField(config["partition.field.name"])
        case "TimeBased":
            return ByTime(config["path.format"], config["partition.duration.ms"], config["timezone"])
        case "Hourly":
            return ByTime("'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH", 3_600_000, config["timezone"])
        case "Daily":
            return ByTime("'year'=YYYY/'month'=MM/'day'=dd", 86_400_000, config["timezone"])
    return Default()
