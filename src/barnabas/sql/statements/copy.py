"""COPY from and to the client, as text or CSV.

Rows from the client are read in pieces, converted by DuckDB to the types of the columns, and written in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from barnabas.sql.catalog.relations import MemoryRelation
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.dialect import Statement, parse
from barnabas.sql.interface import Result, SqlError
from barnabas.sql.planning.names import position_in
from barnabas.sql.results import Done
from barnabas.sql.statements.copy_options import CopyOptions, options_of
from barnabas.sql.statements.copy_reading import tables_of
from barnabas.sql.statements.copy_writing import lines_of
from barnabas.sql.statements.enforcement import Constraints, Seen, without_duplicates
from barnabas.sql.statements.generated import generated_of, plain_names, with_generated
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.numbered import Defaults
from barnabas.sql.statements.prepared import tokens_around
from barnabas.sql.statements.ready import Ready
from barnabas.sql.statements.select import checked, collected, run
from barnabas.sql.statements.table_clauses import NOTHING, OVERWRITE
from barnabas.sql.statements.target import cast_to, columns_named, first_of_each, target_of, with_columns
from barnabas.sql.states import WRONG_OBJECT, not_supported, syntax_error
from barnabas.sql.writing.records import keys_of, records_of

SOURCE = "__copy"
_FORM = "COPY name [(columns)] FROM STDIN | TO STDOUT [WITH (FORMAT csv, …)]"


def copy(session: Host, statement: Statement, given: Sequence[pa.DataType | None]) -> Ready:
    """COPY table [(columns)] FROM STDIN, COPY table [(columns)] | (query) TO STDOUT."""
    at, source, columns = _source(statement)
    word, end = statement.word(at), statement.word(at + 1)
    if word not in ("FROM", "TO"):
        raise syntax_error(f"the statement is {_FORM}", statement.position(at))
    if end != ("STDIN" if word == "FROM" else "STDOUT"):
        raise not_supported(
            "COPY reads and writes no files of the server",
            statement.position(at + 1),
            f"COPY {word} {'STDIN' if word == 'FROM' else 'STDOUT'}",
        )
    options = options_of(statement, at + 2)
    if word == "TO":
        return _to(session, statement, given, source, columns, options)
    if not isinstance(source, exp.Table):
        raise syntax_error("COPY FROM needs a table", statement.position(1))
    return _from(session, statement, source, columns, options)


def _source(statement: Statement) -> tuple[int, Any, list[Any]]:
    """Where FROM or TO is; the table or query before it, and its columns."""
    depth = 0
    for at in range(1, len(statement.tokens)):
        kind = statement.tokens[at].token_type
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        if not depth and statement.word(at) in ("FROM", "TO"):
            break
    else:
        raise syntax_error(f"the statement is {_FORM}", len(statement.text) + 1)
    if at == 1:
        raise syntax_error(f"the statement is {_FORM}", statement.position(at))
    inner = Statement(statement.text, statement.tokens[1:at])
    if inner.tokens[0].token_type == TokenType.L_PAREN:
        tree = parse(Statement(statement.text, statement.tokens[2 : at - 1]))
        if not isinstance(tree, exp.Query):
            raise not_supported("COPY of this statement is not supported", statement.position(2), "COPY (SELECT …) TO STDOUT")
        return at, tree, []
    found = parse(Statement(statement.text, tokens_around("INSERT INTO", inner.tokens, "DEFAULT VALUES")))
    target = found.this
    return (at, target.this, list(target.expressions)) if isinstance(target, exp.Schema) else (at, target, [])


def _to(session: Host, statement: Statement, given: Any, source: Any, columns: Sequence[Any], options: CopyOptions) -> Ready:
    if isinstance(source, exp.Table):
        items: list[Any] = [exp.column(each.copy()) for each in columns] or _all_columns(session, source)
        source = exp.select(*items, copy=False).from_(source)
    plan = checked(session, source, statement.text, given)
    if plan.parameters:
        raise not_supported("COPY takes no parameters", hint="write the values into the statement")

    def work() -> Iterator[bytes]:
        result = run(session, plan, (), statement.text)
        try:
            yield from lines_of(plan.schema, result.batches(), options, session.settings.zone.info)
        finally:
            result.close()

    def count(_: Sequence[Any]) -> Result:
        raise SqlError(WRONG_OBJECT, "COPY TO STDOUT gives its rows to the client")

    return Ready(statement.text, count, plan.schema, (), "out", copy_to=work, version=session.version)


def _all_columns(session: Host, table: exp.Table) -> list[Any]:
    """The columns that COPY of a table gives: those that it can take back."""
    relation = None if table.name in session.views else session.find([part.name for part in table.parts], position_in(table))
    if not isinstance(relation, TopicRelation) or not generated_of(relation):
        return [exp.Star()]
    return [exp.column(exp.to_identifier(name, quoted=True)) for name in plain_names(relation)]


def _from(session: Host, statement: Statement, table: Any, columns: Sequence[Any], options: CopyOptions) -> Ready:
    relation = target_of(session, table)
    names = columns_named(relation, columns) if columns else plain_names(relation)
    for name in generated_of(relation).keys() & set(names):
        raise SqlError(
            "42P10", f'column "{name}" is a generated column', detail="Generated columns cannot be used in COPY.",
        )  # fmt: skip
    loading = _Loading(session, relation, names, statement.text)

    def work(data: Iterator[bytes]) -> Result:
        return Done(f"COPY {loading.load(tables_of(data, names, options))}")

    def refuse(_: Sequence[Any]) -> Result:
        raise SqlError(WRONG_OBJECT, "COPY FROM STDIN takes its rows from the client")

    schema = pa.schema([relation.columns.field(name) for name in names])
    return Ready(statement.text, refuse, schema, (), "in", copy_from=work, version=session.version)


class _Loading:
    """Turns pieces of text into rows of a relation, and writes them."""

    def __init__(self, session: Host, relation: TopicRelation, names: Sequence[str], text: str) -> None:
        self._session, self._relation, self._text = session, relation, text
        self._schema = pa.schema([each.with_nullable(True) for each in relation.columns])
        items = []
        self._defaults = Defaults(session, relation, [each for each in self._schema.names if each not in names])
        for field in self._schema:
            value = (
                exp.column(exp.to_identifier(field.name, quoted=True))
                if field.name in names
                else self._defaults.value_of(field.name)
            )
            items.append(exp.alias_(cast_to(value, field), field.name, quoted=True))
        source = MemoryRelation(SOURCE, pa.schema([pa.field(name, pa.string()) for name in names]))
        self._plan = checked(session, exp.select(*items, copy=False).from_(SOURCE), text, (), {SOURCE: source})
        self._constraints = Constraints(session, relation, text)
        self._rows = 0

    def load(self, pieces: Iterator[pa.Table]) -> int:
        """Write all rows, or none; returns their number."""
        session, relation = self._session, self._relation
        session.check_writable(relation.name)
        return session.change(relation, lambda: self._load(pieces))

    def _load(self, pieces: Iterator[pa.Table]) -> int:
        """The pieces come once, so the rows are locked before anything is looked up."""
        self._rows = 0
        session, relation = self._session, self._relation
        if session.state == "T":
            for rows in self._checked(pieces):
                session.write(relation, rows)
        else:
            session.check_writable()
            session.send((relation.topic, records_of(relation, rows)) for rows in self._checked(pieces))
        return self._rows

    def _wanted(self, rows: pa.Table, seen: set[bytes]) -> pa.Table:
        """The rows to write, by what the table says of keys that are there. Raises SqlError 23505."""
        relation = self._relation
        action = relation.definition.on_conflict if relation.definition is not None else ""
        if not relation.is_keyed or relation.has_row_names:
            return rows
        self._session.lock(relation.topic, keys_of(relation, rows))
        if action == OVERWRITE:
            return rows
        if action != NOTHING:
            return without_duplicates(self._session, relation, rows, seen)
        keys = keys_of(relation, rows)
        rows = first_of_each(rows, keys)
        there = self._session.existing(relation, keys) | seen
        seen.update(keys)
        return rows.filter(pa.array([key not in there for key in keys_of(relation, rows)], pa.bool_()))

    def _checked(self, pieces: Iterator[pa.Table]) -> Iterator[pa.Table]:
        seen: set[bytes] = set()
        values: Seen = {}
        for piece in pieces:
            self._session.running.check()
            found = collected(self._session, self._plan, (), self._text, {SOURCE: piece})
            rows = with_generated(
                session=self._session, relation=self._relation, rows=self._defaults.filled(with_columns(found, self._schema))
            )
            self._constraints.check(rows)
            rows = self._wanted(rows, seen)
            self._constraints.check_unique(rows, seen=values)
            self._rows += rows.num_rows
            yield rows
