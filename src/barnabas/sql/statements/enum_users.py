"""The users of a type of CREATE TYPE: columns, and the texts of views, constraints and generated columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from sqlglot import exp

from barnabas.sql.catalog.definitions import TableDefinition
from barnabas.sql.dialect import parse, parse_expression, parse_tokens, statement_of, tokens_of
from barnabas.sql.duck.enums import EnumDefinition
from barnabas.sql.duck.types import RESOLVED, shown_type
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.user_types import resolve_types
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.select import checked, collected
from barnabas.sql.views.dependents import kind_of
from barnabas.sql.writing.fitting import invalid_value


def users(tables: Mapping[str, TableDefinition], definition: EnumDefinition) -> list[tuple[str, str]]:
    """The columns of a type, and the type that they have, in words."""
    return [
        (f"column {column.name} of {kind_of(each)} {each.name}", shown_type(column.field))
        for each in tables.values()
        for column in each.columns
        if column.labels is not None and column.labels.oid == definition.oid
    ]


def text_users(session: Host, tables: Mapping[str, TableDefinition], definition: EnumDefinition) -> list[str]:
    """The views, constraints and generated columns whose text names a type, in words."""
    word = re.compile(rf"\b{re.escape(definition.plain_name)}\b", re.IGNORECASE)
    found = []
    for each in tables.values():
        for what, text in _texts(each):
            if word.search(text) and _names(session, text, definition):
                found.append(f"{what} {each.name}")
    return found


def _texts(table: TableDefinition) -> Iterator[tuple[str, str]]:
    """The texts of a definition, and whose they are."""
    if table.view is not None:
        yield kind_of(table), table.view.query
    for check in table.checks:
        yield f"constraint {check.name} of table", check.condition
    for column in table.columns:
        if column.generated is not None:
            yield f"column {column.name} of table", column.generated


def _names(session: Host, text: str, definition: EnumDefinition) -> bool:
    """Whether a text names a type; also if it cannot be read."""
    tree: Any
    try:
        is_query = text.lstrip().upper().startswith(("SELECT", "WITH", "VALUES", "TABLE", "("))
        tree = parse_tokens(text, tokens_of(text)) if is_query else parse_expression(text)
    except SqlError:
        return True
    resolve_types(tree, session.access.types())
    return any(each.meta.get(RESOLVED) == definition for each in tree.find_all(exp.DataType))


def check_labels(session: Host, before: TableDefinition, after: TableDefinition, text: str) -> None:
    """Raises SqlError 22P02 if a row has no label of the type that a column gets."""
    types = {each.name: each.labels for each in before.columns}
    named: Any = {"t": session.access.relation_of(before)}  # by a name that needs no quotes
    for column in after.columns:
        labels = column.labels
        was = types.get(column.name)
        if labels is None or column.name not in types or (was is not None and was.oid == labels.oid):
            continue
        name = exp.to_identifier(column.name, quoted=True).sql("postgres")
        text_of = f"unnest(CAST({name} AS TEXT[]))" if pa.types.is_list(column.field.type) else f"CAST({name} AS TEXT)"
        query = parse(
            statement_of(f"SELECT value FROM (SELECT {text_of} AS value FROM t) AS texts WHERE value IS NOT NULL LIMIT 1")
        )
        texts = [exp.Literal.string(each) for each in labels.labels]
        query.where(exp.not_(exp.In(this=exp.column("value"), expressions=texts)), copy=False)
        found = collected(session, checked(session, query, text, (), named), (), text)
        if found.num_rows:
            raise invalid_value(labels, found.column(0)[0].as_py())
