"""Statements about jobs: SHOW JOBS, PAUSE JOB, RESUME JOB, DROP JOB; PAUSE STREAM and RESUME STREAM."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

from barnabas.engine import operations
from barnabas.engine.job_states import ENDED
from barnabas.engine.jobs import STREAMING, Job
from barnabas.engine.operations import JobError
from barnabas.sql.dialect import Statement
from barnabas.sql.interface import Notice, SqlError
from barnabas.sql.results import Listing
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.naming import name_at
from barnabas.sql.statements.ready import Ready, done
from barnabas.sql.states import UNDEFINED_OBJECT, WRONG_OBJECT, syntax_error
from barnabas.sql.views.insert_jobs import job_of_stream
from barnabas.sql.views.waiting import wait_for_rest

JOBS = ("name", "kind", "state", "rows_behind", "error", "topic", "statement")


def is_about_job(statement: Statement) -> bool:
    """Whether a PAUSE, RESUME or DROP names a job or a stream."""
    return statement.word(1) in ("JOB", "STREAM") and len(statement.tokens) > 2


def pause(session: Host, statement: Statement) -> Ready:
    """PAUSE JOB | STREAM name: the job rests when the statement ends."""
    name, _ = _named(statement)

    def run() -> None:
        job = _job(session, statement, name)
        _change(session, job.name, operations.pause)
        wait_for_rest(session, job.name)

    return done(statement.text, f"PAUSE {statement.word(1)}", run)


def resume(session: Host, statement: Statement) -> Ready:
    """RESUME JOB | STREAM name: the job goes on, also one that failed."""
    name, _ = _named(statement)

    def run() -> None:
        job = _job(session, statement, name)
        state = session.view_jobs.states().get(job.name)
        _change(session, job.name, operations.restart if state is not None and state.state in ENDED else operations.resume)

    return done(statement.text, f"RESUME {statement.word(1)}", run)


def drop_job(session: Host, statement: Statement) -> Ready:
    """DROP JOB [IF EXISTS] name [IF EXISTS]: the job ends; the rows that it wrote stay."""
    name, if_exists = _named(statement)

    def run() -> None:
        try:
            job = _job(session, statement, name)
        except SqlError as error:
            if error.sqlstate != UNDEFINED_OBJECT or not if_exists:
                raise
            session.notify(Notice(f'job "{name}" does not exist, skipping'))
            return
        _change(session, job.name, operations.delete)

    return done(statement.text, "DROP JOB", run)


def _named(statement: Statement) -> tuple[str, bool]:
    """The name in the statement, and whether there is IF EXISTS before or behind it. Raises SqlError."""
    words = [statement.word(at) for at in range(len(statement.tokens))]
    at, last, if_exists = 2, len(words), False
    if words[2:4] == ["IF", "EXISTS"]:
        at, if_exists = 4, True
    elif words[-2:] == ["IF", "EXISTS"]:
        last, if_exists = last - 2, True
    if if_exists and words[0] != "DROP":
        raise syntax_error(f"{words[0]} has no IF EXISTS", statement.position(at))
    parts, end = name_at(Statement(statement.text, statement.tokens[:last]), at)
    if end < last:
        raise syntax_error(f'syntax error at or near "{statement.tokens[end].text}"', statement.position(end))
    return ".".join(parts), if_exists


def _job(session: Host, statement: Statement, name: str) -> Job:
    """The job of a name, or of the stream of a name. Raises SqlError."""
    jobs = session.view_jobs.jobs()
    if statement.word(1) == "STREAM":
        definition = getattr(session.find(name.split("."), statement.position(2)), "definition", None)
        if definition is None or definition.stream is None:
            raise SqlError(WRONG_OBJECT, f'"{name}" is not a stream', position=statement.position(2))
        found = job_of_stream(jobs, definition.name)
        if found is None:
            raise SqlError("55000", f'the stream "{definition.name}" has no job', hint="it was created without a query")
        return found
    found = jobs.get(name) or jobs.get(name.lower())
    if found is None:
        near = difflib.get_close_matches(name, list(jobs), 1)
        hint = f'perhaps you mean "{near[0]}"' if near else "SHOW JOBS lists the jobs"
        raise SqlError(UNDEFINED_OBJECT, f'job "{name}" does not exist', position=statement.position(2), hint=hint)
    return found


def _change(session: Host, name: str, action: Callable[[Any, Any, str], object]) -> None:
    session.check_writable()
    try:
        action(session.view_jobs.store, session.client, name)
    except JobError as error:
        raise SqlError(WRONG_OBJECT, str(error)) from None


def listed(session: Host) -> Listing:
    """SHOW JOBS: all jobs, with what they do at this moment."""
    rows = []
    for each in session.view_jobs.reports():
        work, state = each.job.work, each.state
        is_streaming = isinstance(work, STREAMING)
        told = ("new", None) if state is None else (str(state.state), state.error)
        behind = None if each.lag is None else str(each.lag)
        of_work = (work.topic, work.sql) if is_streaming else (None, work.target)  # type: ignore[union-attr]  # as its kind says
        rows.append((each.job.name, each.job.kind, told[0], behind, told[1], *of_work))
    return Listing.of("SHOW", {name: [row[place] for row in rows] for place, name in enumerate(JOBS)})
