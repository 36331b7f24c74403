"""INSERT: new rows, and what becomes of those whose key is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from barnabas import limits
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.dialect import Statement, parse
from barnabas.sql.interface import Result
from barnabas.sql.planning.query import check_values
from barnabas.sql.results import Done
from barnabas.sql.statements.conflict import Conflict, clause_of
from barnabas.sql.statements.emit import taken_emit
from barnabas.sql.statements.enforcement import Constraints, without_duplicates
from barnabas.sql.statements.generated import given_names, with_generated
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.inserting import continuous, reads_stream, without_options
from barnabas.sql.statements.numbered import check_generated, let_generate
from barnabas.sql.statements.ready import Ready
from barnabas.sql.statements.rows import NewRows
from barnabas.sql.statements.target import Returning, columns_named, is_default, target_of, together
from barnabas.sql.states import not_supported
from barnabas.sql.writing.one_row import RowEncoder


def insert(session: Host, statement: Statement, given: Sequence[pa.DataType | None], tree: Any = None) -> Ready:
    """INSERT INTO table [(columns)] VALUES … | query | DEFAULT VALUES [ON CONFLICT …] [RETURNING …].

    One whose query reads a STREAM is a job.
    """
    options: dict[str, str] = {}
    overriding, is_final = "", False
    if tree is None:
        statement, is_final = taken_emit(statement)
        statement, options = without_options(statement)
        statement, overriding = _without_overriding(statement)
    tree = parse(statement, spark_order=session.is_spark) if tree is None else tree
    if not isinstance(tree, exp.Insert):
        raise not_supported("this form of INSERT is not supported", hint="INSERT INTO name (columns) VALUES (…)")
    if tree.args.get("overwrite"):
        raise not_supported("INSERT OVERWRITE is not supported", statement.position(1), "TRUNCATE the table first")
    _check_clauses(tree)
    if reads_stream(tree.args.get("expression")) or reads_stream(tree.args.get("with_")):
        return continuous(session, statement, tree, options, is_final=is_final)
    if is_final:
        raise not_supported("EMIT FINAL belongs to an INSERT that reads a STREAM", hint="SELECT … FROM STREAM t … EMIT FINAL")
    if options:
        raise not_supported("an INSERT that reads no STREAM has no options", statement.position(1), "SELECT … FROM STREAM t")
    return _ready(session, statement, given, tree, overriding)


def _check_clauses(tree: Any) -> None:
    """Raises SqlError for clauses of other databases."""
    conflict = tree.args.get("conflict")
    if conflict is not None and conflict.args.get("duplicate"):
        raise not_supported(
            "ON DUPLICATE KEY UPDATE is not supported", hint="ON CONFLICT (columns) DO UPDATE SET column = excluded.column"
        )
    for name, words in (("where", "REPLACE WHERE"), ("partition", "PARTITION"), ("settings", "SETTINGS")):
        if tree.args.get(name):
            raise not_supported(f"INSERT with {words} is not supported", hint="INSERT INTO name (columns) VALUES (…)")


def _without_overriding(statement: Statement) -> tuple[Statement, str]:
    """The statement without OVERRIDING {SYSTEM | USER} VALUE, and the word in the middle."""
    for at in range(2, min(len(statement.tokens), limits.MAX_SQL_COLUMNS * 2)):
        if (
            statement.word(at) == "OVERRIDING"
            and statement.word(at + 2) == "VALUE"
            and statement.word(at + 1) in ("SYSTEM", "USER")
        ):
            kept = [*statement.tokens[:at], *statement.tokens[at + 3 :]]
            return Statement(statement.text, kept), statement.word(at + 1)
        if statement.word(at) in ("VALUES", "SELECT", "DEFAULT", "WITH"):
            break
    return statement, ""


def _ready(session: Host, statement: Statement, given: Sequence[pa.DataType | None], tree: Any, overriding: str) -> Ready:
    table = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    relation = target_of(session, table)
    source = tree.args.get("expression")
    names = _names(relation, tree, source)
    if source is not None and tree.args.get("with_") is not None:
        source.set("with_", tree.args["with_"])
    if overriding == "USER":
        let_generate(relation, names, source)
    if overriding != "SYSTEM":
        check_generated(relation, names, source)
    rows = NewRows(session, relation, names, source, statement.text, given)
    constraints = Constraints(session, relation, statement.text)
    alias = table.alias_or_name
    conflict = None
    clause = tree.args.get("conflict") or clause_of(relation, str(tree.args.get("alternative") or ""))
    if clause is not None:
        conflict = Conflict(session, relation, clause, alias, statement.text, given, constraints)
    returning = Returning(session, relation, tree.args.get("returning"), alias, "INSERT 0 %d", statement.text, given)
    parameters = together(rows.plan, conflict.plan if conflict else None, returning.plan)

    one = _OneRow(session, relation, rows, conflict, has_result=returning.plan is not None)

    def run(values: Sequence[Any]) -> Result:
        check_values(parameters, values)
        return session.change(relation, lambda: one(values) or bring(rows.table(values), values))

    def plain(values: Sequence[Any]) -> Result | None:
        check_values(parameters, values)
        return session.change(relation, lambda: plain_once(values))

    def plain_once(values: Sequence[Any]) -> Result | None:
        found = one(values)
        made = rows.plain_table(values) if found is None else None
        return found if made is None else bring(made, values)

    def bring(made: pa.Table, values: Sequence[Any]) -> Result:
        made = _kept(session, relation, made, conflict, constraints, values)
        session.write(relation, made)
        return returning.result(made, values)

    lasts = (conflict is None or conflict.lasts) and returning.lasts and _is_constant(source)
    ready = Ready(statement.text, run, returning.schema, parameters, version=session.version, lasts=lasts)
    ready.plain = plain if rows.is_plain and not (conflict is not None and conflict.has_parameters) else None
    return ready


def _names(relation: TopicRelation, tree: Any, source: Any) -> list[str]:
    """The columns that the rows have. Raises SqlError."""
    if isinstance(tree.this, exp.Schema):
        return columns_named(relation, tree.this.expressions)
    if not tree.args.get("by_name"):
        return given_names(relation, source)
    names = source.named_selects if isinstance(source, exp.Query) else []
    if not names or not all(names) or "*" in names:
        raise not_supported("INSERT BY NAME needs a query that names its columns", hint="INSERT INTO t (columns) SELECT …")
    return columns_named(relation, [exp.to_identifier(each, quoted=True) for each in names])


class _OneRow:
    """Writes one plain row without Arrow.

    Args:
        has_result: whether the statement returns rows; then the general way writes it.
    """

    def __init__(
        self, session: Host, relation: TopicRelation, rows: NewRows, conflict: Conflict | None, *, has_result: bool
    ) -> None:  # fmt: skip
        self._session, self._relation, self._rows = session, relation, rows
        self._overwrites = conflict is not None
        is_possible = not has_result and (conflict is None or conflict.overwrites)
        self._encoder = RowEncoder.of(relation) if is_possible else None

    def __call__(self, values: Sequence[Any]) -> Result | None:
        """Write the row; None if the general way must write it, or say why not. Within `Host.change`."""
        session, relation = self._session, self._relation
        cells = self._rows.only_row(values) if self._encoder is not None and session.state == "I" else None
        record = self._encoder.record(cells) if self._encoder is not None and cells is not None else None
        if record is None:
            return None
        session.check_writable(relation.name)
        key, value = record
        if key is not None and relation.is_keyed and not relation.has_row_names:
            session.lock(relation.topic, [key])
            if not self._overwrites and session.existing(relation, [key]):
                return None
        session.send_one(relation.topic, key, value)
        return Done("INSERT 0 1")


def _kept(
    session: Host, relation: TopicRelation, made: pa.Table, conflict: Conflict | None, constraints: Constraints, values: Sequence[Any]
) -> pa.Table:  # fmt: skip
    """The rows to write, of those that the statement brings. Raises SqlError."""
    made = with_generated(session, relation, made)
    constraints.check(made)
    if conflict is not None:
        made = with_generated(session, relation, conflict.resolved(made, values))
        constraints.check(made)
    elif relation.is_keyed:
        made = without_duplicates(session, relation, made)
    constraints.check_unique(made)
    return made


def _is_constant(source: Any) -> bool:
    """Whether the rows are literals and parameters alone."""
    if not isinstance(source, exp.Values) or source.args.get("with_"):
        return False
    kinds = (exp.Values, exp.Tuple, exp.Paren, exp.Literal, exp.Parameter, exp.Null, exp.Boolean, exp.Neg, exp.Var)
    cells = [cell for row in source.expressions for cell in (row.expressions if isinstance(row, exp.Tuple) else [row])]
    return all(is_default(cell) or all(isinstance(node, kinds) for node in cell.walk()) for cell in cells)
