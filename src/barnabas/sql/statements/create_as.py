"""CREATE TABLE … AS: a table with the columns and rows of a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from barnabas.sql.catalog.definitions import ColumnDefinition, TableDefinition
from barnabas.sql.catalog.topics import declared
from barnabas.sql.dialect import Statement
from barnabas.sql.duck.enums import enum_of
from barnabas.sql.interface import Result, SqlError
from barnabas.sql.planning.query import QueryPlan, check_values
from barnabas.sql.results import Done
from barnabas.sql.statements.columns import RESERVED, folded
from barnabas.sql.statements.create import Options, check, make_table, names_rows, options_of, private, table_name
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.ready import Ready
from barnabas.sql.statements.registered import found_schema
from barnabas.sql.statements.select import checked, collected
from barnabas.sql.statements.target import with_columns
from barnabas.sql.states import DUPLICATE_COLUMN
from barnabas.sql.writing.records import check_rows
from barnabas.tables.column_types import table_field, type_name


def create_as(session: Host, statement: Statement, tree: Any, given: Sequence[pa.DataType | None]) -> Ready:
    """CREATE TABLE [IF NOT EXISTS] name [(names)] [WITH (…)] AS query [WITH NO DATA]."""
    source = tree.args["expression"]
    source = source.this if isinstance(source, exp.Subquery) and not source.args.get("alias") else source
    properties = tree.args.get("properties")
    wants_rows = not any(isinstance(each, exp.WithDataProperty) and each.args.get("no") for each in _each(properties))
    plan = checked(session, source, statement.text, given)
    options = options_of(_without_data(properties))
    definition = private(session, tree, definition_as(session, tree, plan, options), options)
    if definition.is_registered:
        definition = found_schema(session, definition)

    def run(values: Sequence[Any]) -> Result:
        check_values(plan.parameters, values)
        relation = declared(definition)
        names = list(relation.columns.names)
        rows = collected(session, plan, values, statement.text).rename_columns(names) if wants_rows else None
        if rows is not None:
            rows = with_columns(rows, pa.schema([each.with_nullable(True) for each in relation.columns]))
            check_rows(relation, rows)
        made = make_table(session, definition, options, if_not_exists=bool(tree.args.get("exists")))
        if made is not None and rows is not None:
            relation = session.access.relation_of(made)  # of registered values it has the types of the schema
            session.write(relation, with_columns(rows, pa.schema([each.with_nullable(True) for each in relation.columns])))
            return Done(f"SELECT {rows.num_rows}")
        return Done("CREATE TABLE AS")

    return Ready(statement.text, run, None, plan.parameters, version=session.version)


def _each(properties: Any) -> Sequence[Any]:
    return properties.expressions if properties is not None else ()


def _without_data(properties: Any) -> Any:
    kept = [each for each in _each(properties) if not isinstance(each, exp.WithDataProperty)]
    return exp.Properties(expressions=kept) if kept else None


def definition_as(session: Host, tree: Any, plan: QueryPlan, options: Options) -> TableDefinition:
    """The table that a query makes. Raises SqlError."""
    schema = tree.this
    table = schema.this if isinstance(schema, exp.Schema) else schema
    given = (
        [folded(each.this if isinstance(each, exp.ColumnDef) else each) for each in schema.expressions]
        if isinstance(schema, exp.Schema)
        else []
    )
    if len(given) > len(plan.schema):
        raise SqlError("42601", "too many column names were specified")
    columns: list[ColumnDefinition] = []
    for place, field in enumerate(plan.schema):
        name = given[place] if place < len(given) else field.name
        if any(each.name == name for each in columns):
            raise SqlError(DUPLICATE_COLUMN, f'column "{name}" specified more than once')
        if name.lower() in RESERVED:
            raise SqlError("42939", f'column name "{name}" is reserved', hint="give it another name: SELECT … AS name")
        columns.append(ColumnDefinition(name, type_name(table_field(field)), labels=enum_of(field)))
    name = table_name(session, table) if tree.find(exp.TemporaryProperty) is None else folded(table.this)
    key = tuple(next((each.name for each in columns if each.name.lower() == wanted.lower()), wanted) for wanted in options.key)
    missing = [each for each in key if each not in [column.name for column in columns]]
    if missing:
        raise SqlError("42703", f'column "{missing[0]}" named in key does not exist')
    has_names = names_rows(options)
    definition = TableDefinition(
        name, options.topic_of(name), tuple(columns), key, has_names, options.format, mode=options.mode, has_row_names=has_names
    )
    check(definition)
    return definition
