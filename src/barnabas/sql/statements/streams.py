"""CREATE STREAM: a table whose rows never change, over a topic; with a query, a job appends the query's rows.

The order of the steps is that of a materialized view: the topic and the definition, then the job. DROP STREAM removes whatever is there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from barnabas.errors import BarnabasError
from barnabas.sql.catalog.definitions import StreamDefinition, TableDefinition
from barnabas.sql.catalog.topics import declared
from barnabas.sql.dialect import Statement, tokens_of
from barnabas.sql.interface import Notice, Result, SqlError
from barnabas.sql.results import Done
from barnabas.sql.statements.alter import drop_table
from barnabas.sql.statements.create import (
    Options,
    check_defaults,
    definition_of,
    make_table,
    options_of,
    tree_of,
)
from barnabas.sql.statements.create_as import definition_as
from barnabas.sql.statements.emit import taken_emit
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.inserting import Insert, check_rights, insert_of, is_latest, mark_streams, start, wait
from barnabas.sql.statements.like_table import with_columns_alike
from barnabas.sql.statements.materialized import query_text
from barnabas.sql.statements.ready import Ready
from barnabas.sql.statements.select import checked
from barnabas.sql.statements.table_clauses import say
from barnabas.sql.states import INVALID_TABLE, not_supported
from barnabas.sql.views.insert_jobs import job_of_stream

FORM = "CREATE STREAM [IF NOT EXISTS] name (columns) [WITH (…)], or name [WITH (…)] AS query"


def create_stream(session: Host, statement: Statement) -> Ready:
    """CREATE STREAM [IF NOT EXISTS] name (columns) [WITH (…)] | [(columns)] [WITH (…)] AS query [EMIT CHANGES | EMIT FINAL]."""
    statement, is_final = taken_emit(statement)
    if statement.word(1) != "STREAM":
        words = " ".join(statement.word(at) for at in range(1, 4)).partition(" STREAM")[0]
        raise not_supported(f"CREATE {words} STREAM is not supported", statement.position(1), FORM)
    told, late = without_start(statement)
    plain, key = _without_key(told)
    tree = with_columns_alike(session, tree_of(as_table(plain, 1)))
    if key:
        _say_key(tree, key)
    if isinstance(tree.args.get("expression"), (exp.Query, exp.Values)):
        return _of_query(session, statement, tree, late=late, is_final=is_final)
    if is_final:
        raise not_supported(
            "EMIT FINAL belongs to a query", statement.position(len(statement.tokens)), "CREATE STREAM … AS query EMIT FINAL"
        )
    if told is not statement:
        raise not_supported("a stream without a query has no start", statement.position(1), "CREATE STREAM … AS query")
    say(tree, {"append_only": "true"})
    definition, options, numbered = definition_of(session, tree)
    if definition.is_keyed:
        hint = "CREATE TABLE … PRIMARY KEY has one row for each key; STREAM t reads its changes"
        raise SqlError(INVALID_TABLE, "a stream has no primary key, because its rows never change", hint=hint)
    definition = msgspec.structs.replace(definition, stream=StreamDefinition())
    check_defaults(session, definition, statement.text)
    if_not_exists = bool(tree.args.get("exists"))

    def run(_: Sequence[Any]) -> Result:
        if not make_table(session, definition, options, numbered, if_not_exists=if_not_exists):
            _tell_of(session, definition)
        return Done("CREATE STREAM")

    return Ready(statement.text, run)


def as_table(statement: Statement, at: int) -> Statement:
    """The statement with TABLE in place of STREAM."""
    word = statement.tokens[at]
    table = Token(TokenType.TABLE, "TABLE", word.line, word.col, word.start, word.end)
    return Statement(statement.text, [*statement.tokens[:at], table, *statement.tokens[at + 1 :]])


def _without_key(statement: Statement) -> tuple[Statement, list[str]]:
    """The statement without the word KEY behind columns (of ksqlDB), and the names of these columns."""
    tokens, found = list[Any](), list[str]()
    depth, column = 0, ""
    for at, token in enumerate(statement.tokens):
        word = statement.word(at)
        if depth == 0 and word in ("AS", "WITH"):
            return Statement(statement.text, [*tokens, *statement.tokens[at:]]), found
        if depth == 1 and statement.tokens[at - 1].token_type in (TokenType.L_PAREN, TokenType.COMMA):
            column = str(token.text)
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        ends = at + 1 < len(statement.tokens) and statement.tokens[at + 1].token_type in (TokenType.COMMA, TokenType.R_PAREN)
        if depth == 1 and ends and word == "KEY" and statement.word(at - 1) != "PRIMARY" and column != str(token.text):
            found.append(column)
        else:
            tokens.append(token)
    return Statement(statement.text, tokens), found


def _say_key(tree: Any, columns: Sequence[str]) -> None:
    """Give a CREATE TABLE the option with the columns of the record's key."""
    said = exp.Property(this=exp.var("key"), value=exp.Literal.string(", ".join(columns)))
    properties = tree.args.get("properties") or exp.Properties(expressions=[])
    properties.append("expressions", said)
    tree.set("properties", properties)


def as_stream_statement(statement: Statement) -> Statement:
    """CREATE [OR REFRESH] STREAMING TABLE as CREATE STREAM; OR REFRESH leaves a stream that is there as it is."""
    at = next(at for at in range(1, 5) if statement.word(at) == "STREAMING")
    word = statement.tokens[at]
    made = [Token(TokenType.STREAM, "STREAM", word.line, word.col, word.start, word.end)]
    if at > 1 and statement.word(at + 2) != "IF":
        made += tokens_of("IF NOT EXISTS")
    return Statement(statement.text, [statement.tokens[0], *made, *statement.tokens[at + 2 :]])


def _tell_of(session: Host, definition: TableDefinition) -> None:
    session.notify(Notice(f'relation "{definition.name}" already exists, skipping', sqlstate="42P07"))


class NewStream(msgspec.Struct, frozen=True):
    """A stream of a query that was planned."""

    definition: TableDefinition
    options: Options
    insert: Insert


def planned_stream(
    session: Host, statement: Statement, tree: Any, *, late: bool = False, is_final: bool = False
) -> NewStream:  # fmt: skip
    """The stream that CREATE STREAM … AS describes. Raises SqlError.

    Args:
        late: whether it leaves out the records that are there.
        is_final: whether a row is appended when it cannot change any more.
    """
    source = tree.args["expression"]
    say(tree, {"append_only": "true"})
    options = options_of(tree.args.get("properties"))
    mark_streams(session, source)
    plan = checked(session, source.copy(), statement.text, with_pending=False)
    query = query_text(statement) + (" EMIT FINAL" if is_final else "")
    definition = msgspec.structs.replace(definition_as(session, tree, plan, options), stream=StreamDefinition(query))
    relation = declared(definition)
    names = list(relation.columns.names)
    made = insert_of(
        session, statement, relation, source, names, is_late=late, sql=query, creates=definition.name, is_final=is_final
    )
    return NewStream(definition, options, msgspec.structs.replace(made, wanted=definition.topic))


def without_start(statement: Statement) -> tuple[Statement, bool]:
    """The statement without the option `start`, which sqlglot takes for one of a sequence; whether it is `latest`. Raises SqlError."""
    tokens = list(statement.tokens)
    for at in range(len(tokens) - 2):
        if statement.word(at) == "AS":
            break
        if statement.word(at) == "START" and tokens[at + 1].token_type == TokenType.EQ:
            late = is_latest(str(tokens[at + 2].text))
            before, behind = tokens[:at], tokens[at + 3 :]
            if behind and behind[0].token_type == TokenType.COMMA:
                behind = behind[1:]
            elif before[-1].token_type == TokenType.COMMA:
                before = before[:-1]
            elif behind and behind[0].token_type == TokenType.R_PAREN:  # it stands alone behind WITH
                before, behind = before[:-2], behind[1:]
            return Statement(statement.text, [*before, *behind]), late
    return statement, False


def _of_query(session: Host, statement: Statement, tree: Any, *, late: bool, is_final: bool) -> Ready:
    planned = planned_stream(session, statement, tree, late=late, is_final=is_final)
    definition, options, made = planned.definition, planned.options, planned.insert
    if_not_exists = bool(tree.args.get("exists"))

    def run(_: Sequence[Any]) -> Result:
        session.check_writable()
        check_rights(session, made)
        if not make_table(session, definition, options, if_not_exists=if_not_exists):
            _tell_of(session, definition)
            return Done("CREATE STREAM")
        try:
            job = start(session, made)
        except BarnabasError:
            with contextlib.suppress(BarnabasError):  # DROP removes it otherwise
                drop_table(session.definitions, session.sequences, session.client, session.running, definition.name)
            raise
        wait(session, job, made)
        return Done("CREATE STREAM")

    return Ready(statement.text, run, version=session.version)


STREAMS = ("name", "topic", "format", "state", "error", "query")


def rows(session: Host) -> list[tuple[str | None, ...]]:
    """SHOW STREAMS: the streams, with the states of their jobs."""
    session.definitions.refresh(session.running, max_age_s=0)
    jobs, states = session.view_jobs.jobs(), session.view_jobs.states()
    found: list[tuple[str | None, ...]] = []
    for name, each in sorted(session.definitions.tables.items()):
        if each.stream is None:
            continue
        job = job_of_stream(jobs, name)
        state = None if job is None else states.get(job.name)
        told = (None, None) if state is None else (str(state.state), state.error)
        if job is None and each.stream.query:
            told = "incomplete", "it has no job; DROP removes it"
        found.append((name, each.topic, each.format, *told, each.stream.query or None))
    return found
