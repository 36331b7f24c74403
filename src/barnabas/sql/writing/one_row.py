"""One row as the key and the value of a record, without Arrow: what `records.records_of` gives for a table of one row.

Only plain types are written here, of values that fit them without doubt. Anything else gives None, and the general way writes the row, or
tells what is wrong with it.
"""

from __future__ import annotations

import datetime
import decimal
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.duck.enums import enum_of
from barnabas.sql.writing.fitting import fit_of, label_of
from barnabas.tables.column_types import mark_of, size_of
from barnabas.tables.formats import Raw
from barnabas.tables.json_encoding import text_of
from barnabas.tables.json_format import JsonFormat
from barnabas.tables.row_names import RowNames
from barnabas.tables.scalar_format import ScalarFormat

MOST_BYTES = 100_000  # of a row
Plain = Callable[[Any], Any]
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d(:\d\d)?)?", re.ASCII)


class Unfit(Exception):
    """The general way must take the value."""


class RowEncoder:
    """Writes rows of a table. `of` makes it."""

    def __init__(self, relation: TopicRelation, plain: Sequence[Plain]) -> None:
        self._plain, names = plain, relation.columns.names
        self._layout = relation.layout
        definition = relation.definition
        optional = {each.name for each in definition.columns if each.nullable} if definition is not None else set(names)
        self._keys = [names.index(each.name) for each in relation.layout.key.fields if each.name in names]
        value = relation.layout.value
        assert isinstance(value, JsonFormat)
        self._values = [(value.name_of(each.name), names.index(each.name)) for each in value.fields]
        self._required = [place for place, name in enumerate(names) if name not in optional or place in self._keys]

    @classmethod
    def of(cls, relation: TopicRelation) -> RowEncoder | None:
        """For a table of plain types; None for others, and where something must be added to a row, or checked."""
        key, definition = relation.layout.key, relation.definition
        if definition is not None and (
            definition.is_registered
            or definition.unique
            or definition.checks
            or any(each.generated is not None for each in definition.columns)
        ):
            return None
        if not isinstance(relation.layout.value, JsonFormat) or not isinstance(key, (ScalarFormat, Raw, JsonFormat, RowNames)):
            return None
        plain = [_plain(each) for each in relation.columns]
        found = [each for each in plain if each is not None]
        return cls(relation, found) if len(found) == len(plain) else None

    def record(self, cells: Sequence[Any]) -> tuple[bytes | None, bytes] | None:
        """The key and the value of a row; None if the general way must write it.

        Args:
            cells: the values of all columns, in their order.
        """
        if any(cells[place] is None for place in self._required):
            return None
        try:
            made = [None if cell is None else plain(cell) for plain, cell in zip(self._plain, cells, strict=True)]
            key = self._key(made)
            value = text_of({name: made[place] for name, place in self._values})
        except (Unfit, ValueError, OverflowError, decimal.InvalidOperation):
            return None
        return None if len(value) > MOST_BYTES or (key is None and self._keys) else (key, value)

    def _key(self, made: Sequence[Any]) -> bytes | None:
        key = self._layout.key
        if isinstance(key, JsonFormat):
            return text_of({key.name_of(field.name): made[place] for field, place in zip(key.fields, self._keys, strict=True)})
        return key.payload_of(key.fields[0].name, made[self._keys[0]]) if self._keys else None


def _plain(field: pa.Field[Any]) -> Plain | None:
    """How a value becomes what JSON has; None for other types of columns."""
    sized = size_of(field)
    plain = _of_type(field)
    labels = enum_of(field)
    if labels is not None and plain is not None:
        return _fitting(plain, label_of(labels))
    return plain if sized is None or plain is None else _fitting(plain, fit_of(*sized))


def _fitting(plain: Plain, fit: Plain) -> Plain:
    return lambda value: fit(plain(value))


def _of_type(field: pa.Field[Any]) -> Plain | None:
    kind = field.type
    if mark_of(field):
        return None
    if pt.is_signed_integer(kind):
        return _whole(-(1 << (kind.bit_width - 1)), (1 << (kind.bit_width - 1)) - 1)
    if pt.is_boolean(kind):
        return _of_class(bool)
    if pt.is_string(kind):
        return _of_class(str)
    if pt.is_float64(kind):
        return _float
    if pt.is_timestamp(kind) and kind.unit == "us" and kind.tz in (None, "UTC"):
        return _utc if kind.tz else _local
    return None


def _whole(low: int, high: int) -> Plain:
    def plain(value: Any) -> Any:
        if type(value) is not int or not low <= value <= high:
            raise Unfit
        return value

    return plain


def _of_class(wanted: type) -> Plain:
    def plain(value: Any) -> Any:
        if type(value) is not wanted:
            raise Unfit
        return value

    return plain


def _float(value: Any) -> float:
    if type(value) not in (int, float, decimal.Decimal):
        raise Unfit
    found = float(value)
    if not math.isfinite(found):
        raise Unfit
    return found


def _utc(value: Any) -> datetime.datetime:
    found = _moment(value)
    if found.tzinfo is None:
        raise Unfit
    return found.astimezone(datetime.UTC)


def _local(value: Any) -> datetime.datetime:
    found = _moment(value)
    if found.tzinfo is not None:
        raise Unfit
    return found


def _moment(value: Any) -> datetime.datetime:
    if isinstance(value, str) and _MOMENT.fullmatch(value):
        value = datetime.datetime.fromisoformat(value)
    if type(value) is not datetime.datetime:
        raise Unfit
    return value
