"""COMMENT ON a table, a view, a column, a constraint or an index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from barnabas.sql.catalog.definitions import TableDefinition
from barnabas.sql.dialect import Statement, parse, tokens_of
from barnabas.sql.interface import Notice, Result, SqlError
from barnabas.sql.results import Done
from barnabas.sql.statements.alter import Change, changing, definition_named
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.indexes import owner_of_index
from barnabas.sql.statements.naming import name_at
from barnabas.sql.statements.ready import Ready
from barnabas.sql.states import UNDEFINED_COLUMN, UNDEFINED_OBJECT, UNDEFINED_TABLE, not_supported, syntax_error

_COMMENTED = ("TABLE", "VIEW")
_NOT_KEPT = ("DATABASE", "EXTENSION", "FUNCTION", "SCHEMA", "SEQUENCE")


def comment(session: Host, statement: Statement, _: Any) -> Ready:
    """COMMENT ON TABLE | COLUMN | CONSTRAINT | INDEX … IS 'text' | NULL. Those on others have no effect, as dumps contain them."""
    if statement.word(2) == "CONSTRAINT":
        return _on_constraint(session, statement)
    if statement.word(2) == "INDEX":
        return _on_index(session, statement)
    if statement.word(2) in _NOT_KEPT:
        return _not_kept(session, statement)
    is_removed = statement.word(len(statement.tokens) - 1) == "NULL"  # sqlglot takes only texts
    tokens = [*statement.tokens[:-1], *tokens_of("''")] if is_removed else statement.tokens
    tree = parse(
        Statement(statement.text, [each for at, each in enumerate(tokens) if at != 2 or statement.word(2) != "MATERIALIZED"])
    )
    kind = str(tree.args.get("kind", "")).upper() if isinstance(tree, exp.Comment) else ""
    if kind not in (*_COMMENTED, "COLUMN"):
        raise not_supported(
            f"COMMENT ON {kind or statement.word(2)} is not supported",
            statement.position(0),
            "TABLE, VIEW, COLUMN, CONSTRAINT or INDEX",
        )
    text = None if is_removed else tree.expression.name
    if kind in _COMMENTED:
        name = definition_named(session, tree.this).name
        return changing(session, statement, name, lambda made: msgspec.structs.replace(made, comment=text), "COMMENT")
    column = tree.this
    if not isinstance(column, exp.Column) or not column.table:
        raise syntax_error("COMMENT ON COLUMN needs table.column", statement.position(3))
    table = exp.table_(column.table)
    definition = definition_named(session, table)
    found = definition.column(column.name)
    if found is None:
        raise SqlError(UNDEFINED_COLUMN, f'column "{column.name}" of relation "{definition.name}" does not exist')
    wanted = found.name

    def apply(made: TableDefinition) -> TableDefinition:
        columns = tuple(msgspec.structs.replace(each, comment=text) if each.name == wanted else each for each in made.columns)
        return msgspec.structs.replace(made, columns=columns)

    return changing(session, statement, definition.name, apply, "COMMENT")


def _text_at(statement: Statement, at: int) -> str | None:
    """The text behind IS, which ends the statement; None for NULL. Raises SqlError."""
    if statement.word(at) != "IS" or at + 2 != len(statement.tokens):
        raise syntax_error("the statement is COMMENT ON … IS 'text'", statement.position(min(at, len(statement.tokens) - 1)))
    if statement.word(at + 1) == "NULL":
        return None
    if statement.tokens[at + 1].token_type != TokenType.STRING:
        raise syntax_error("a comment is a text or NULL", statement.position(at + 1))
    return str(statement.tokens[at + 1].text)


def _on_constraint(session: Host, statement: Statement) -> Ready:
    """COMMENT ON CONSTRAINT name ON table IS 'text' | NULL."""
    (name, *_), at = name_at(statement, 3)
    if statement.word(at) != "ON":
        raise syntax_error("the statement is COMMENT ON CONSTRAINT name ON table IS 'text'", statement.position(at))
    parts, end = name_at(statement, at + 1)
    text = _text_at(statement, end)
    table = exp.Table(this=exp.to_identifier(parts[-1], quoted=True))
    if len(parts) > 1:
        table.set("db", exp.to_identifier(parts[-2], quoted=True))
    definition = definition_named(session, table)
    if name not in definition.constraint_names:
        raise SqlError(UNDEFINED_OBJECT, f'constraint "{name}" for table "{definition.name}" does not exist')
    return changing(session, statement, definition.name, _with_comment(name, text), "COMMENT")


def _on_index(session: Host, statement: Statement) -> Ready:
    """COMMENT ON INDEX name IS 'text' | NULL."""
    parts, at = name_at(statement, 3)
    name, text = parts[-1], _text_at(statement, at)
    owner = owner_of_index(session.definitions.tables, parts, of_constraints=True)
    if owner is None:
        raise SqlError(UNDEFINED_TABLE, f'relation "{name}" does not exist', position=statement.position(3))
    return changing(session, statement, owner.name, _with_comment(name, text), "COMMENT")


def _with_comment(name: str, text: str | None) -> Change:
    def apply(made: TableDefinition) -> TableDefinition:
        others = {each: known for each, known in made.comments.items() if each != name}
        return msgspec.structs.replace(made, comments=others if text is None else {**others, name: text})

    return apply


def _not_kept(session: Host, statement: Statement) -> Ready:
    def run(_: Sequence[Any]) -> Result:
        session.notify(Notice(f"the comment on the {statement.word(2).lower()} is not kept"))
        return Done("COMMENT")

    return Ready(statement.text, run)
