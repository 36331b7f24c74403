"""CREATE TABLE … AS query of ksqlDB, which keeps its query as CREATE MATERIALIZED VIEW does.

EMIT at its end tells it from Postgres' statement, which runs its query once. Over a table that was made so, it is ksqlDB's without EMIT
too.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from barnabas.sql.dialect import Statement, parse, tokens_of
from barnabas.sql.planning.names import parts_of, tables_of
from barnabas.sql.statements.emit import has_emit, without_emit
from barnabas.sql.statements.host import Host


def kept_table(session: Host, statement: Statement) -> Statement | None:
    """The statement as CREATE MATERIALIZED VIEW, if it is one of ksqlDB."""
    at = 3 if (statement.word(1), statement.word(2)) == ("OR", "REPLACE") else 1
    if statement.word(at) != "TABLE" or "AS" not in (statement.word(each) for each in range(at, len(statement.tokens))):
        return None
    table = statement.tokens[at]
    kinds = {"MATERIALIZED": TokenType.VAR, "VIEW": TokenType.VIEW}
    words = [Token(kind, word, table.line, table.col, table.start, table.end) for word, kind in kinds.items()]
    made = Statement(statement.text, [*statement.tokens[:at], *words, *statement.tokens[at + 1 :]])
    return made if has_emit(statement) or _reads_kept(session, made) else None


def _reads_kept(session: Host, statement: Statement) -> bool:
    """Whether a query reads a table that was made with EMIT."""
    tree = parse(without_emit(statement), spark_order=session.is_spark)
    if not isinstance(tree, exp.Create) or not isinstance(tree.args.get("expression"), exp.Query):
        return False
    for table in tables_of(tree):
        found = session.access.definition(".".join(parts_of(table))) if isinstance(table.this, exp.Identifier) else None
        view = None if found is None else found.view
        if view is not None and view.is_materialized and has_emit(Statement(view.query, tokens_of(view.query))):
            return True
    return False
