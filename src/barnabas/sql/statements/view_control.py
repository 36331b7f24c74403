"""Statements about views that are there: PAUSE, RESUME, REFRESH, FLUSH, ALTER."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from barnabas.client.errors import PartitionError, ResourceError
from barnabas.engine import operations
from barnabas.engine.clock import reads_clock
from barnabas.engine.job_states import ENDED
from barnabas.engine.operations import UnknownJob
from barnabas.sql.catalog.definitions import TableDefinition
from barnabas.sql.dialect import Statement, parse_tokens
from barnabas.sql.interface import Result, SqlError
from barnabas.sql.results import Done
from barnabas.sql.statements import job_control
from barnabas.sql.statements.create import Options
from barnabas.sql.statements.emit import without_emit
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.materialized import replace, view_of
from barnabas.sql.statements.naming import name_at
from barnabas.sql.statements.ready import Ready, done
from barnabas.sql.statements.renaming import rename
from barnabas.sql.states import WRONG_OBJECT, not_supported, syntax_error
from barnabas.sql.views.waiting import wait_for_rest

NEWEST = "each query reads the newest records"


def view_at(session: Host, statement: Statement, at: int, *, plain: bool = False) -> TableDefinition:
    """The definition of the view whose name begins at a token and ends the statement. Raises SqlError.

    Args:
        plain: whether a view without rows of its own will do.
    """
    parts, end = name_at(statement, at)
    if end < len(statement.tokens):
        raise syntax_error(f'syntax error at or near "{statement.tokens[end].text}"', statement.position(end))
    return view_named(session, parts, statement.position(at), plain=plain)


def view_named(session: Host, parts: Sequence[str], position: int | None, *, plain: bool = False) -> TableDefinition:
    """The definition of a view. Raises SqlError."""
    relation = session.find(parts, position)
    definition: TableDefinition | None = getattr(relation, "definition", None)
    if definition is None or definition.view is None or not (plain or definition.view.is_materialized):
        raise SqlError(WRONG_OBJECT, f'"{relation.name}" is not a materialized view', position=position)
    return definition


def _behind_words(statement: Statement) -> int:
    """Where the name begins in `WORD [MATERIALIZED VIEW] name`."""
    return 3 if (statement.word(1), statement.word(2)) == ("MATERIALIZED", "VIEW") else 1


def pause(session: Host, statement: Statement, _: Any) -> Ready:
    """PAUSE [MATERIALIZED VIEW | JOB | STREAM] name: its job rests when the statement ends, and its rows stay."""
    if job_control.is_about_job(statement):
        return job_control.pause(session, statement)
    definition = view_at(session, statement, _behind_words(statement))

    def run() -> None:
        _job(session, definition, operations.pause)
        wait_for_rest(session, definition.topic)

    return done(statement.text, "PAUSE MATERIALIZED VIEW", run)


def resume(session: Host, statement: Statement, _: Any) -> Ready:
    """RESUME [MATERIALIZED VIEW | JOB | STREAM] name: its job goes on, also one that failed."""
    if job_control.is_about_job(statement):
        return job_control.resume(session, statement)
    definition = view_at(session, statement, _behind_words(statement))

    def run() -> None:
        state = session.view_jobs.states().get(definition.topic)
        has_ended = state is not None and state.state in ENDED
        _job(session, definition, operations.restart if has_ended else operations.resume)

    return done(statement.text, "RESUME MATERIALIZED VIEW", run)


def _job(session: Host, definition: TableDefinition, action: Any) -> None:
    session.check_writable()
    try:
        action(session.view_jobs.store, session.client, definition.topic)
    except UnknownJob:
        text = f'the view "{definition.name}" has no job: it was not created to the end'
        raise SqlError("55000", text, hint="DROP MATERIALIZED VIEW removes it") from None


def refresh(session: Host, statement: Statement, _: Any) -> Ready:
    """REFRESH [MATERIALIZED VIEW] name: it waits until the view has all that is committed now."""
    if statement.word(1) in ("TABLE", "FUNCTION"):
        raise not_supported(f"REFRESH {statement.word(1)} is not supported", statement.position(0), NEWEST)
    at = _behind_words(statement)
    at += statement.word(at) == "CONCURRENTLY"
    definition = view_at(session, statement, at)

    def run() -> None:
        _tell_time(session)
        session.catching_up.refresh(definition.topic)

    return done(statement.text, "REFRESH MATERIALIZED VIEW", run)


def flush(session: Host, statement: Statement, _: Any) -> Ready:
    """FLUSH, and WAIT alone: it waits until all views have what this session wrote."""
    if len(statement.tokens) > 1:
        raise syntax_error("FLUSH stands alone", statement.position(1))

    def run() -> None:
        _tell_time(session)
        session.catching_up.flush()

    return done(statement.text, statement.word(0), run)


def _tell_time(session: Host) -> None:
    """Let views whose conditions call `now()` have the time of this moment."""
    if any(map(reads_clock, session.view_jobs.jobs().values())):
        with contextlib.suppress(ResourceError, PartitionError):  # without the right to write it, the time of the engine counts
            session.tell_time()


def alter_view(session: Host, statement: Statement) -> Ready:
    """ALTER [MATERIALIZED] VIEW name RENAME TO name | AS query."""
    is_materialized = statement.word(1) == "MATERIALIZED"
    at = 3 if is_materialized else 2
    parts, end = name_at(statement, at)
    definition = view_named(session, parts, statement.position(at), plain=True)
    if is_materialized and definition.is_plain_view:
        raise SqlError(WRONG_OBJECT, f'"{definition.name}" is not a materialized view', position=statement.position(at))
    tag = "ALTER MATERIALIZED VIEW" if is_materialized else "ALTER VIEW"
    if (statement.word(end), statement.word(end + 1)) == ("RENAME", "TO"):
        parts, last = name_at(statement, end + 2)
        if last < len(statement.tokens):
            raise syntax_error(f'syntax error at or near "{statement.tokens[last].text}"', statement.position(last))
        return done(statement.text, tag, lambda: rename(session, definition.name, _folded(statement, end + 2)))
    if statement.word(end) != "AS" or definition.is_plain_view:
        raise not_supported(
            f"this form of {tag} is not supported", statement.position(end), f"{tag} name RENAME TO name, or AS query"
        )
    query = parse_tokens(statement.text, without_emit(statement).tokens[end + 1 :], spark_order=session.is_spark)
    if not isinstance(query, (exp.Query, exp.Values)):
        raise syntax_error("a query follows AS", statement.position(end + 1))
    shown = [each.name for each in definition.columns if definition.view is None or each.name not in definition.view.hidden]
    made = view_of(session, statement, query, definition.name, shown, Options(topic=definition.topic), only_all=True)

    def run(_: Sequence[Any]) -> Result:
        replace(session, made)
        return Done(tag)

    return Ready(statement.text, run, version=session.version)


def _folded(statement: Statement, at: int) -> str:
    token = statement.tokens[at]
    return str(token.text) if statement.text[token.start] in '"`' else str(token.text).lower()
