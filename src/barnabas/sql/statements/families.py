"""Which module handles a statement, by its first words. A statement that no module handles gets an error that names it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence

import pyarrow as pa
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from barnabas.sql.dialect import Statement, parse
from barnabas.sql.planning.user_types import resolve_types
from barnabas.sql.statements import (
    alter,
    dropping,
    functions,
    inspect,
    job_control,
    materialized,
    modify,
    on_spark,
    prepared,
    rights,
    transaction_control,
    utility,
    view_control,
)
from barnabas.sql.statements.comments import comment
from barnabas.sql.statements.copy import copy
from barnabas.sql.statements.create import create, tree_of
from barnabas.sql.statements.create_as import create_as
from barnabas.sql.statements.do_block import do_block
from barnabas.sql.statements.emit import refused_emit, with_emit_last
from barnabas.sql.statements.enums import alter_type, create_type, drop_type
from barnabas.sql.statements.explain import explain
from barnabas.sql.statements.extensions import create_extension, drop_extension
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.indexes import create_index, drop_index, rename_index
from barnabas.sql.statements.insert import insert
from barnabas.sql.statements.kept_tables import kept_table
from barnabas.sql.statements.like_table import with_columns_alike
from barnabas.sql.statements.lock_table import lock_table
from barnabas.sql.statements.locking import locks_of, select_for_update, without_locks
from barnabas.sql.statements.merge import merge
from barnabas.sql.statements.push_query import push_query
from barnabas.sql.statements.ready import Ready
from barnabas.sql.statements.schemas import create_schema, drop_schema
from barnabas.sql.statements.select import select
from barnabas.sql.statements.sequences import alter_sequence, create_sequence, drop_sequence
from barnabas.sql.statements.streams import as_stream_statement, as_table, create_stream
from barnabas.sql.statements.subscribe import subscribe
from barnabas.sql.statements.views import create_view
from barnabas.sql.statements.wait import wait
from barnabas.sql.states import not_supported, syntax_error

Make = Callable[[Host, Statement, Sequence["pa.DataType | None"]], Ready]


def _query(session: Host, statement: Statement, given: Sequence[pa.DataType | None]) -> Ready:
    """A statement that begins like a query; after WITH it may also write."""
    pushed = push_query(session, statement)
    if pushed is not None:
        return pushed
    refused = refused_emit(statement)
    if refused is not None:
        raise refused
    tree = parse(statement, spark_order=session.is_spark)
    match tree:
        case exp.Insert():
            return insert(session, statement, given, tree)
        case exp.Update():
            return modify.update(session, statement, given, tree)
        case exp.Delete():
            return modify.delete(session, statement, given, tree)
        case exp.Merge():
            return merge(session, statement, given, tree)
    if locks_of(without_locks(tree)):
        return select_for_update(session, statement, given, tree)
    if on_spark.runs_on_spark(session, tree):
        return on_spark.select_on_spark(session, statement, tree, given)
    return select(session, statement, given, tree)


def _create(session: Host, statement: Statement, given: Sequence[pa.DataType | None]) -> Ready:
    """CREATE TABLE, with columns or from a query."""
    if statement.word(1) == "INDEX" or (statement.word(1) == "UNIQUE" and statement.word(2) == "INDEX"):
        return create_index(session, statement)
    if "MATERIALIZED" in (statement.word(1), statement.word(3)):
        return materialized.create(session, with_emit_last(statement))
    if "FUNCTION" in (statement.word(1), statement.word(2), statement.word(3), statement.word(4)):
        return functions.create(session, statement)
    if "SEQUENCE" in (statement.word(1), statement.word(2)):
        return create_sequence(session, statement)
    if "STREAMING" in (statement.word(1), statement.word(3)):  # Databricks' words
        return create_stream(session, as_stream_statement(statement))
    if "STREAM" in (statement.word(1), statement.word(2), statement.word(3)) and statement.word(1) in _BEFORE_STREAM:
        return create_stream(session, statement)
    if statement.word(1) == "SCHEMA":
        return create_schema(session, statement)
    if statement.word(1) == "EXTENSION":
        return create_extension(session, statement)
    if statement.word(1) == "TYPE":
        return create_type(session, statement)
    if "VIEW" in (statement.word(at) for at in range(1, 6)) and "TABLE" not in (statement.word(1), statement.word(2)):
        return create_view(session, statement)
    return _create_table(session, _as_table(statement), given)


def _create_table(session: Host, statement: Statement, given: Sequence[pa.DataType | None]) -> Ready:
    kept = kept_table(session, statement)
    if kept is not None:
        return materialized.create(session, kept)
    refused = refused_emit(statement)
    if refused is not None:
        raise refused
    tree = with_columns_alike(session, tree_of(statement))
    resolve_types(tree, session.access.types())
    if tree.args.get("expression") is not None:
        return create_as(session, statement, tree, given)
    return create(session, statement, tree)


def _as_table(statement: Statement) -> Statement:
    """RisingWave's CREATE SOURCE name (columns) WITH (…) as CREATE TABLE; any other form stays as it is."""
    words = [statement.word(at) for at in range(2, len(statement.tokens))]
    place = 3 if words[:3] == ["IF", "NOT", "EXISTS"] else 0
    if statement.word(1) != "SOURCE" or words[place + 1 : place + 2] != ["("] or "WITH" not in words:
        return statement
    source = statement.tokens[1]
    word = Token(TokenType.TABLE, "TABLE", source.line, source.col, source.start, source.end)
    return Statement(statement.text, [statement.tokens[0], word, *statement.tokens[2:]])


def _list(session: Host, statement: Statement, given: Sequence[pa.DataType | None]) -> Ready:
    """ksqlDB's LIST STREAMS, LIST TOPICS, …: SHOW."""
    return inspect.show(session, statement, given)


def _drop(session: Host, statement: Statement, given: Sequence[pa.DataType | None]) -> Ready:
    """DROP of what has a definition, or a temporary view."""
    word = statement.word(1)
    if (statement.word(len(statement.tokens) - 2), statement.word(len(statement.tokens) - 1)) == ("DELETE", "TOPIC"):  # ksqlDB's
        statement = Statement(statement.text, statement.tokens[:-2])
    if word == "INDEX":
        return drop_index(session, statement)
    if word == "SEQUENCE":
        return drop_sequence(session, statement)
    if word == "JOB":
        return job_control.drop_job(session, statement)
    if word == "FUNCTION":
        return functions.drop(session, statement)
    if word == "SCHEMA":
        return drop_schema(session, statement)
    if word == "EXTENSION":
        return drop_extension(session, statement)
    if word == "TYPE":
        return drop_type(session, statement)
    if word not in ("TABLE", "VIEW", "MATERIALIZED", "STREAM"):
        raise not_supported(f"DROP {word} is not supported", statement.position(1), "there are DROP TABLE and DROP VIEW")
    return dropping.drop(session, statement)


def _alter(session: Host, statement: Statement, given: Sequence[pa.DataType | None]) -> Ready:
    """ALTER of a table, a view or a sequence."""
    tuned = rights.tuning(session, statement)
    if tuned is not None:
        return tuned
    if statement.word(1) == "INDEX":
        return rename_index(session, statement)
    if [statement.word(at) for at in range(len(statement.tokens))][-3:-1] == ["OWNER", "TO"]:
        return rights.owner_to(session, statement)
    if statement.word(1) == "TYPE":
        return alter_type(session, statement)
    if statement.word(1) == "SEQUENCE":
        return alter_sequence(session, statement)
    if "VIEW" in (statement.word(1), statement.word(2)) and statement.word(1) in ("VIEW", "MATERIALIZED"):
        return view_control.alter_view(session, statement)
    if statement.word(1) == "STREAM":
        return alter.alter(session, as_table(statement, 1), given)
    return alter.alter(session, statement, given)


def _wait(session: Host, statement: Statement, given: Sequence[pa.DataType | None]) -> Ready:
    """WAIT FOR name, and WAIT alone, which RisingWave has for views that are being made."""
    return view_control.flush(session, statement, given) if len(statement.tokens) == 1 else wait(session, statement, given)


_BEFORE_STREAM = ("STREAM", "OR", "TEMP", "TEMPORARY", "PERSISTENT")
_FAMILIES: dict[str, Make] = {
    **dict.fromkeys(("SELECT", "WITH", "VALUES", "TABLE", "(", "FROM"), _query),
    "SET": utility.set_parameter,
    "RESET": utility.reset,
    "SHOW": inspect.show,
    "LIST": _list,
    "USE": utility.use,
    **dict.fromkeys(("DESCRIBE", "DESC"), inspect.describe),
    "DO": do_block,
    "INSERT": insert,
    "UPDATE": modify.update,
    "DELETE": modify.delete,
    "MERGE": merge,
    "PREPARE": prepared.prepare,
    "EXECUTE": prepared.execute,
    "DEALLOCATE": prepared.deallocate,
    "EXPLAIN": explain,
    "COPY": copy,
    "WAIT": _wait,
    "PAUSE": view_control.pause,
    "RESUME": view_control.resume,
    "REFRESH": view_control.refresh,
    "FLUSH": view_control.flush,
    "SUBSCRIBE": subscribe,
    **{word: utility.nothing(word) for word in ("VACUUM", "ANALYZE", "CHECKPOINT", "RECOVER")},
    **dict.fromkeys(("BEGIN", "START"), transaction_control.begin),
    **dict.fromkeys(("COMMIT", "END"), transaction_control.commit),
    **dict.fromkeys(("ROLLBACK", "ABORT"), transaction_control.rollback),
    "SAVEPOINT": transaction_control.savepoint,
    "RELEASE": transaction_control.release,
    "CREATE": _create,
    "DROP": _drop,
    "ALTER": _alter,
    "COMMENT": comment,
    "TRUNCATE": alter.truncate,
    "DISCARD": utility.discard,
    "GRANT": rights.grant,
    "LOCK": lock_table,
}
_LACKING = {
    "REVOKE": "rights are the cluster's access control lists: see `barnabas acl`",
    "LISTEN": "read the topic with a consumer",
    "NOTIFY": "INSERT a row",
    "CLUSTER": "topics are kept in the order of their offsets",
    "REINDEX": "there are no indexes",
    "CALL": "there are no procedures",
    "ATTACH": "no statement reads files of the server's machine",
    "DETACH": "no statement reads files of the server's machine",
    "INSTALL": "no statement loads an extension",
    "LOAD": "no statement loads an extension or a file; COPY … FROM STDIN and \\copy bring rows",
    "PRAGMA": "use SET and SHOW",
    "EXPORT": "use COPY … TO STDOUT",
    "IMPORT": "use COPY … FROM STDIN",
    "CACHE": "tables with a primary key are kept in memory without it",
    "UNCACHE": "leave it out",
    "TERMINATE": "PAUSE lets a job or a view rest; DROP JOB, DROP STREAM and DROP MATERIALIZED VIEW end them",
    "PRINT": "SELECT * shows a topic, and SUBSCRIBE follows a table with a primary key, or a view",
}


def ready(session: Host, statement: Statement, given: Sequence[pa.DataType | None]) -> Ready:
    """The statement, checked. Raises SqlError."""
    if not statement.tokens:
        return utility.empty(statement)
    word = statement.word(0)
    make = _FAMILIES.get(word)
    if make is not None:
        return make(session, statement, given)
    if word in _LACKING:
        raise not_supported(f"{word} is not supported", statement.position(0), _LACKING[word])
    near = difflib.get_close_matches(word, [*_FAMILIES, *_LACKING], 1)
    hint = f"perhaps you mean {near[0]}" if near and near[0] not in _LACKING else None
    raise syntax_error(f'syntax error at or near "{statement.tokens[0].text}"', statement.position(0), hint)
