"""CREATE VIEW: a name for a query, for one session or lasting."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from barnabas.sql.catalog.definitions import ColumnDefinition, TableDefinition, ViewDefinition
from barnabas.sql.dialect import Statement, parse
from barnabas.sql.duck.enums import enum_of
from barnabas.sql.interface import Notice, Result, SqlError
from barnabas.sql.planning.outputs import with_names
from barnabas.sql.planning.query import QueryPlan
from barnabas.sql.results import Done
from barnabas.sql.statements.columns import folded
from barnabas.sql.statements.create import exists, has_topic, table_name
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.materialized import query_text, view_sources
from barnabas.sql.statements.own_topics import own_topic
from barnabas.sql.statements.ready import Ready
from barnabas.sql.statements.select import checked
from barnabas.sql.states import DUPLICATE_COLUMN, WRONG_OBJECT, not_supported
from barnabas.sql.views.dependents import dependents
from barnabas.sql.views.names_in_text import with_other_names
from barnabas.tables.column_types import table_field, type_name
from barnabas.tables.errors import TableError


def create_view(session: Host, statement: Statement) -> Ready:
    """CREATE [OR REPLACE] [TEMPORARY] VIEW [IF NOT EXISTS] name [(columns)] AS query."""
    tree = parse(statement, spark_order=session.is_spark)
    source = tree.args.get("expression") if isinstance(tree, exp.Create) else None
    if not isinstance(source, (exp.Query, exp.Values)):
        raise not_supported("this form of CREATE VIEW is not supported", hint="CREATE [TEMPORARY] VIEW name AS query")
    columns = [folded(each.this if isinstance(each, exp.ColumnDef) else each) for each in _columns(tree.this)]
    query = with_names(source)
    is_temporary = tree.find(exp.TemporaryProperty) is not None
    sources = [] if is_temporary else view_sources(session, query, "a view")
    plan = checked(session, query.copy(), statement.text, with_pending=is_temporary)
    if plan.numbers:
        raise SqlError("42P02", "there is no parameter in a view")
    if len(columns) > len(plan.schema):
        raise SqlError("42601", "CREATE VIEW specifies more column names than columns")
    if not is_temporary:
        return _lasting(session, statement, tree, plan, columns, sources)
    name = folded((tree.this.this if isinstance(tree.this, exp.Schema) else tree.this).this)

    def run(_: Sequence[Any]) -> Result:
        if name in session.views and not tree.args.get("replace"):
            if not tree.args.get("exists"):
                raise exists(name)
        else:
            session.views.put(name, columns, query)
        return Done("CREATE VIEW")

    return Ready(statement.text, run, version=session.version)


def _columns(target: Any) -> Sequence[Any]:
    return target.expressions if isinstance(target, exp.Schema) else ()


def _lasting(
    session: Host, statement: Statement, tree: Any, plan: QueryPlan, columns: Sequence[str], sources: Sequence[str]
) -> Ready:
    """A view for all sessions: its definition is the query's text. `*` in it means the columns of this moment."""
    name = table_name(session, tree.this.this if isinstance(tree.this, exp.Schema) else tree.this)
    made = _defined(columns, plan)
    read = [getattr(each.relation, "source", each.relation.name) for each in plan.inputs]
    view = ViewDefinition(
        with_other_names(query_text(statement), session.access.qualified),
        tuple(dict.fromkeys([*sources, *read])),
        is_materialized=False,
        created_ms=time.time_ns() // 1_000_000,
        functions=tuple((each.signature, each.digest) for each in plan.functions),
    )
    definition = TableDefinition(name, "", made, view=view)

    def run(_: Sequence[Any]) -> Result:
        session.check_writable()
        if name not in session.definitions.tables and own_topic(name) == name and has_topic(session, name):
            raise exists(name)
        if not _write(session, definition, replaces=bool(tree.args.get("replace")), if_not_exists=bool(tree.args.get("exists"))):
            session.notify(Notice(f'relation "{name}" already exists, skipping', sqlstate="42P07"))
        return Done("CREATE VIEW")

    return Ready(statement.text, run, version=session.version)


def _defined(columns: Sequence[str], plan: QueryPlan) -> tuple[ColumnDefinition, ...]:
    made: list[ColumnDefinition] = []
    for place, field in enumerate(plan.schema):
        name = columns[place] if place < len(columns) else field.name
        if any(each.name == name for each in made):
            raise SqlError(DUPLICATE_COLUMN, f'column "{name}" specified more than once')
        try:
            kind = type_name(table_field(field))
        except TableError:  # such as an interval: it is shown as text in the catalogue, and read as it is
            kind = "text"
        made.append(ColumnDefinition(name, kind, labels=enum_of(field)))
    return tuple(made)


def _write(session: Host, definition: TableDefinition, *, replaces: bool, if_not_exists: bool) -> bool:
    """Write the definition; False if another one was there and stays. Raises SqlError."""
    name, already = definition.name, False

    def decide(tables: Mapping[str, TableDefinition]) -> Mapping[str, TableDefinition | None]:
        nonlocal already
        there = tables.get(name)
        already = there is not None and there != definition and not replaces
        if already and not if_not_exists:
            raise exists(name)
        if there is not None and replaces:
            _check_replaceable(tables, there, definition)
        return {} if already else {name: definition}

    session.definitions.change(session.client, session.running, decide)
    return not already


def _check_replaceable(tables: Mapping[str, TableDefinition], old: TableDefinition, new: TableDefinition) -> None:
    if not old.is_plain_view:
        raise SqlError(WRONG_OBJECT, f'"{old.name}" is not a view')
    assert new.view is not None
    if new.name in new.view.sources or set(new.view.sources) & set(dependents(tables, new.name)):
        raise SqlError("42P17", f'the view "{new.name}" would read itself')
    kept = [(each.name, each.kind) for each in new.columns[: len(old.columns)]]
    if kept != [(each.name, each.kind) for each in old.columns]:
        raise SqlError(
            "42P16", f'the query does not give the columns that the view "{new.name}" has', hint="DROP VIEW, and create it again"
        )
