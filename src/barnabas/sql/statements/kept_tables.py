"""CREATE TABLE … AS query of ksqlDB, which keeps its query as CREATE MATERIALIZED VIEW does.

EMIT at its end tells it from Postgres' statement, which runs its query once. Over a table that was made so, it is ksqlDB's without EMIT
too.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from barnabas.sql.dialect import Statement, parse, tokens_of
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.names import parts_of, tables_of
from barnabas.sql.statements.emit import has_emit
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.materialized import without_data


def kept_table(session: Host, statement: Statement) -> Statement | None:
    """The statement as CREATE MATERIALIZED VIEW, if it is one of ksqlDB."""
    at = 3 if (statement.word(1), statement.word(2)) == ("OR", "REPLACE") else 1
    query = _query(without_data(statement)[0])
    if statement.word(at) != "TABLE" or query is None:
        return None
    table = statement.tokens[at]
    kinds = {"MATERIALIZED": TokenType.VAR, "VIEW": TokenType.VIEW}
    words = [Token(kind, word, table.line, table.col, table.start, table.end) for word, kind in kinds.items()]
    made = Statement(statement.text, [*statement.tokens[:at], *words, *statement.tokens[at + 1 :]])
    return made if has_emit(statement) or _reads_kept(session, query) else None


def _query(statement: Statement) -> Statement | None:
    """The query behind AS; None if there is none."""
    depth = 0
    for at, token in enumerate(statement.tokens):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth == 0 and statement.word(at) == "AS":
            return Statement(statement.text, statement.tokens[at + 1 :]) if statement.word(at + 1) in ("SELECT", "WITH") else None
    return None


def _reads_kept(session: Host, query: Statement) -> bool:
    """Whether a query reads a table that was made with EMIT."""
    try:
        tree = parse(query, spark_order=session.is_spark)
    except SqlError:
        return False  # the reader of the whole statement tells of it
    for table in tables_of(tree):
        found = session.access.definition(".".join(parts_of(table))) if isinstance(table.this, exp.Identifier) else None
        view = None if found is None else found.view
        if view is not None and view.is_materialized and has_emit(Statement(view.query, tokens_of(view.query))):
            return True
    return False
