"""A planned view as a definition and as the work of a job. No I/O.

The form of a record's key: one column that is never null is the whole key; otherwise the key is a JSON object of the key's columns. A view
without a key has the hidden column `_row`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from barnabas import limits
from barnabas.engine.jobs import InputTable, ViewWork
from barnabas.functions.definition import Function
from barnabas.incremental.interface import DELETED, ROW
from barnabas.incremental.plan import Plan
from barnabas.sql.catalog.definitions import ColumnDefinition, TableDefinition, ViewDefinition
from barnabas.sql.catalog.relations import KEY
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.continuous.planned import Planned
from barnabas.sql.duck.types import field_of
from barnabas.sql.interface import SqlError
from barnabas.sql.statements.columns import RESERVED
from barnabas.tables.column_types import missing_text, quoted, table_field, type_name
from barnabas.tables.errors import TableError
from barnabas.tables.formats import Raw
from barnabas.tables.row_names import KEY_WORD

OWN = {ROW, DELETED}


def definition_of(
    name: str,
    topic: str,
    planned: Planned,
    shown: pa.Schema,
    query: str,
    sources: Sequence[str],
    cursor: Any,
    functions: Sequence[Function] = (),
) -> TableDefinition:
    """The definition of a materialized view.

    Args:
        shown: the columns of the query, with their marks.
        cursor: tells the types of hidden columns.
        functions: of users, which the query calls.

    Raises:
        SqlError: a column has a reserved name, or a type that tables do not have.
    """
    plan = planned.plan
    columns = [_column(each, cursor, shown, place, planned) for place, each in enumerate(plan.columns)]
    key, hidden = plan.key, plan.hidden
    if key is None:
        columns.append(ColumnDefinition(ROW, "text", nullable=False))
        key, hidden = (ROW,), (*hidden, ROW)
    for each in columns:
        if each.name not in hidden and each.name.lower() in RESERVED | OWN:
            raise SqlError("42939", f'column name "{each.name}" is reserved', hint="give it another name: SELECT … AS name")
    if len(columns) > limits.MAX_SQL_COLUMNS:
        raise SqlError("54011", f"tables can have at most {limits.MAX_SQL_COLUMNS} columns")
    nullable = {each.name: each.nullable for each in columns}
    return TableDefinition(
        name, topic, tuple(columns), key, True, owns_topic=True, is_key_object=len(key) == 1 and nullable[key[0]],
        view=ViewDefinition(
            query, tuple(sources), hidden=hidden, functions=tuple((each.signature, each.digest) for each in functions)
        ),
    )  # fmt: skip


def _column(column: Any, cursor: Any, shown: pa.Schema, place: int, planned: Planned) -> ColumnDefinition:
    hidden = column.name in planned.plan.hidden
    if not hidden and place < len(shown):
        field = shown.field(place).with_name(column.name)
    else:
        field = field_of(column.name, cursor.sql(f"SELECT NULL::{column.kind}").types[0])
    try:
        kind = type_name(table_field(field))
    except TableError as error:
        raise SqlError("0A000", f"a view cannot keep this column: {error}") from None
    return ColumnDefinition(column.name, kind, nullable=column.name not in planned.not_null)


def work_of(definition: TableDefinition, planned: Planned) -> ViewWork:
    """The work of the view's job."""
    assert definition.view is not None
    keys = [each for name in definition.key if (each := definition.column(name)) is not None]
    values = [each for each in definition.columns if each.name not in definition.key]
    key = declaration(keys)
    return ViewWork(
        definition.view.query, planned.plan, inputs_of(planned), definition.topic,
        f"json ({key})" if definition.is_key_object else key, declaration(values), schema_id=definition.schema_id,
    )  # fmt: skip


def inputs_of(planned: Planned) -> dict[str, InputTable]:
    """The tables that a plan reads, in the words of jobs."""
    nodes = planned.plan.tables
    return {name: _input(relation, planned.plan, name) for name, relation in planned.tables.items() if name in nodes}


def _input(relation: Any, plan: Plan, name: str) -> InputTable:
    assert isinstance(relation, TopicRelation)
    return input_table(relation, tuple(each.name for each in plan.tables[name].columns))


def input_table(relation: TopicRelation, names: tuple[str, ...]) -> InputTable:
    """These columns of a table, in the words of jobs."""
    definition = relation.definition
    if definition is None:
        return _undeclared(relation, names)
    keys = [each for name in definition.key if (each := definition.column(name)) is not None]
    values = [each for each in definition.columns if each.name not in definition.key]
    key = declaration(keys) if keys else KEY_WORD if definition.has_row_names else None
    if definition.is_key_object:
        key = f"json ({key})"
    plain = definition.format == "json"
    renamed = definition.stored_names if plain or definition.is_registered else {values[0].name: "value"}
    return InputTable(
        definition.topic, definition.format, names, columns=declaration(values) if plain else None, key=key, mode=definition.mode,
        is_keyed=relation.is_keyed, renamed=renamed, skips_deletions=relation.layout.skips_deletions,
    )  # fmt: skip


def _undeclared(relation: TopicRelation, names: tuple[str, ...]) -> InputTable:
    key, value = relation.layout.key, relation.layout.value
    if not isinstance(value, Raw):
        return InputTable(relation.topic, "auto", names)
    is_text = [pa.types.is_string(each.fields[0].type) for each in (key, value)]
    return InputTable(
        relation.topic, "text" if is_text[1] else "raw", names, key="text" if is_text[0] else None, renamed={"key": KEY}
    )


def declaration(columns: Sequence[ColumnDefinition]) -> str:
    """Columns in the words of `tables.declared.columns_of`."""
    return ", ".join(
        f"{quoted(each.stored or each.name)} {each.kind}{'' if each.nullable else ' not null'}{missing_text(each.missing)}"
        for each in columns
    )
