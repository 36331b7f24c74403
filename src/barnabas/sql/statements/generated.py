"""Generated columns: their values are computed from the other columns of a row whenever it is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from barnabas.sql.catalog.definitions import TableDefinition
from barnabas.sql.catalog.relations import MemoryRelation
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.dialect import Statement, parse_expression, tokens_of
from barnabas.sql.interface import SqlError
from barnabas.sql.planning.names import position_in
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.select import checked, collected
from barnabas.sql.statements.target import cast_to, is_default
from barnabas.sql.states import INVALID_TABLE, not_supported
from barnabas.sql.writing.fitting import fitted

ROWS = "__written"


def generated_of(relation: TopicRelation) -> dict[str, str]:
    """The columns that are generated, with their expressions."""
    definition = relation.definition
    return {each.name: each.generated for each in definition.columns if each.generated is not None} if definition else {}


def plain_names(relation: TopicRelation) -> list[str]:
    """The columns that are not generated."""
    generated = generated_of(relation)
    return [each for each in relation.columns.names if each not in generated]


def given_names(relation: TopicRelation, source: Any) -> list[str]:
    """The columns that an INSERT without a list of columns brings: all, or those that are not generated if it has as many values."""
    names = list(relation.columns.names)
    generated = generated_of(relation)
    plain = plain_names(relation)
    if not generated:
        return names
    if isinstance(source, exp.Values):
        row = source.expressions[0] if source.expressions else None
        width = len(row.expressions) if isinstance(row, exp.Tuple) else 1
    else:
        width = len(source.named_selects) if isinstance(source, exp.Query) else 0
    return plain if width <= len(plain) and not _has_defaults(source) else names


def _has_defaults(source: Any) -> bool:
    rows = source.expressions if isinstance(source, exp.Values) else []
    return any(is_default(cell) for row in rows for cell in (row.expressions if isinstance(row, exp.Tuple) else [row]))


def with_generated(session: Host, relation: TopicRelation, rows: pa.Table) -> pa.Table:
    """The rows with values that fit the sizes of their columns, and with those of generated columns. Raises SqlError."""
    rows = fitted(rows, relation.sized, relation.columns)
    generated = generated_of(relation)
    if not generated or not rows.num_rows:
        return rows
    source = MemoryRelation(ROWS, pa.schema([each for each in relation.columns if each.name not in generated]))
    items = [
        exp.alias_(cast_to(parse_expression(text), relation.columns.field(name)), name, quoted=True)
        for name, text in generated.items()
    ]
    with session.in_utc():  # the same row has the same values, whoever writes it
        plan = checked(session, exp.select(*items, copy=False).from_(ROWS), "", (), {ROWS: source})
        made = collected(session, plan, (), "", {ROWS: rows.select(source.columns.names)})
    for name in generated:
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, rows.schema.field(place), made.column(name).cast(rows.schema.field(place).type))
    return fitted(rows, tuple(each for each in relation.sized if each in generated), relation.columns)


def check_generated_columns(session: Host, definition: TableDefinition, schema: pa.Schema, text: str) -> None:
    """Raises SqlError if an expression does not fit: it reads an unknown or a generated column, or asks a clock."""
    generated = {each.name: each.generated for each in definition.columns if each.generated is not None}
    if not generated:
        return
    if len(generated) == len(schema):
        raise SqlError(INVALID_TABLE, "a table needs a column that is not generated")
    source = MemoryRelation(ROWS, pa.schema([each for each in schema if each.name not in generated]))
    items = []
    for name, expression in generated.items():
        tree = parse_expression(expression)
        for node in tree.walk():
            if isinstance(node, exp.Column) and any(node.name.lower() == each.lower() for each in generated):
                raise SqlError(
                    INVALID_TABLE, f'cannot use generated column "{node.name}" in column generation expression',
                    detail="A generated column cannot reference another generated column.",
                )  # fmt: skip
            if isinstance(node, (exp.Query, exp.AggFunc, exp.Window)):
                raise not_supported("a generated column takes an expression of one row", position_in(node))
        if name in definition.key:
            raise not_supported(f'the column "{name}" of the key cannot be generated')
        items.append(exp.alias_(cast_to(tree, schema.field(name)), name, quoted=True))
    checked(session, exp.select(*items, copy=False).from_(ROWS), text, (), {ROWS: source})


def with_generated_words(statement: Statement) -> Statement:
    """The statement with `GENERATED ALWAYS AS (…) STORED` in place of `AS …` behind the type of a column."""
    tokens = list(statement.tokens)
    depth, at, made = 0, 0, list[Any]()
    open_at: int | None = None
    while at < len(tokens):
        token = tokens[at]
        word = statement.word(at)
        if open_at is not None and depth == 1 and token.text in (",", ")"):
            made += _words(token, ") STORED")
            open_at = None
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and word in ("AS", "WITH") and at > 2:
            return Statement(statement.text, [*made, *tokens[at:]])
        if (
            depth == 1
            and word == "AS"
            and open_at is None
            and statement.word(at - 1) not in ("ALWAYS", "DEFAULT", "FOR")
            and not _is_watermark(statement, at)
        ):
            made += _words(token, "GENERATED ALWAYS AS (")
            open_at = at
        else:
            made.append(token)
        at += 1
    return Statement(statement.text, made)


def _is_watermark(statement: Statement, at: int) -> bool:
    """Whether an AS belongs to WATERMARK FOR column AS."""
    return (statement.word(at - 3), statement.word(at - 2)) == ("WATERMARK", "FOR")


def _words(near: Any, text: str) -> Sequence[Any]:
    """Tokens of a text, at the place of another token."""
    return [type(near)(each.token_type, each.text, near.line, near.col, near.start, near.end) for each in tokens_of(text)]
