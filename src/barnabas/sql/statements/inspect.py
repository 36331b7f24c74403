"""SHOW TABLES and its kin, DESCRIBE, EXPLAIN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from sqlglot.tokenizer_core import TokenType

from barnabas.engine.jobs import InsertWork
from barnabas.sql.catalog.access import TEMPORARY
from barnabas.sql.catalog.definitions import TableDefinition
from barnabas.sql.dialect import Statement
from barnabas.sql.duck.types import shown_type
from barnabas.sql.interface import Result, SqlError
from barnabas.sql.results import Listing
from barnabas.sql.statements import job_control, streams
from barnabas.sql.statements.create_text import create_text
from barnabas.sql.statements.filters import filter_of
from barnabas.sql.statements.functions import SHOWN as SHOWN_FUNCTIONS
from barnabas.sql.statements.functions import listed as functions_listed
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.ready import Ready
from barnabas.sql.statements.utility import show as show_parameter
from barnabas.sql.states import UNDEFINED_FUNCTION, syntax_error
from barnabas.sql.views.dependents import kind_of

_TABLES = ("name", "topic", "format", "key", "comment")
_VIEWS = ("name", "kind", "state", "error", "query")
_COLUMNS = ("column", "type", "nullable", "key", "default", "comment", "watermark")


def _listing(text: str, names: Sequence[str], rows: Any) -> Ready:
    schema = pa.schema([pa.field(name, pa.string()) for name in names])

    def run(_: Sequence[Any]) -> Result:
        found = list(rows())
        return Listing.of("SHOW", {name: [row[place] for row in found] for place, name in enumerate(names)})

    return Ready(text, run, schema=schema)


def show(session: Host, statement: Statement, given: Any) -> Ready:
    """SHOW TABLES | TOPICS | DATABASES | SCHEMAS | COLUMNS FROM name | CREATE TABLE name, or a parameter."""
    word, text = statement.word(1), statement.text
    if word in _LISTS or (word, statement.word(2)) == ("MATERIALIZED", "VIEWS"):
        return _listed(session, statement)
    match word:
        case "MATERIALIZED":
            raise syntax_error("the statement is SHOW MATERIALIZED VIEWS", statement.position(2))
        case "JOBS" | "QUERIES" if len(statement.tokens) == 2:
            schema = pa.schema([pa.field(name, pa.string()) for name in job_control.JOBS])
            return Ready(text, lambda _: job_control.listed(session), schema=schema)
        case "DATABASES" if len(statement.tokens) == 2:
            return _listing(text, ("name",), lambda: [(session.caller.database,)])
        case "USER" if len(statement.tokens) == 2:
            return _listing(text, ("user",), lambda: [(session.caller.user,)])
        case "FUNCTIONS" | "INDEXES" | "INDEX" | "INDICES":
            return _show_functions_or_indexes(session, statement)
        case "SCHEMAS" | "NAMESPACES" if len(statement.tokens) == 2:
            return _listing(text, ("name",), lambda: _schemas(session))
        case "COLUMNS":
            at = 3 if statement.word(2) in ("FROM", "IN") else 2
            return _described(session, statement, at)
        case "CREATE":
            return _show_create(session, statement)
        case "":
            raise syntax_error(
                "SHOW needs TABLES, COLUMNS FROM a table, CREATE TABLE a table, or a parameter", statement.position(1)
            )
    return show_parameter(session, statement, given)


def _listed(session: Host, statement: Statement) -> Ready:
    """SHOW TABLES, VIEWS, … [FROM schema] [LIKE 'pattern']: the first column has the name."""
    word = statement.word(1)
    names, rows = _LISTS[word]
    is_listed = filter_of(session, statement, 3 if word == "MATERIALIZED" else 2)
    return _listing(statement.text, names, lambda: [row for row in rows(session) if is_listed(str(row[0]))])


def _show_functions_or_indexes(session: Host, statement: Statement) -> Ready:
    if statement.word(1) == "FUNCTIONS":
        return _listing(statement.text, SHOWN_FUNCTIONS, lambda: functions_listed(session))
    wanted = _name(statement, 3)[-1] if statement.word(2) in ("FROM", "IN", "ON") else None
    return _listing(statement.text, ("name", "table"), lambda: _indexes(session, wanted))


def _show_create(session: Host, statement: Statement) -> Ready:
    """SHOW CREATE TABLE | VIEW | MATERIALIZED VIEW | STREAM | FUNCTION name."""
    if statement.word(2) == "FUNCTION":
        return _shown_function(session, statement)
    at = 4 if statement.word(2) == "MATERIALIZED" else 3 if statement.word(2) in ("TABLE", "VIEW", "STREAM") else 2
    relation = session.find(_name(statement, at), statement.position(at))
    return _listing(statement.text, ("table", "statement"), lambda: [(relation.name, create_text(session, relation))])


def _shown_function(session: Host, statement: Statement) -> Ready:
    """SHOW CREATE FUNCTION name: all forms of the name."""
    name = _name(statement, 3)[-1]

    def rows() -> list[tuple[str, str]]:
        session.functions.refresh(session.running, max_age_s=0)
        found = session.functions.named(name)
        if not found:
            raise SqlError(UNDEFINED_FUNCTION, f"function {name} does not exist", hint="SHOW FUNCTIONS lists them")
        return [(each.signature, each.statement) for each in found]

    return _listing(statement.text, ("function", "statement"), rows)


def _views(session: Host, *, plain: bool) -> list[tuple[str | None, ...]]:
    session.definitions.refresh(session.running, max_age_s=0)
    states = session.view_jobs.states()
    rows: list[tuple[str | None, ...]] = []
    for name, each in sorted(session.definitions.tables.items()):
        if each.view is not None and (plain or each.view.is_materialized):
            state = states.get(each.topic) if each.view.is_materialized else None
            told = (str(state.state), state.error) if state is not None else (None, None)
            rows.append((name, kind_of(each), *told, each.view.query))
    return rows


def _tables(session: Host) -> list[tuple[str | None, ...]]:
    session.definitions.refresh(session.running, max_age_s=0)
    tables = session.definitions.tables
    rows: list[tuple[str | None, ...]] = []
    for name in session.names():
        made = tables.get(name)
        if made is None:
            rows.append((name, name, "undeclared", None, None))
        else:
            rows.append((name, made.topic, made.format, ", ".join(made.key) or None, made.comment))
    return rows


def _sources(session: Host) -> list[tuple[str | None, ...]]:
    """The tables over topics that were there, and streams without a query: others write to them."""
    return [(each.name, each.topic, each.format) for each in _declared(session) if each.view is None and _is_source(each)]


def _is_source(definition: TableDefinition) -> bool:
    stream = definition.stream
    return not stream.query if stream is not None else not definition.owns_topic


def _sinks(session: Host) -> list[tuple[str | None, ...]]:
    """The jobs of INSERT, and the topics that they write to."""
    jobs = session.view_jobs.jobs()
    return [
        (name, job.work.topic, job.work.sql)
        for name, job in sorted(jobs.items())
        if isinstance(job.work, InsertWork) and job.work.creates is None
    ]


def _declared(session: Host) -> list[TableDefinition]:
    session.definitions.refresh(session.running, max_age_s=0)
    return [each for _, each in sorted(session.definitions.tables.items()) if not each.name.startswith(TEMPORARY)]


def describe(session: Host, statement: Statement, given: Any) -> Ready:
    """DESCRIBE [TABLE] name, or a query: its columns."""
    at = 2 if statement.word(1) in ("TABLE", "STREAM", "EXTENDED", "FORMATTED") and len(statement.tokens) > 2 else 1
    if statement.word(at) in ("SELECT", "WITH", "VALUES", "("):
        inner = session.ready(Statement(statement.text, statement.tokens[at:]), given)
        assert inner.schema is not None
        fields = list(inner.schema)
        return _listing(statement.text, ("column", "type"), lambda: [(each.name, shown_type(each)) for each in fields])
    return _described(session, statement, at)


def _schemas(session: Host) -> list[tuple[str | None, ...]]:
    session.definitions.refresh(session.running)
    return [(each,) for each in ("public", *sorted(session.definitions.schemas), "pg_catalog", "information_schema")]


def _indexes(session: Host, table: str | None) -> list[tuple[str | None, ...]]:
    """The names of indexes, of all tables or of one."""
    session.definitions.refresh(session.running)
    if table is not None:
        table = session.find([table], None).name
    return [
        (name, each.name) for each in session.definitions.tables.values() if table in (None, each.name) for name in each.indexes
    ]


def _described(session: Host, statement: Statement, at: int) -> Ready:
    relation = session.find(_name(statement, at), statement.position(at))
    return _listing(statement.text, _COLUMNS, lambda: _columns(relation))


def _columns(relation: Any) -> list[tuple[str | None, ...]]:
    definition: TableDefinition | None = getattr(relation, "definition", None)
    rows: list[tuple[str | None, ...]] = []
    for each in relation.columns:
        column = definition.column(each.name) if definition is not None else None
        key = _key(definition, each.name) if definition is not None else None
        default, comment = (column.default, column.comment) if column is not None else (None, None)
        nullable = "yes" if column is None or column.nullable else "no"
        own = definition.watermark if definition is not None else None
        mark = own.value if own is not None and own.column == each.name else None
        rows.append((each.name, shown_type(each), nullable, key, default, comment, mark))
    return rows


def _key(definition: TableDefinition, name: str) -> str | None:
    if name in definition.key:
        return "primary key" if definition.is_keyed else "key"
    return "unique" if any(each.columns == (name,) for each in definition.unique) else None


def _name(statement: Statement, at: int) -> list[str]:
    if at >= len(statement.tokens):
        raise syntax_error("the name of a table is missing", statement.position(at))
    parts = [str(statement.tokens[at].text)]
    while at + 2 < len(statement.tokens) and statement.tokens[at + 1].token_type == TokenType.DOT:
        at += 2
        parts.append(str(statement.tokens[at].text))
    if at + 1 < len(statement.tokens):
        raise syntax_error(f'syntax error at or near "{statement.tokens[at + 1].text}"', statement.position(at + 1))
    return parts


Rows = Sequence[tuple[str | None, ...]]
_LISTS: dict[str, tuple[Sequence[str], Callable[[Host], Rows]]] = {
    "TABLES": (_TABLES, _tables),
    "TOPICS": (_TABLES, _tables),
    "VIEWS": (_VIEWS, lambda session: _views(session, plain=True)),
    "MATERIALIZED": (_VIEWS, lambda session: _views(session, plain=False)),
    "STREAMS": (streams.STREAMS, streams.rows),
    "SOURCES": (("name", "topic", "format"), _sources),
    "SINKS": (("name", "topic", "statement"), _sinks),
}
