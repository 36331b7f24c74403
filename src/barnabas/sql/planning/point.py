"""Queries for one row by its primary key: `SELECT … FROM t WHERE key = $1 [AND …]`.

Only the row of the key is then read. The whole statement still runs over it, unless it asks for plain columns and has no other condition.
"""

from __future__ import annotations

import decimal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlglot import exp

from barnabas.sql.catalog.relations import Relation
from barnabas.sql.planning.names import tables_of
from barnabas.sql.writing.fitting import key_value

_SIMPLE = ("expressions", "from_", "from", "where", "kind", "hint", "operation_modifiers")


@dataclass(frozen=True, slots=True)
class Point:
    """The key of a query for one row.

    Args:
        values: for each column of the key, in the order of the key: a literal value, or the number of a parameter.
        outputs: the columns that it asks for; None if it needs more than plain columns.
    """

    values: Sequence[tuple[pa.Field[Any], Any, int | None]]
    outputs: Sequence[str] | None

    def key_values(self, given: Sequence[Any]) -> list[Any] | None:
        """The values of the key's columns; None if one is null or is not of the column's type."""
        found = []
        for field, literal, number in self.values:
            value = literal if number is None else given[number - 1]
            if value is None or not fits(value, field.type):
                return None
            found.append(key_value(value, field))
        return found

    def key(self, given: Sequence[Any]) -> pa.RecordBatch | None:
        """One row of the key's columns; None if a value is null or is not of the column's type."""
        found = self.key_values(given)
        if found is None:
            return None
        fields = [field for field, _, _ in self.values]
        columns: list[Any] = [pa.array([value], field.type) for value, field in zip(found, fields, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def point_of(tree: Any, relation: Relation, columns: Sequence[str]) -> Point | None:
    """The point of a query that was not planned yet; None if it may read other rows.

    Args:
        columns: those of the key, or other ones whose values no two rows have in common.
    """
    if not columns or not isinstance(tree, exp.Select) or len(tables_of(tree)) != 1 or tree.find(exp.Subquery, exp.CTE):
        return None
    where = tree.args.get("where")
    if where is None or any(tree.args.get(name) for name in ("joins", "laterals")):
        return None
    table = tables_of(tree)[0]
    found: dict[str, tuple[Any, int | None]] = {}
    conditions = list(_conjunction(where.this))
    for each in conditions:
        pair = _equality(each, table.alias_or_name)
        if pair is not None:
            found.setdefault(pair[0].lower(), pair[1:])
    if any(name not in relation.columns.names for name in columns):  # a view's hidden key
        return None
    names = [relation.columns.field(name) for name in columns]
    if any(each.name.lower() not in found for each in names):
        return None
    values = [(each, *found[each.name.lower()]) for each in names]
    is_plain = len(conditions) == len(names) and not relation.filled
    return Point(values, _outputs(tree, relation, table.alias_or_name) if is_plain else None)


def _conjunction(condition: Any) -> Iterator[Any]:
    if isinstance(condition, exp.And):
        yield from _conjunction(condition.this)
        yield from _conjunction(condition.expression)
    else:
        yield condition.unnest() if isinstance(condition, exp.Paren) else condition


def _equality(condition: Any, table: str) -> tuple[str, Any, int | None] | None:
    """The column, and its value or the number of its parameter."""
    if not isinstance(condition, exp.EQ):
        return None
    for column, value in ((condition.this, condition.expression), (condition.expression, condition.this)):
        if isinstance(column, exp.Column) and column.table.lower() in ("", table.lower()):
            if isinstance(value, exp.Parameter) and value.name.isdigit():
                return column.name, None, int(value.name)
            if isinstance(value, exp.Literal):
                return column.name, value.this if value.is_string else _number(value.this), None
    return None


def _number(text: str) -> Any:
    return int(text) if text.isdigit() else decimal.Decimal(text)


def fits(value: Any, kind: pa.DataType) -> bool:
    """Whether a value is of a column's type as it is, so that equality needs no cast."""
    if pa.types.is_integer(kind):
        return type(value) is int and -(2 ** (kind.bit_width - 1)) <= value < 2 ** (kind.bit_width - 1)
    return pa.types.is_string(kind) and isinstance(value, str)


def _outputs(tree: Any, relation: Relation, table: str) -> list[str] | None:
    """The columns of a list of plain columns."""
    if any(value for name, value in tree.args.items() if name not in _SIMPLE):
        return None
    names: list[str] = []
    own = {each.name.lower(): each.name for each in relation.columns}
    for item in tree.expressions:
        column = item.this if isinstance(item, exp.Alias) else item
        if isinstance(column, exp.Star) and not any(column.args.values()):
            names += relation.columns.names
        elif isinstance(column, exp.Column) and column.table.lower() in ("", table.lower()) and column.name.lower() in own:
            names.append(own[column.name.lower()])
        else:
            return None
    return names
