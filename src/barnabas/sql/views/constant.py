"""Materialized views that read no table: their rows are written once, and no job is needed."""

from __future__ import annotations

import pyarrow as pa

from barnabas import limits
from barnabas.incremental.interface import ROW
from barnabas.sql.catalog.definitions import ColumnDefinition, TableDefinition, ViewDefinition
from barnabas.sql.interface import SqlError
from barnabas.sql.statements.columns import RESERVED
from barnabas.sql.states import DUPLICATE_COLUMN
from barnabas.tables.column_types import table_field, type_name
from barnabas.tables.errors import TableError


def constant_definition(
    name: str, topic: str, schema: pa.Schema, given: list[str], query: str, sources: list[str]
) -> TableDefinition:
    """The definition of such a view: its rows have numbers. Raises SqlError.

    Args:
        schema: of the query.
        given: names of the first columns.
    """
    columns: list[ColumnDefinition] = []
    for place, field in enumerate(schema):
        column = given[place] if place < len(given) else field.name
        if any(each.name == column for each in columns):
            raise SqlError(DUPLICATE_COLUMN, f'column "{column}" specified more than once')
        if column.lower() in RESERVED:
            raise SqlError("42939", f'column name "{column}" is reserved', hint="give it another name: SELECT … AS name")
        try:
            columns.append(ColumnDefinition(column, type_name(table_field(field))))
        except TableError as error:
            raise SqlError("0A000", f"a view cannot keep this column: {error}") from None
    if len(columns) > limits.MAX_SQL_COLUMNS:
        raise SqlError("54011", f"tables can have at most {limits.MAX_SQL_COLUMNS} columns")
    columns.append(ColumnDefinition(ROW, "text", nullable=False))
    view = ViewDefinition(query, tuple(sources), hidden=(ROW,))
    return TableDefinition(name, topic, tuple(columns), (ROW,), True, owns_topic=True, view=view)


def constant_rows(definition: TableDefinition, found: pa.Table) -> pa.Table:
    """The rows of the query as those of the view."""
    schema = definition.schema
    numbers = pa.array([str(number) for number in range(found.num_rows)], pa.string())
    columns = [found.column(place).cast(schema.field(place).type) for place in range(found.num_columns)]
    return pa.table([*columns, numbers], schema=pa.schema([each.with_nullable(True) for each in schema]))


def is_constant(definition: TableDefinition) -> bool:
    """Whether a materialized view reads no table."""
    return definition.view is not None and definition.view.is_materialized and not definition.view.sources
