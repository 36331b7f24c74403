"""CREATE MATERIALIZED VIEW.

The order of the steps: the definition, the topic, the job. A killed server may leave a definition without a job: DROP removes it, and after
LEFT_S the next CREATE completes it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from sqlglot import exp

from barnabas.client.results import NewTopic
from barnabas.engine.clock import CLOCK, has_clock
from barnabas.engine.jobs import Desired, Job, ViewWork
from barnabas.errors import BarnabasError
from barnabas.sql.catalog.definitions import REGISTERED, TableDefinition
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.continuous.planned import Planned, plan_view
from barnabas.sql.continuous.refusals import refuse
from barnabas.sql.continuous.time_zones import refuse_zone
from barnabas.sql.dialect import Statement, parse
from barnabas.sql.interface import Notice, Result, SqlError
from barnabas.sql.planning.names import parts_of, tables_of
from barnabas.sql.planning.query import QueryPlan
from barnabas.sql.results import Done
from barnabas.sql.statements.columns import folded
from barnabas.sql.statements.create import Options, exists, has_topic, options_of, table_name
from barnabas.sql.statements.emit import emits_final, without_emit
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.ready import Ready
from barnabas.sql.statements.registered import check_registrable, made_schema
from barnabas.sql.statements.select import checked, collected
from barnabas.sql.states import DUPLICATE_TABLE, not_supported, syntax_error
from barnabas.sql.views import layout
from barnabas.sql.views.constant import constant_definition, constant_rows, is_constant
from barnabas.sql.views.dependents import dependents
from barnabas.sql.views.insert_jobs import check_no_loop
from barnabas.sql.views.names_in_text import with_other_names
from barnabas.sql.views.waiting import wait_for_rows
from barnabas.sql.writing.records import records_of

LEFT_S = 30.0  # a definition without a job that is older was left by a server that was killed
FORM = "CREATE MATERIALIZED VIEW name [(columns)] [WITH (topic = …, partitions = …)] AS query [EMIT FINAL]"
TAKES = ("topic", "format", "partitions", "replicas")
TUNING = ("parallelism", "backfill_parallelism", "source_rate_limit", "backfill_rate_limit", "streaming_rate_limit")  # no effect
FORMATS = ("json", *REGISTERED)


class View(msgspec.Struct, frozen=True):
    """A view that was planned.

    Args:
        work: of its job; None if it reads no table, so that its rows never change.
        query: of such a view.
    """

    definition: TableDefinition
    work: ViewWork | None
    planned: Planned | None
    options: Options
    query: QueryPlan | None = None

    def of_topic(self, topic: str) -> View:
        """The same in another topic."""
        return self.of(msgspec.structs.replace(self.definition, topic=topic))

    def of(self, definition: TableDefinition) -> View:
        """The same with another definition."""
        work = None if self.planned is None else layout.work_of(definition, self.planned)
        return View(definition, work, self.planned, self.options, self.query)


def create(session: Host, statement: Statement) -> Ready:
    """CREATE MATERIALIZED VIEW [IF NOT EXISTS] name [(columns)] [WITH (…)] AS query [WITH [NO] DATA]."""
    statement, wants_rows = without_data(statement)
    tree = parse(without_emit(statement), spark_order=session.is_spark)
    if not isinstance(tree, exp.Create) or not isinstance(tree.args.get("expression"), (exp.Query, exp.Values)):
        raise not_supported("this form of CREATE MATERIALIZED VIEW is not supported", hint=FORM)
    view = planned(session, statement, tree)
    if_not_exists, replaces = bool(tree.args.get("exists")), bool(tree.args.get("replace"))

    def run(_: Sequence[Any]) -> Result:
        there = session.definitions.tables.get(view.definition.name)
        if replaces and there is not None and there.view is not None and there.view.is_materialized:
            replace(session, view.of_topic(there.topic), waits=wants_rows)
            return Done("CREATE MATERIALIZED VIEW")
        make(session, view, if_not_exists=if_not_exists, waits=wants_rows)
        return Done("CREATE MATERIALIZED VIEW")

    return Ready(statement.text, run, version=session.version)


def without_data(statement: Statement) -> tuple[Statement, bool]:
    """The statement without WITH [NO] DATA at its end, and whether the rows are wanted."""
    words = [statement.word(at) for at in range(len(statement.tokens))]
    for ending in (["WITH", "NO", "DATA"], ["WITH", "DATA"]):
        if words[-len(ending) :] == ending:
            return Statement(statement.text, statement.tokens[: -len(ending)]), len(ending) == 2
    return statement, True


def planned(session: Host, statement: Statement, tree: Any) -> View:
    """The view that a statement describes. Raises SqlError."""
    schema = tree.this
    name = table_name(session, schema.this if isinstance(schema, exp.Schema) else schema)
    given = [folded(each.this if isinstance(each, exp.ColumnDef) else each) for each in schema.expressions]
    options = _options(tree)
    return view_of(session, statement, tree.args["expression"], name, given if isinstance(schema, exp.Schema) else [], options)


def view_of(
    session: Host,
    statement: Statement,
    query: Any,
    name: str,
    columns: Sequence[str],
    options: Options,
    *,
    only_all: bool = False,
) -> View:
    """A view of a query, planned. Raises SqlError.

    Args:
        columns: names of the first columns.
        only_all: whether they count only if there are as many columns.
    """
    text = with_other_names(query_text(statement), session.access.qualified)
    sources = view_sources(session, query, "a materialized view")
    with session.in_utc():
        plan = checked(session, query, statement.text, with_pending=False, with_clock=True, for_job=True)
    if not session.zone.is_utc:
        refuse_zone(plan, session.zone.name, "a materialized view")
    if not plan.inputs:
        refuse(plan)
        definition = constant_definition(name, options.topic_of(name), plan.schema, list(columns), text, sources)
        if options.format != definition.format:
            raise not_supported(
                f"a view that reads no table cannot have the format {options.format}", hint="leave the format out"
            )
        return View(definition, None, None, options, plan)
    cursor = session.planner(plan.in_python)
    try:
        names = columns if not only_all or len(columns) == len(plan.schema) else ()
        found = plan_view(plan, cursor, names, is_final=emits_final(statement))
        topics = [relation for relation in found.tables.values() if isinstance(relation, TopicRelation)]
        read = [each.source for each in topics if each.source != CLOCK]
        made = layout.definition_of(
            name,
            options.topic_of(name),
            found,
            plan.schema,
            text,
            list(dict.fromkeys([*sources, *read])),
            cursor,
            plan.functions,
        )
    finally:
        cursor.close()
    definition = msgspec.structs.replace(made, format=options.format)
    if definition.is_registered:
        check_registrable(session, definition)
    return View(definition, layout.work_of(definition, found), found, options)


def query_text(statement: Statement) -> str:
    """The text of the query: behind the first AS outside of brackets."""
    depth = 0
    for at in range(len(statement.tokens)):
        text = str(statement.tokens[at].text)
        depth += (text == "(") - (text == ")")
        if depth == 0 and statement.word(at) == "AS":
            last = statement.tokens[-1]
            return statement.text[statement.tokens[at + 1].start : last.end + 1]
    raise syntax_error(f"the statement is {FORM}", statement.position(0))


def view_sources(session: Host, query: Any, what: str) -> list[str]:
    """The lasting views that a query names; their tables are found when they are in place. Raises SqlError for a temporary view."""
    found = []
    for table in tables_of(query):
        if table.name.lower() in session.views and not table.args.get("db"):
            raise not_supported(f'{what} cannot read the temporary view "{table.name}"', hint="it ends with its session")
        definition = session.access.plain_view(parts_of(table))
        if definition is not None:
            found.append(definition.name)
    return found


def _options(tree: Any) -> Options:
    properties = []
    for each in tree.args["properties"].expressions:
        name = each.this if isinstance(getattr(each, "this", None), str) else getattr(getattr(each, "this", None), "name", "")
        if isinstance(each, exp.MaterializedProperty) or name.lower() in TUNING:
            continue
        properties.append(each)
        if not isinstance(each, exp.FileFormatProperty) and name.lower() not in TAKES and "." not in name:
            raise SqlError(
                "22023", f'unrecognized option "{name}"', hint=f"WITH takes {', '.join(TAKES)}, and settings of topics in quotes"
            )
    found = options_of(exp.Properties(expressions=properties) if properties else None)
    if found.format not in FORMATS:
        raise SqlError("22023", f'a view cannot have the format "{found.format}"', hint=f"it can be {', '.join(FORMATS)}")
    return found


def make(session: Host, view: View, *, if_not_exists: bool = False, waits: bool = True) -> bool:
    """Write the definition, create the topic, write the job, and wait for the first rows; False if the view was there. Raises SqlError."""
    session.check_writable()
    _tell_time(session, view)
    for each in view.planned.tables.values() if view.planned is not None else ():
        session.check_readable(each)
    for text in view.planned.notices if view.planned is not None else ():
        session.notify(Notice(text))
    now_ms = time.time_ns() // 1_000_000
    assert view.definition.view is not None
    definition = msgspec.structs.replace(view.definition, view=msgspec.structs.replace(view.definition.view, created_ms=now_ms))
    if not _define(session, definition, if_not_exists=if_not_exists):
        session.notify(Notice(f'relation "{definition.name}" already exists, skipping', sqlstate="42P07"))
        return False
    try:
        _make_topic(session, definition, view.options)
        if definition.is_registered:
            definition = _registered(session, definition)
        work = view.of(definition).work
        if work is None:
            _write_once(session, view)
            return True
        job = Job(definition.topic, work, generation=now_ms, created_ms=now_ms)
        session.view_jobs.store.put(session.client, {job.name: job})
    except BarnabasError:
        with contextlib.suppress(BarnabasError):  # DROP removes it otherwise
            session.definitions.change(session.client, session.running, lambda tables: _undefined(tables, definition))
        raise
    if waits and session.settings.get("create_view_waits") == "on":
        wait_for_rows(session, job)
    return True


def _tell_time(session: Host, view: View) -> None:
    """Write the time for a view whose conditions call `now()`, so that its first rows have one."""
    if view.work is not None and has_clock(view.work):
        session.tell_time()


def _registered(session: Host, definition: TableDefinition) -> TableDefinition:
    """Register the schema of a view's values, and write the definition with it. Raises SqlError, RegistryError, RegistryUnreachable."""
    made = made_schema(session, definition)
    name = definition.name
    session.definitions.change(
        session.client, session.running, lambda tables: {name: made} if tables.get(name) == definition else {}
    )
    return made


def _write_once(session: Host, view: View) -> None:
    """Write the rows of a view that reads no table."""
    assert view.query is not None
    with session.in_utc():
        rows = constant_rows(view.definition, collected(session, view.query, (), ""))
    if rows.num_rows:
        session.send([(view.definition.topic, records_of(session.access.relation_of(view.definition), rows))])


def replace(session: Host, view: View, *, waits: bool = True) -> None:
    """Let a view that is there have another query with the same columns and key. The job computes the result anew beside the old rows.

    Raises:
        SqlError: the view is not there or has other columns, or the query reads the view.
    """
    session.check_writable()
    name = view.definition.name
    _tell_time(session, view)
    for each in view.planned.tables.values() if view.planned is not None else ():
        session.check_readable(each)
    now_ms = time.time_ns() // 1_000_000
    there = session.definitions.tables.get(name)
    if there is not None and there.is_registered:  # the same columns are the same schema, under the same id
        view = view.of(made_schema(session, msgspec.structs.replace(view.definition, format=there.format, topic=there.topic)))
    new, work = view.definition, view.work
    if work is None:
        raise not_supported(
            f'the view "{name}" cannot get a query that reads no table', hint=f"DROP MATERIALIZED VIEW {name} first"
        )

    def decide(tables: Mapping[str, TableDefinition]) -> Mapping[str, TableDefinition | None]:
        old = tables.get(new.name)
        if old is None or old.view is None or new.view is None:
            raise SqlError("42P01", f'relation "{new.name}" does not exist')
        read = set(new.view.sources)
        if new.name in read or read & set(dependents(tables, new.name)):
            raise SqlError("42P17", f'the view "{new.name}" would read itself')
        _check_alike(old, new)
        made = msgspec.structs.replace(new, topic=old.topic, comment=old.comment)
        return {} if made == old else {new.name: made}

    check_no_loop(session.view_jobs.jobs(), {each.topic for each in work.tables.values()}, new.topic)
    session.definitions.change(session.client, session.running, decide)
    made: list[Job] = []

    def change(jobs: Mapping[str, Job]) -> Mapping[str, Job | None]:
        old = jobs.get(new.topic) or Job(new.topic, work, created_ms=now_ms)
        made[:] = [msgspec.structs.replace(old, work=work, generation=max(now_ms, old.generation + 1), desired=Desired.RUNNING)]
        return {new.topic: made[0]}

    session.view_jobs.store.change(session.client, change)
    if waits and session.settings.get("create_view_waits") == "on":
        wait_for_rows(session, made[0])


def _check_alike(old: TableDefinition, new: TableDefinition) -> None:
    def shape(of: TableDefinition) -> object:
        return [(each.name, each.kind) for each in of.columns], of.key, of.is_key_object, of.format, of.view and of.view.hidden

    if shape(old) != shape(new):
        raise not_supported(
            f'the query gives other columns or another key than the view "{old.name}" has',
            hint=f"DROP MATERIALIZED VIEW {old.name}, and create it again; or create another view",
        )


def _define(session: Host, definition: TableDefinition, *, if_not_exists: bool) -> bool:
    """Write the definition, unless the name is taken; whether it was written."""
    session.definitions.refresh(session.running, max_age_s=0)
    if definition.name not in session.definitions.tables and has_topic(session, definition.topic):
        if definition.topic == definition.name:
            raise exists(definition.name)
        raise SqlError(DUPLICATE_TABLE, f'the topic "{definition.topic}" exists already', hint="a view needs a topic of its own")
    has_job = definition.topic in session.view_jobs.jobs()
    already = False

    def decide(tables: Mapping[str, TableDefinition]) -> Mapping[str, TableDefinition | None]:
        nonlocal already
        there = tables.get(definition.name)
        already = there is not None and there != definition and not _is_left(there, has_job)
        if already and not if_not_exists:
            raise exists(definition.name)
        return {} if already else {definition.name: definition}

    session.definitions.change(session.client, session.running, decide)
    return not already


def _is_left(there: TableDefinition, has_job: bool) -> bool:
    """Whether a server that was killed left the definition of a materialized view."""
    if there.view is None or not there.view.is_materialized or has_job or is_constant(there):
        return False
    return time.time_ns() // 1_000_000 - there.view.created_ms > LEFT_S * 1000


def _undefined(tables: Mapping[str, TableDefinition], definition: TableDefinition) -> Mapping[str, TableDefinition | None]:
    return {definition.name: None} if tables.get(definition.name) == definition else {}


def _make_topic(session: Host, definition: TableDefinition, options: Options) -> None:
    configs = {"cleanup.policy": "compact", **options.configs}
    session.client.ensure_topic(NewTopic(definition.topic, options.partitions, options.replicas, configs))
    session.client.agreed_topics([definition.topic])
