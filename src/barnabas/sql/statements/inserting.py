"""Continuous INSERT: an INSERT whose query reads a STREAM is a job, which writes the rows of each micro-batch exactly once.

INSERT INTO name [(columns)] [WITH (start = 'earliest' | 'latest', job = 'name')] SELECT … FROM STREAM …
    [EMIT CHANGES | EMIT FINAL]
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from barnabas.engine.jobs import InsertWork, Job
from barnabas.engine.operations import JobError, check_name
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.continuous.planned import Planned, plan_appends
from barnabas.sql.continuous.refusals import TEMPORARY
from barnabas.sql.continuous.time_zones import refuse_zone
from barnabas.sql.dialect import STREAM, Statement
from barnabas.sql.interface import Notice, Result, SqlError
from barnabas.sql.planning.names import parts_of, position_in, tables_of
from barnabas.sql.planning.time_windows import is_stream, tables_in_windows
from barnabas.sql.results import Done
from barnabas.sql.statements.constraints import refuse_in_jobs
from barnabas.sql.statements.filling import filled
from barnabas.sql.statements.generated import given_names
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.materialized import view_sources
from barnabas.sql.statements.numbered import check_generated
from barnabas.sql.statements.ready import Ready
from barnabas.sql.statements.select import checked
from barnabas.sql.statements.target import cast_to, columns_named, target_of
from barnabas.sql.states import DUPLICATE_TABLE, INVALID_PARAMETER, not_supported, syntax_error
from barnabas.sql.views import layout
from barnabas.sql.views.insert_jobs import check_no_loop, free_job_name
from barnabas.sql.views.waiting import ends_of, wait_for_rows
from barnabas.tables.column_types import mark_of
from barnabas.tables.formats import Raw

STARTS = ("earliest", "latest")
OPTIONS = ("start", "job")


class Insert(msgspec.Struct, frozen=True):
    """A job that was planned.

    Args:
        planned: its plan and its tables.
        is_latest: whether it leaves out the records that are there.
        job: the name of the job, if the statement gives one; otherwise `wanted`, with a number if need be.
    """

    work: InsertWork
    planned: Planned
    is_latest: bool
    wanted: str
    job: str | None = None

    @property
    def streams(self) -> set[str]:
        """The topics that it reads as streams."""
        nodes = self.planned.plan.tables
        return {each.topic for name, each in self.work.tables.items() if nodes[name].is_stream}


def reads_stream(query: Any) -> bool:
    """Whether a query names a STREAM."""
    if query is None:
        return False
    return any(table.meta.get(STREAM) for table in tables_of(query)) or any(map(is_stream, tables_in_windows(query)))


def without_options(statement: Statement) -> tuple[Statement, dict[str, str]]:
    """An INSERT without `WITH (…)` behind its target, and the options in it. Raises SqlError."""
    tokens, depth = statement.tokens, 0
    for at, token in enumerate(tokens):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth == 0 and statement.word(at) in ("SELECT", "VALUES", "TABLE", "FROM"):
            break
        is_with = depth == 0 and statement.word(at) == "WITH"
        if is_with and at + 1 < len(tokens) and tokens[at + 1].token_type == TokenType.L_PAREN:
            options, end = _options(statement, at + 2)
            return Statement(statement.text, [*tokens[:at], *tokens[end:]]), options
        if is_with:
            break
    return statement, {}


def _options(statement: Statement, at: int) -> tuple[dict[str, str], int]:
    tokens = statement.tokens
    found: dict[str, str] = {}
    while at < len(tokens) and tokens[at].token_type != TokenType.R_PAREN:
        name = str(tokens[at].text).lower()
        if at + 2 >= len(tokens) or tokens[at + 1].token_type != TokenType.EQ:
            raise syntax_error("WITH takes name = 'value', …", statement.position(at))
        if name not in OPTIONS:
            text = f'unrecognized option "{name}"'
            raise SqlError(INVALID_PARAMETER, text, position=statement.position(at), hint=f"WITH takes {', '.join(OPTIONS)}")
        found[name] = str(tokens[at + 2].text)
        at += 3
        at += at < len(tokens) and tokens[at].token_type == TokenType.COMMA
    return found, at + 1


def is_latest(text: str) -> bool:
    """Whether the option `start` leaves out the records that are there. Raises SqlError."""
    if text.lower() not in STARTS:
        raise SqlError(INVALID_PARAMETER, f'the option start is "{text}"', hint=f"it can be {' or '.join(STARTS)}")
    return text.lower() == "latest"


def continuous(session: Host, statement: Statement, tree: Any, options: Mapping[str, str], *, is_final: bool = False) -> Ready:
    """INSERT INTO … SELECT … FROM STREAM …: the job begins when the statement runs."""
    made = planned_insert(session, statement, tree, options, is_final=is_final)

    def run(_: Sequence[Any]) -> Result:
        session.check_writable()
        check_rights(session, made)
        job = start(session, made)
        session.notify(Notice(f'the job "{job.name}" inserts the rows from now on', hint=f"DROP JOB {job.name} ends it"))
        wait(session, job, made)
        return Done("INSERT 0 0")

    return Ready(statement.text, run, version=session.version)


def planned_insert(
    session: Host, statement: Statement, tree: Any, options: Mapping[str, str], *, is_final: bool = False
) -> Insert:  # fmt: skip
    """The job that an INSERT describes. Raises SqlError."""
    source = tree.args["expression"]
    if tree.args.get("with_") is not None:
        source.set("with_", tree.args["with_"])
    for name, word in (("conflict", "ON CONFLICT"), ("returning", "RETURNING")):
        if tree.args.get(name) is not None:
            hint = "a row of a table with a primary key takes the place of the row with its key" if name == "conflict" else None
            raise not_supported(f"{word} of an INSERT that reads a STREAM is not supported", position_in(tree), hint)
    table = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    relation = target_of(session, table)
    if relation.name.startswith(TEMPORARY):
        raise not_supported("a job cannot write to a temporary table", position_in(table), "it ends with its session")
    names = columns_named(relation, tree.this.expressions) if isinstance(tree.this, exp.Schema) else given_names(relation, source)
    check_generated(relation, names, source)
    late = is_latest(options.get("start", "earliest"))
    made = insert_of(session, statement, relation, source, names, is_late=late, is_final=is_final)
    if "job" in options:
        try:
            check_name(options["job"])
        except JobError as error:
            raise SqlError(INVALID_PARAMETER, str(error)) from None
        made = msgspec.structs.replace(made, job=options["job"])
    return made


def insert_of(
    session: Host, statement: Statement, relation: TopicRelation, source: Any, names: Sequence[str], *, is_late: bool,
    sql: str = "", creates: str | None = None, is_final: bool = False,
) -> Insert:  # fmt: skip
    """The job that inserts the rows of a query. Raises SqlError.

    Args:
        relation: gets the rows.
        names: its columns that the query gives, in the query's order.
        is_late: whether only new records count.
        sql: for people; the statement by default.
        creates: the stream that is created with the job.
        is_final: whether a row is inserted when it cannot change any more.
    """
    refuse_in_jobs(relation.definition)
    mark_streams(session, source)
    view_sources(session, source, "a job")
    with session.in_utc():
        planned = _planned(session, statement, relation, source, names, is_final=is_final)
    definition = relation.definition
    required = [] if definition is None else [each.name for each in definition.columns if not each.nullable]
    if relation.is_keyed and isinstance(relation.layout.value, Raw):
        required += [each.name for each in relation.layout.value.fields]  # a null payload would delete the row
    target = layout.input_table(relation, tuple(each.name for each in planned.plan.columns))
    if relation.has_row_names:
        target = msgspec.structs.replace(target, is_keyed=False, key=None)  # each row is a record without a key
    work = InsertWork(
        sql or statement.text, planned.plan, layout.inputs_of(planned), target, tuple(dict.fromkeys(required)), creates
    )
    first = next(each for name, each in planned.tables.items() if planned.plan.tables[name].is_stream)
    assert isinstance(first, TopicRelation)
    return Insert(work, planned, is_late, f"{relation.source}_from_{first.source}")


def _planned(
    session: Host, statement: Statement, relation: TopicRelation, source: Any, names: Sequence[str], *, is_final: bool
) -> Planned:
    """The job's plan. Raises SqlError."""
    inner = checked(session, source.copy(), statement.text, with_pending=False, for_job=True)
    count = len(inner.schema)
    if count > len(names):
        raise syntax_error("INSERT has more expressions than target columns", position_in(source))
    given = list(names[:count])
    plan = checked(session, _cast(relation, source, given, inner.schema.types), statement.text, with_pending=False, for_job=True)
    zone = session.settings.zone
    if not zone.is_utc:
        refuse_zone(plan, zone.name, "a job")
    cursor = session.planner(plan.in_python)
    try:
        return plan_appends(plan, cursor, filled(session, relation, given, statement.text), is_final=is_final)
    finally:
        cursor.close()


def mark_streams(session: Host, query: Any) -> None:
    """Let a job read the tables that CREATE STREAM made as streams; the tree is changed. Raises SqlError."""
    for table in tables_of(query):
        if table.meta.get(STREAM) or (not table.args.get("db") and table.name in session.views):
            continue
        if session.access.plain_view(parts_of(table)) is None:
            definition = getattr(session.find(parts_of(table), position_in(table)), "definition", None)
            if definition is not None and definition.stream is not None:
                table.meta[STREAM] = True
    for name in tables_in_windows(query):
        parts = [each.name for each in name.parts] if isinstance(name, exp.Column) else []
        if not parts or (len(parts) == 1 and parts[0] in session.views) or session.access.plain_view(parts) is not None:
            continue
        definition = getattr(session.find(parts, position_in(name)), "definition", None)
        if definition is not None and definition.stream is not None:
            name.replace(exp.Anonymous(this=STREAM, expressions=[name.copy()]))


def _cast(relation: TopicRelation, source: Any, names: Sequence[str], kinds: Sequence[pa.DataType]) -> Any:
    """The query, whose columns have these types, with the names and types of the target's columns."""
    aliases = [f"c{number}" for number in range(len(names))]
    fields = [relation.columns.field(name) for name in names]
    items = [
        exp.alias_(
            exp.column(alias) if kind == field.type and not mark_of(field) else cast_to(exp.column(alias), field),
            field.name,
            quoted=True,
        )
        for alias, field, kind in zip(aliases, fields, kinds, strict=True)
    ]
    alias = exp.TableAlias(this=exp.to_identifier("s"), columns=[exp.to_identifier(each) for each in aliases])
    return exp.select(*items, copy=False).from_(exp.Subquery(this=source, alias=alias), copy=False)


def check_rights(session: Host, made: Insert) -> None:
    """Raises PartitionError if the caller may not read a table."""
    for each in made.planned.tables.values():
        session.check_readable(each)


def start(session: Host, made: Insert) -> Job:
    """Write the job. Raises SqlError, PartitionError if the caller may not write to the target, KafkaError, ClientError."""
    session.access.check_writable(made.work.topic)  # the engine will write as its own user
    for text in made.planned.notices:
        session.notify(Notice(text))
    now_ms = time.time_ns() // 1_000_000
    work = made.work
    if made.is_latest:
        places = ends_of(session, made.streams, read_committed=True)
        start = {
            topic: {str(at): places.get(topic, {}).get(at, 0) for at in _partitions(session, topic)} for topic in made.streams
        }
        work = msgspec.structs.replace(work, start=start)
    found: list[Job] = []

    def decide(jobs: Mapping[str, Job]) -> Mapping[str, Job | None]:
        if made.job is not None and made.job in jobs:
            raise SqlError(DUPLICATE_TABLE, f'job "{made.job}" already exists', hint=f"DROP JOB {made.job} ends it")
        check_no_loop(jobs, made.streams, work.topic)
        found[:] = [Job(made.job or free_job_name(jobs, made.wanted), work, generation=now_ms, created_ms=now_ms)]
        return {found[0].name: found[0]}

    session.view_jobs.store.change(session.client, decide)
    return found[0]


def _partitions(session: Host, topic: str) -> Iterable[int]:
    return sorted(session.client.topics_by_name([topic])[topic].partitions)


def wait(session: Host, job: Job, made: Insert) -> None:
    """Wait until the job has what its streams have now, unless the session does not want that. Raises SqlError."""
    if session.settings.get("create_view_waits") == "on":
        wait_for_rows(session, job, ends_of(session, made.streams, read_committed=True))
