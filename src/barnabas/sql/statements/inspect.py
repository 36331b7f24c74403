"""SHOW TABLES and its kin, DESCRIBE, EXPLAIN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from sqlglot.tokenizer_core import TokenType

from barnabas.sql.catalog.definitions import ALWAYS, ColumnDefinition, TableDefinition
from barnabas.sql.catalog.sequences import default_text
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.dialect import Statement
from barnabas.sql.interface import Result, SqlError
from barnabas.sql.results import Listing
from barnabas.sql.statements import job_control, streams
from barnabas.sql.statements.functions import SHOWN as SHOWN_FUNCTIONS
from barnabas.sql.statements.functions import listed as functions_listed
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.ready import Ready
from barnabas.sql.statements.utility import show as show_parameter
from barnabas.sql.states import UNDEFINED_FUNCTION, not_supported, syntax_error
from barnabas.sql.views.dependents import kind_of
from barnabas.tables.column_types import quoted, type_name

_TABLES = ("name", "topic", "format", "key", "comment")
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
    match word:
        case "TABLES" | "TOPICS" | "DATABASES" | "SCHEMAS" | "NAMESPACES" if len(statement.tokens) > 2:
            hint = "use WHERE: SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'a%'"
            raise not_supported(f"SHOW {word} {statement.tokens[2].text} is not supported", statement.position(2), hint)
        case "MATERIALIZED" | "VIEWS":
            if word == "MATERIALIZED" and statement.word(2) != "VIEWS":
                raise syntax_error("the statement is SHOW MATERIALIZED VIEWS", statement.position(2))
            return _listing(text, ("name", "kind", "state", "error", "query"), lambda: _views(session, plain=word == "VIEWS"))
        case "STREAMS" | "JOBS" if len(statement.tokens) == 2:
            names, made = (streams.STREAMS, streams.listed) if word == "STREAMS" else (job_control.JOBS, job_control.listed)
            schema = pa.schema([pa.field(name, pa.string()) for name in names])
            return Ready(text, lambda _: made(session), schema=schema)
        case "DATABASES":
            return _listing(text, ("name",), lambda: [(session.caller.database,)])
        case "TABLES" | "TOPICS":
            return _listing(text, _TABLES, lambda: _tables(session))
        case "FUNCTIONS" | "INDEXES" | "INDEX" | "INDICES":
            return _show_functions_or_indexes(session, statement)
        case "SCHEMAS" | "NAMESPACES":
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
    return _listing(statement.text, ("table", "statement"), lambda: [(relation.name, create_text(relation))])


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


def describe(session: Host, statement: Statement, given: Any) -> Ready:
    """DESCRIBE [TABLE] name, or a query: its columns."""
    at = 2 if statement.word(1) in ("TABLE", "STREAM", "EXTENDED", "FORMATTED") and len(statement.tokens) > 2 else 1
    if statement.word(at) in ("SELECT", "WITH", "VALUES", "("):
        inner = session.ready(Statement(statement.text, statement.tokens[at:]), given)
        assert inner.schema is not None
        fields = list(inner.schema)
        return _listing(statement.text, ("column", "type"), lambda: [(each.name, type_name(each)) for each in fields])
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
        key = "primary key" if definition and definition.is_keyed and each.name in definition.key else None
        if key is None and definition and each.name in definition.key:
            key = "key"
        default, comment = (column.default, column.comment) if column is not None else (None, None)
        nullable = "yes" if column is None or column.nullable else "no"
        own = definition.watermark if definition is not None else None
        mark = own.value if own is not None and own.column == each.name else None
        rows.append((each.name, type_name(each), nullable, key, default, comment, mark))
    return rows


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


_SERIALS = {"smallint": "smallserial", "int": "serial", "bigint": "bigserial"}


def _column_text(table: str, each: ColumnDefinition) -> str:
    """A column as CREATE TABLE has it; one with a sequence of its own gets another there."""
    rest = "" if each.nullable else " NOT NULL"
    if each.identity:
        rest += f" GENERATED {'ALWAYS' if each.identity == ALWAYS else 'BY DEFAULT'} AS IDENTITY"
    elif each.default == default_text(f"{table}_{each.name}_seq") and not each.nullable and each.kind in _SERIALS:
        return f"{quoted(each.name)} {_SERIALS[each.kind]}"
    elif each.generated is not None:
        rest += f" GENERATED ALWAYS AS ({each.generated}) STORED"
    elif each.default is not None:
        rest += f" DEFAULT {each.default}"
    return f"{quoted(each.name)} {each.kind}{rest}"


def create_text(relation: Any) -> str:
    """The statement that makes a table."""
    definition: TableDefinition | None = relation.definition if isinstance(relation, TopicRelation) else None
    if definition is None:
        columns = ", ".join(f"{quoted(each.name)} {type_name(each)}" for each in relation.columns)
        return f"-- no definition; as it is read:\nCREATE TABLE {quoted(relation.name)} ({columns})"
    if definition.view is not None:
        return _view_text(definition)
    if definition.stream is not None and definition.stream.query:
        return _stream_text(definition, definition.stream.query)
    lines = [f"  {_column_text(definition.name, each)}" for each in definition.columns]
    if definition.key and definition.is_keyed:
        lines.append(f"  PRIMARY KEY ({', '.join(quoted(name) for name in definition.key)})")
    if definition.watermark is not None:
        lines.append(f"  {definition.watermark.text}")
    options = [f"topic = '{definition.topic}'", f"format = '{definition.format}'"]
    if definition.has_row_names:
        options = [] if definition.topic == definition.name else options[:1]
        options += [f"format = '{definition.format}'"] if definition.format != "json" else []
        options += ["append_only = 'false'"] if not definition.owns_topic else []
    elif not definition.key and definition.watermark is None and definition.stream is None:
        options.append("append_only = 'true'")
    if definition.key and not definition.is_keyed:
        options.append(f"key = '{', '.join(definition.key)}'")
    if definition.mode != "permissive":
        options.append(f"mode = '{definition.mode}'")
    kind = kind_of(definition).upper()
    rest = f" WITH ({', '.join(options)})" if options else ""
    return f"CREATE {kind} {quoted(definition.name)} (\n" + ",\n".join(lines) + f"\n){rest}"


def _stream_text(definition: TableDefinition, query: str) -> str:
    columns = ", ".join(quoted(each.name) for each in definition.columns)
    options = [f"topic = '{definition.topic}'"] if definition.topic != definition.name else []
    options += [f"format = '{definition.format}'"] if definition.format != "json" else []
    options += [f"key = '{', '.join(definition.key)}'"] if definition.key else []
    given = f" WITH ({', '.join(options)})" if options else ""
    return f"CREATE STREAM {quoted(definition.name)} ({columns}){given} AS\n{query}"


def _view_text(definition: TableDefinition) -> str:
    view = definition.view
    assert view is not None
    shown = ", ".join(quoted(each.name) for each in definition.columns if each.name not in view.hidden)
    kind = kind_of(definition).upper()
    options = f" WITH (topic = '{definition.topic}')" if view.is_materialized and definition.topic != definition.name else ""
    return f"CREATE {kind} {quoted(definition.name)} ({shown}){options} AS\n{view.query}"
