"""DROP TABLE, DROP STREAM, DROP VIEW and DROP MATERIALIZED VIEW.

Of a materialized view first the job goes, then the topic, then the definition: whatever a killed server leaves, DROP removes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from barnabas.client.errors import PartitionError, ResourceError
from barnabas.engine.jobs import InsertWork, Job
from barnabas.error_codes import ErrorCode
from barnabas.errors import BarnabasError, KafkaError
from barnabas.sql.catalog.definitions import TableDefinition
from barnabas.sql.dialect import Statement, parse
from barnabas.sql.interface import Notice, Result, SqlError
from barnabas.sql.planning.names import position_in
from barnabas.sql.results import Done
from barnabas.sql.statements.alter import delete_topic, drop_table
from barnabas.sql.statements.columns import folded
from barnabas.sql.statements.foreign_keys import check_not_referred
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.ready import Ready
from barnabas.sql.statements.registered import forget_schema
from barnabas.sql.statements.streams import as_table
from barnabas.sql.states import DEPENDENT, UNDEFINED_TABLE, WRONG_OBJECT, not_supported
from barnabas.sql.views.dependents import check_unused, dependents, kind_of
from barnabas.sql.views.insert_jobs import inserts, shown


def drop(session: Host, statement: Statement) -> Ready:
    """DROP TABLE | STREAM | VIEW | MATERIALIZED VIEW [IF EXISTS] name, … [CASCADE | RESTRICT]."""
    tree = parse(as_table(statement, 1) if statement.word(1) == "STREAM" else statement)
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
                check_not_referred(session.definitions.tables, each.name, names)
                _check_no_inserts(session, each)
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
    found = session.access.definition(parts[-1]) if relation is None else relation
    definition: TableDefinition | None = found if isinstance(found, TableDefinition) else getattr(found, "definition", None)
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
        if definition is not None and not definition.is_plain_view:
            _drop_inserts(session, definition)
        if definition is not None and definition.view is not None and definition.view.is_materialized:
            drop_job(session, definition.topic)
            delete_topic(session.client, definition.topic)
        drop_table(session.definitions, session.sequences, session.client, session.running, each)
        if definition is not None:
            forget_schema(session, definition)


def _known_jobs(session: Host) -> Mapping[str, Job]:
    """The jobs; none for a caller who may not see them."""
    try:
        return session.view_jobs.jobs()
    except (KafkaError, ResourceError, PartitionError) as error:
        if error.code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise
        return {}


def _check_no_inserts(session: Host, definition: TableDefinition) -> None:
    """Raises SqlError 2BP01 if jobs insert rows of a table, or into it."""
    found = inserts(_known_jobs(session), definition.topic) if definition.topic else []
    users = [shown(job) for job in found if not _is_own(job, definition)]
    if users:
        kind = kind_of(definition)
        raise SqlError(
            DEPENDENT, f"cannot drop {kind} {definition.name} because other objects depend on it: {', '.join(users)}",
            detail="\n".join(f"{user} depends on {kind} {definition.name}" for user in users),
            hint="Use DROP … CASCADE to drop the dependent objects too.",
        )  # fmt: skip


def _is_own(job: Job, definition: TableDefinition) -> bool:
    return isinstance(job.work, InsertWork) and job.work.creates == definition.name


def _drop_inserts(session: Host, definition: TableDefinition) -> None:
    """Drop the jobs that insert rows of a table, or into it, with the streams that they belong to."""
    for job in inserts(_known_jobs(session), definition.topic):
        assert isinstance(job.work, InsertWork)
        drop_job(session, job.name)
        if job.work.creates is not None and not _is_own(job, definition):
            drop_with_users(session, job.work.creates)


def drop_job(session: Host, name: str) -> None:
    """Remove the job of a view; nothing if there is none. Raises KafkaError, ClientError."""
    session.view_jobs.store.change(session.client, lambda jobs: {name: None} if name in jobs else {})
