"""Fits rows to the schema of a lake table: the types of its columns, nulls for those that the rows lack, and the columns that it lacks.

Values are converted as the Iceberg sink of Kafka Connect does it: numbers to wider ones, texts to numbers and times, numbers to times
as milliseconds since the epoch. A value that would lose something is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from barnabas.connect.errors import ConnectError

if TYPE_CHECKING:
    Array = pa.Array[Any]

types: Any = pa.types
_WIDER = {
    pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(), pa.large_string(): pa.string(), pa.string_view(): pa.string(), pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(), pa.date64(): pa.date32(),
}  # fmt: skip


class Misfit(ConnectError):
    """Values that do not fit to their column.

    Args:
        reasons: by the number of the row.
    """

    def __init__(self, reasons: dict[int, str]) -> None:
        super().__init__(reasons)
        self.reasons = reasons

    def __str__(self) -> str:
        return next(iter(self.reasons.values()), "")


def storable(kind: Any) -> pa.DataType | None:
    """The type of a column that takes values of a type; None for values that say nothing: nulls alone, structs without a field."""
    if types.is_null(kind):
        return None
    if types.is_dictionary(kind):
        return storable(kind.value_type)
    if types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if types.is_time(kind):
        return pa.time64("us")
    if types.is_fixed_size_binary(kind):
        return pa.binary()
    if types.is_struct(kind):
        fields = [pa.field(each.name, of) for each in kind if (of := storable(each.type)) is not None]
        return pa.struct(fields) if fields else None
    if types.is_list(kind) or types.is_large_list(kind):
        of = storable(kind.value_type)
        return None if of is None else pa.list_(of)
    if types.is_map(kind):
        item = storable(kind.item_type)
        return None if item is None else pa.map_(storable(kind.key_type) or pa.string(), item)
    wider: Any = _WIDER.get(kind, kind)
    return cast("pa.DataType", wider)


def columns_of(schema: pa.Schema) -> pa.Schema:
    """The columns of a table for rows of a schema."""
    return pa.schema([pa.field(each.name, kind) for each in schema if (kind := storable(each.type)) is not None])


def lacking(rows: Sequence[pa.Field[Any]] | pa.Schema, table: Any) -> list[pa.Field[Any]]:
    """The fields that a table lacks, or a struct of it. One that has a part of them is there with those that are missing."""
    known = {each.name: each for each in table}
    found: list[pa.Field[Any]] = []
    for each in rows:
        kind = storable(each.type)
        if kind is None:
            continue
        if each.name not in known:
            found.append(pa.field(each.name, kind))
        elif types.is_struct(kind) and types.is_struct(known[each.name].type):
            more = lacking(list(kind), known[each.name].type)  # type: ignore[call-overload]  # a type of a struct has fields
            if more:
                found.append(pa.field(each.name, pa.struct(more)))
    return found


def fitted(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows in the columns of a table. Raises Misfit, ConnectError for a column that cannot fit whatever its values are."""
    columns = []
    for field in schema:
        if field.name in rows.column_names:
            column: Any = rows.column(field.name).combine_chunks()
            columns.append(_fitted(column, field.type, field.name))
        else:
            columns.append(pa.nulls(rows.num_rows, field.type))
    return pa.Table.from_arrays(columns, schema=_nullable(schema))


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(each.name, each.type) for each in schema])


def _fitted(column: Any, kind: Any, name: str) -> Any:
    if column.type == kind:
        return column
    if types.is_null(column.type):
        return pa.nulls(len(column), kind)
    if types.is_dictionary(column.type):
        return _fitted(column.cast(column.type.value_type), kind, name)
    if types.is_struct(column.type) and types.is_struct(kind):
        return _fitted_struct(column, kind, name)
    if types.is_nested(column.type) or types.is_nested(kind):
        return _fitted_nested(column, kind, name)
    return _cast(column, kind, name)


def _fitted_struct(column: Any, kind: Any, name: str) -> Any:
    known = {each.name: at for at, each in enumerate(column.type)}
    parts = column.flatten()
    fields = [
        _fitted(parts[known[each.name]], each.type, f"{name}.{each.name}") if each.name in known else pa.nulls(len(column), each.type)
        for each in kind
    ]  # fmt: skip
    return pa.StructArray.from_arrays(fields, fields=list(kind), mask=column.is_null())


def _fitted_nested(column: Any, kind: Any, name: str) -> Any:
    """Lists and maps, whose elements are converted one by one."""
    if not _takes(kind, column.type):
        raise ConnectError(f"the column {name} has the type {kind}, and the records have {column.type}")
    try:
        return pa.array(column.to_pylist(), kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise ConnectError(f"the column {name} has the type {kind}, and the records have {column.type}: {error}") from None


def _takes(kind: Any, given: Any) -> bool:
    """Whether no part of a nested type is left out in another one."""
    if types.is_null(given):
        return True
    if types.is_struct(kind) and types.is_struct(given):
        known = {each.name: each.type for each in kind}
        return all(each.name in known and _takes(known[each.name], each.type) for each in given)
    if types.is_map(kind) and types.is_map(given):
        return _takes(kind.key_type, given.key_type) and _takes(kind.item_type, given.item_type)
    if types.is_nested(kind) and types.is_nested(given):
        lists = (types.is_list, types.is_large_list)
        return (
            any(each(kind) for each in lists) and any(each(given) for each in lists) and _takes(kind.value_type, given.value_type)
        )
    return not (types.is_nested(kind) or types.is_nested(given))


def _cast(column: Any, kind: Any, name: str) -> Any:
    try:
        return _converted(column, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as whole:
        bad: dict[int, str] = {}
        for row in range(len(column)):
            try:
                _converted(column.slice(row, 1), kind)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                shown = repr(column[row].as_py())[:100]
                bad[row] = f"the column {name} has the type {kind}, which {shown} does not fit to"
        raise Misfit(bad or {0: f"the column {name} has the type {kind}: {whole}"}) from None


def _converted(column: Any, kind: Any) -> Any:
    if types.is_integer(column.type) and types.is_timestamp(kind):
        return column.cast(pa.int64()).cast(pa.timestamp("ms", kind.tz)).cast(kind)
    if types.is_timestamp(column.type) and types.is_timestamp(kind):
        return column.cast(pa.timestamp(kind.unit, column.type.tz), safe=False).cast(kind)  # nanoseconds are cut
    return column.cast(kind)
