"""Values are made to fit the sizes of their columns: `varchar(n)`, `char(n)`, and times with few digits behind the point.

A text that is too long is refused, unless only spaces stand behind its size. The spaces at the end of a `char(n)` are not kept: they do not
count when it is compared, and results show it with as many as its size needs. Times are rounded. A value of CREATE TYPE … AS ENUM must be
one of its labels.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from barnabas.sql.duck.enums import EnumDefinition, enum_of
from barnabas.sql.interface import SqlError
from barnabas.sql.states import INVALID_TEXT, TOO_LONG
from barnabas.tables.column_types import Field, size_of

compute: Any = pc  # the stubs know no numbers of Python
CHAR, VARCHAR = "char", "varchar"
_EPOCH_US = 946_684_800_000_000  # 2000-01-01: Postgres rounds times before it down where it rounds later ones up
_SHOWN = {CHAR: "character", VARCHAR: "character varying"}


def sized_columns(schema: pa.Schema) -> tuple[str, ...]:
    """The columns whose values may not fit."""
    return tuple(each.name for each in schema if _sizes_of(each) is not None or enum_of(each) is not None)


def fitted(rows: pa.Table, names: tuple[str, ...], schema: pa.Schema) -> pa.Table:
    """The rows with values that fit. Raises SqlError 22001.

    Args:
        names: of the columns with sizes.
        schema: has the sizes.
    """
    for name in names:
        place = rows.schema.get_field_index(name)
        if place >= 0 and rows.num_rows:
            made = fitting(rows.column(place), schema.field(name))
            rows = rows.set_column(place, rows.schema.field(place), made)
    return rows


def fitting(column: Any, field: Field) -> Any:
    """A column with values that fit; the same one if all do. Raises SqlError 22001, 22P02."""
    kind: Any = field.type
    labels = enum_of(field)
    if labels is not None:
        return _labelled(column, labels)
    if pt.is_list(kind):
        items = pa.chunked_array([chunk.flatten() for chunk in column.chunks], kind.value_type)
        return column if fitting(items, kind.value_field).equals(items) else _each_list(column, kind.value_field)
    found = size_of(field)
    assert found is not None
    word, size = found
    if word == CHAR:
        column = compute.utf8_rtrim(column, " ")
    if word in _SHOWN:
        return _short(column, word, size)
    return _rounded(column, size)


def _each_list(column: Any, item: Field) -> Any:
    made = [
        None if each is None else fitting(pa.chunked_array([pa.array(each, item.type)]), item).to_pylist()
        for each in column.to_pylist()
    ]
    return pa.chunked_array([pa.array(made, column.type)])


def _labelled(column: Any, definition: EnumDefinition) -> Any:
    texts = compute.list_flatten(column) if pt.is_list(column.type) else column
    is_label = compute.is_in(texts, value_set=pa.array([*definition.labels, None], pa.string()))
    if compute.all(is_label).as_py() is False:
        raise invalid_value(definition, texts.filter(compute.invert(is_label))[0].as_py())
    return column


def shown_labels(column: Any, field: Field) -> Any:
    """A column as queries see it: null in place of the texts of other programs that are no labels."""
    definition = enum_of(field)
    if definition is None:
        return column
    if pt.is_list(column.type):
        known = frozenset(definition.labels)
        made = [None if each is None else [one if one in known else None for one in each] for each in column.to_pylist()]
        return pa.chunked_array([pa.array(made, column.type)])
    return compute.if_else(compute.is_in(column, value_set=pa.array(definition.labels, pa.string())), column, None)


def invalid_value(definition: EnumDefinition, value: str, position: int | None = None) -> SqlError:
    """The error of a text that is no label."""
    return SqlError(INVALID_TEXT, f'invalid input value for enum {definition.shown}: "{value}"', position=position)


def _sizes_of(field: Field) -> tuple[str, int] | None:
    kind: Any = field.type
    return _sizes_of(kind.value_field) if pt.is_list(kind) else size_of(field)


def _short(column: Any, word: str, size: int) -> Any:
    is_long: Any = compute.greater(compute.utf8_length(column), size)
    if not compute.any(is_long).as_py():
        return column
    cut = compute.utf8_slice_codeunits(column, 0, size)
    rest = compute.utf8_slice_codeunits(column.filter(is_long), size)
    if compute.any(compute.not_equal(compute.utf8_rtrim(rest, " "), "")).as_py():
        raise too_long(word, size)
    return cut


def too_long(word: str, size: int) -> SqlError:
    """The error of a text that does not fit."""
    return SqlError(TOO_LONG, f"value too long for type {_SHOWN[word]}({size})")


def _rounded(column: Any, digits: int) -> Any:
    """Times of so many digits behind the point. A half goes away from the year 2000, and a time of day does not become 24:00."""
    step = 10 ** (6 - digits)
    if step == 1:
        return column
    number: Any = column.cast(pa.int64())
    if pt.is_time(column.type):
        most = 86_400_000_000 - step
        return compute.min_element_wise(_steps(number, step), most, skip_nulls=False).cast(column.type)
    number = compute.subtract(number, _EPOCH_US)
    size = _steps(compute.abs(number), step)
    made = compute.add(compute.if_else(compute.less(number, 0), compute.negate(size), size), _EPOCH_US)
    return compute.if_else(compute.less(compute.abs(number), _MOST_US), made, column.cast(pa.int64())).cast(column.type)


_MOST_US = 1 << 61  # infinite times stay


def _steps(number: Any, step: int) -> Any:
    return compute.multiply(compute.divide(compute.add(number, step // 2), step), step)


@lru_cache(maxsize=1_000)
def fit_of(word: str, size: int) -> Callable[[Any], Any]:
    """Makes a value of Python fit; raises ValueError for one that only `fitting` can judge."""

    def short(value: Any) -> Any:
        made = value.rstrip(" ") if word == CHAR else value
        if len(made) > size:
            raise ValueError
        return made

    def whole(value: Any) -> Any:
        if value.microsecond % 10 ** (6 - size):
            raise ValueError
        return value

    return short if word in _SHOWN else whole


def label_of(definition: EnumDefinition) -> Callable[[Any], Any]:
    """Gives back a label; raises ValueError for any other value."""
    labels = frozenset(definition.labels)

    def label(value: Any) -> Any:
        if value not in labels:
            raise ValueError
        return value

    return label


def key_value(value: Any, field: Field) -> Any:
    """A value as the key of a row has it: of a `char(n)` without spaces at its end."""
    found = size_of(field)
    return value.rstrip(" ") if found is not None and found[0] == CHAR and isinstance(value, str) else value
