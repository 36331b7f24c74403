"""Columns from a sample of JSON values.

Rules
  1. Types widen: `bigint` to `double` to `text`, dates to timestamps to `text`, and different kinds of values to `json`. Nulls and missing
     fields tell nothing; a field that is never anything else is `text`.
  2. Every record of the sample fits the columns, unless it is no JSON object or has numbers beyond the range of a double.
  3. A struct with more than `MAX_FIELDS` fields, or nested deeper than `MAX_LEVELS`, is `json`: its names are data.
  4. A field gets no column if none can have its name: an empty one, or one with half of a surrogate pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import pyarrow as pa
from msgspec import Struct

from barnabas.columnar.decode import RecordDecoder
from barnabas.tables import iso_times
from barnabas.tables.column_types import LOCAL, UTC, Field, json_field, uuid_field
from barnabas.tables.errors import TableError
from barnabas.tables.json_text import Misfit, Number, parse
from barnabas.tables.json_values import UUID_TEXT
from barnabas.tables.source import Bounds, Snapshot, TopicSource

SAMPLE = 1000  # records
MAX_FIELDS = 1000  # of an object; those of a table are the fields of its outermost one
MAX_LEVELS = 8
MAX_BYTES = 64 << 20  # of record batches of a partition that are read for a sample
_LONG = 2**63


class _Seen(Struct):
    """The values of a field.

    Args:
        kinds: words such as `bigint`; without null.
        members: of its objects.
        items: of its arrays.
    """

    kinds: set[str]
    members: dict[str, _Seen]
    items: _Seen | None = None


def infer(source: TopicSource, *, sample: int = SAMPLE) -> list[Field]:
    """Columns for the values of a topic, from its last records in each partition.

    Args:
        sample: number of records, over all partitions.

    Raises:
        TableError: there are no records, or none of them is a JSON object.
    """
    return infer_values(values_of(source, sample), topic=source.topic)


def infer_values(values: Iterable[bytes | None], *, topic: str = "the sample") -> list[Field]:
    """Columns for some values. Raises TableError if none of them is a JSON object."""
    seen = _Seen(set(), {})
    count = 0
    reason = "there are no records with a value"
    for value in values:
        if value is None:
            continue
        try:
            parsed, text = parse(value)
        except Misfit as misfit:
            reason = f"no value is a JSON object; the last one: {misfit}"
            continue
        if not isinstance(parsed, dict):
            reason = f"no value is a JSON object; the last one is {text[:60]}"
            continue
        count += 1
        _add_members(seen, parsed, 0)
    if not count:
        raise TableError(f"{topic}: columns cannot be inferred: {reason}")
    if not seen.members:
        raise TableError(f"{topic}: columns cannot be inferred: the JSON objects have no fields with a name")
    if len(seen.members) > MAX_FIELDS:
        raise TableError(
            f"{topic}: columns cannot be inferred: the values have more than {MAX_FIELDS} different fields; "
            "the format json without columns gives one column of JSON text"
        )
    return [_field(name, each, 0) for name, each in seen.members.items()]


def values_of(source: TopicSource, count: int) -> Iterator[bytes | None]:
    """The values of some of the last records of each partition."""
    snapshot = source.snapshot()
    filled = {each: bounds for each, bounds in snapshot.partitions.items() if bounds.start < bounds.end}
    share = -(-count // max(len(filled), 1))
    for partition, bounds in filled.items():
        tail = Bounds(max(bounds.start, bounds.end - share), bounds.end)
        yield from islice(_values(source, snapshot, partition, tail), share)


def _values(source: TopicSource, snapshot: Snapshot, partition: int, bounds: Bounds) -> Iterator[bytes | None]:
    taken, decoder = 0, RecordDecoder(snapshot.topic, partition)
    for chunk in source.chunks(snapshot, partition, bounds.start, bounds.end):
        taken += len(chunk.records)
        for batch in decoder.decode(chunk.records, bounds.start, bounds.end, chunk.aborted):
            yield from batch.column("value").to_pylist()
        if taken > MAX_BYTES:
            return


def _add_members(seen: _Seen, value: dict[str, Any], level: int) -> None:
    for name, each in value.items():
        if len(seen.members) > MAX_FIELDS:
            return
        if not _can_name(name):
            continue
        found = seen.members.get(name)
        if found is None:
            found = seen.members[name] = _Seen(set(), {})
        _add(found, each, level + 1)


def _can_name(name: str) -> bool:
    """Whether a column can have the name."""
    try:
        return bool(name.encode())
    except UnicodeEncodeError:
        return False


def _add(seen: _Seen, value: Any, level: int) -> None:
    if value is None:
        return
    seen.kinds.add(_kind(value))
    if level >= MAX_LEVELS:
        return
    if isinstance(value, dict):
        _add_members(seen, value, level)
    elif isinstance(value, list):
        if seen.items is None:
            seen.items = _Seen(set(), {})
        for each in value:
            _add(seen.items, each, level + 1)


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case Number():
            return "bigint" if value.lstrip("-").isdigit() and -_LONG <= _int(value) < _LONG else "double"
        case str():
            return _kind_of_text(value)
        case dict():
            return "struct"
        case _:
            return "list"


def _int(text: str) -> int:
    return int(text) if len(text) < 40 else _LONG


def _kind_of_text(text: str) -> str:
    if UUID_TEXT.fullmatch(text) and text == text.lower():
        return "uuid"
    if iso_times.date_of_text(text) is not None:
        return "date"
    if len(text) >= 16 and iso_times.timestamp_of_text(text) is not None:
        return "timestamptz" if text[-1] in "Zz" or any(sign in text[16:] for sign in "+-") else "timestamp_ntz"
    return "text"


_TEXTS = {"text", "uuid", "date", "timestamptz", "timestamp_ntz"}
_SCALARS: dict[str, pa.DataType] = {
    "boolean": pa.bool_(), "bigint": pa.int64(), "double": pa.float64(), "text": pa.string(), "date": pa.date32(), "timestamptz": UTC,
    "timestamp_ntz": LOCAL,
}  # fmt: skip


def _field(name: str, seen: _Seen, level: int) -> Field:
    kinds = seen.kinds
    if kinds == {"struct"}:
        if level >= MAX_LEVELS - 1 or not 0 < len(seen.members) <= MAX_FIELDS:
            return json_field(name)
        return pa.field(name, pa.struct([_field(each, inner, level + 1) for each, inner in seen.members.items()]))
    if kinds == {"list"}:
        if level >= MAX_LEVELS - 1 or seen.items is None:
            return json_field(name)
        return pa.field(name, pa.list_(_field("item", seen.items, level + 1)))
    if kinds & {"struct", "list"}:
        return json_field(name)
    if kinds == {"uuid"}:
        return uuid_field(name)
    return pa.field(name, _SCALARS[_widest(kinds)])


def _widest(kinds: set[str]) -> str:
    if len(kinds) == 1:
        return next(iter(kinds))
    if kinds == {"bigint", "double"}:
        return "double"
    if kinds == {"date", "timestamp_ntz"}:
        return "timestamp_ntz"
    if kinds and kinds <= {"date", "timestamp_ntz", "timestamptz"}:
        return "timestamptz"
    return "text"
