"""DROP TABLE, DROP VIEW and DROP MATERIALIZED VIEW.

Of a materialized view first the job goes, then the topic, then the definition: whatever a killed server leaves, DROP removes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from barnabas.errors import BarnabasError
from barnabas.sql.catalog.definitions import TableDefinition
from barnabas.sql.dialect import Statement, parse
from barnabas.sql.interface import Notice, Result, SqlError
from barnabas.sql.planning.names import position_in
from barnabas.sql.results import Done
from barnabas.sql.statements.alter import delete_topic, drop_table
from barnabas.sql.statements.columns import folded
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.ready import Ready
from barnabas.sql.statements.registered import forget_schema
from barnabas.sql.states import UNDEFINED_TABLE, WRONG_OBJECT, not_supported
from barnabas.sql.views.dependents import check_unused, dependents, kind_of


def drop(session: Host, statement: Statement) -> Ready:
    """DROP TABLE | VIEW | MATERIALIZED VIEW [IF EXISTS] name, … [CASCADE | RESTRICT]."""
    tree = parse(statement)
    kind = "materialized view" if statement.word(1) == "MATERIALIZED" else statement.word(1).lower()
    if not isinstance(tree, exp.Drop):
        raise not_supported(f"this form of DROP {kind.upper()} is not supported", hint=f"DROP {kind.upper()} [IF EXISTS] name")
    tables = list(tree.args.get("tables") or [])
    if_exists, cascades = bool(tree.args.get("exists")), bool(tree.args.get("cascade"))

    def run(_: Sequence[Any]) -> Result:
        session.check_writable()
        found = [each for each in (_found(session, table, kind, if_exists=if_exists) for table in tables) if each is not None]
        names = tuple(each.name for each in found)
        for each in found:
            if not cascades:
                check_unused(session.definitions.tables, each.name, leaving=names)
        for each in found:
            drop_with_users(session, each.name)
        return Done(f"DROP {kind.upper()}")

    return Ready(statement.text, run)


def _found(session: Host, table: Any, kind: str, *, if_exists: bool) -> TableDefinition | None:
    """The definition to drop; None if there is none, or a temporary view was dropped instead. Raises SqlError."""
    if kind == "view" and not table.args.get("db") and folded(table.this) in session.views:
        session.views.drop(folded(table.this))
        return None
    parts = [part.name for part in table.parts]
    relation: Any = None
    try:
        relation = session.find(parts, position_in(table))
    except SqlError as error:
        if error.sqlstate != UNDEFINED_TABLE:
            raise
        if if_exists:
            session.notify(Notice(f'{kind} "{parts[-1]}" does not exist, skipping'))
            return None
        raise SqlError(
            UNDEFINED_TABLE, f'{kind} "{parts[-1]}" does not exist', position=error.position, hint=error.hint
        ) from None
    except BarnabasError:  # the registry with its schema gives no answer
        if session.access.definition(parts[-1]) is None:
            raise
    definition: TableDefinition | None = getattr(relation, "definition", None) or session.access.definition(parts[-1])
    if definition is None and kind == "table":
        raise SqlError(
            WRONG_OBJECT, f'"{relation.name}" is a topic without a definition', position=position_in(table),
            hint=f"`barnabas topic delete {relation.name}` deletes the topic",
        )  # fmt: skip
    there = kind_of(definition)
    if there != kind:
        article = "a table" if kind == "table" else f"a {kind}"
        raise SqlError(
            WRONG_OBJECT,
            f'"{definition.name if definition is not None else relation.name}" is not {article}',
            position=position_in(table),
            hint=f"Use DROP {there.upper()}.",
        )
    return definition


def drop_with_users(session: Host, name: str) -> None:
    """Drop a table or a view and all views over it. Raises SqlError, KafkaError, ClientError."""
    session.sequences.refresh(session.running, max_age_s=0)
    for each in (*dependents(session.definitions.tables, name), name):
        definition = session.definitions.tables.get(each)
        if definition is not None and definition.view is not None and definition.view.is_materialized:
            drop_job(session, definition.topic)
            delete_topic(session.client, definition.topic)
        drop_table(session.definitions, session.sequences, session.client, session.running, each)
        if definition is not None:
            forget_schema(session, definition)


def drop_job(session: Host, name: str) -> None:
    """Remove the job of a view; nothing if there is none. Raises KafkaError, ClientError."""
    session.view_jobs.store.change(session.client, lambda jobs: {name: None} if name in jobs else {})
