"""SELECT … FOR UPDATE: the rows of a query are locked before it reads them.

A second query of the same tables and conditions finds the keys. If another session has changed one of these rows meanwhile, the keys are
read again. FOR SHARE locks as FOR UPDATE does: a row has one holder.

SKIP LOCKED locks, in the order of the query, as many rows as its LIMIT wants and no other session holds; then it reads these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from barnabas.sql.catalog.relations import MemoryRelation
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.dialect import Statement
from barnabas.sql.interface import Result, SqlError
from barnabas.sql.planning.literals import whole_number
from barnabas.sql.planning.names import position_in
from barnabas.sql.planning.query import QueryPlan, check_values
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.modify import own_column
from barnabas.sql.statements.ready import Ready
from barnabas.sql.statements.select import checked, collected, run
from barnabas.sql.statements.target import keyed_target
from barnabas.sql.states import DEADLOCK, LOCK_NOT_AVAILABLE, UNDEFINED_TABLE, not_supported
from barnabas.tables.row_names import ROW

FREE = "free_rows"  # the relation of the rows that were locked

_GROUPS = {
    "distinct": "DISTINCT clause", "group": "GROUP BY clause", "having": "HAVING clause", "windows": "WINDOW clause",
    "connect": "CONNECT BY clause",
}  # fmt: skip


def select_for_update(session: Host, statement: Statement, given: Sequence[pa.DataType | None], tree: Any) -> Ready:
    """SELECT … FOR UPDATE | NO KEY UPDATE | SHARE | KEY SHARE [OF table, …] [NOWAIT | SKIP LOCKED]."""
    locks = locks_of(tree)
    tree = tree.copy()
    tree.set("locks", None)
    _check(tree, locks)
    if any(each.args.get("wait") is False for each in locks):
        return _skipping(session, statement, given, tree, _tables(tree, locks))
    targets = [_Target(session, each, tree.copy(), statement, given) for each in _tables(tree, locks)]
    plan = checked(session, tree, statement.text, given)
    waits = not any(each.args.get("wait") is True for each in locks)

    def execute(values: Sequence[Any]) -> Result:
        check_values(plan.parameters, values)
        for each in targets:
            session.check_writable(each.relation.name)
        return session.change(targets[0].relation, lambda: once(values))

    def once(values: Sequence[Any]) -> Result:
        for each in targets:
            each.lock(values, waits=waits)
        return run(session, plan, values, statement.text)

    return Ready(statement.text, execute, plan.schema, plan.parameters, version=session.version)


def locks_of(tree: Any) -> Sequence[Any]:
    """The FOR UPDATE of a whole query; the parser gives that of a UNION to its last part."""
    last = tree
    while isinstance(last, exp.SetOperation) and not last.args.get("locks"):
        last = last.expression
    return last.args.get("locks") or [] if isinstance(last, exp.Query) else []


def without_locks(tree: Any) -> Any:
    """A query that reads no table without its FOR UPDATE, which locks nothing; any other stays."""
    locks = locks_of(tree)
    if not locks or tree.args.get("from_") or any(each.args.get("expressions") for each in locks):
        return tree
    tree.set("locks", None)
    return tree


def _skipping(
    session: Host, statement: Statement, given: Sequence[pa.DataType | None], tree: Any, tables: Sequence[Any]
) -> Ready:
    """SELECT … FOR UPDATE SKIP LOCKED, of one table. Raises SqlError."""
    if len(tables) != 1 or tree.args.get("joins") or tree.args.get("offset"):
        raise not_supported("SKIP LOCKED with a join or OFFSET is not supported", hint="SELECT … FROM one table … LIMIT n")
    limit, table = tree.args.get("limit"), tables[0]
    candidates = tree.copy()
    candidates.set("limit", None)
    target = _Target(session, table, candidates, statement, given)
    names = (ROW,) if target.relation.has_row_names else target.relation.keys
    columns = [own_column(table, name) for name in names]
    free = exp.select(*(exp.column(exp.to_identifier(name, quoted=True)) for name in names)).from_(FREE)
    chosen = tree.where(exp.In(this=columns[0] if len(columns) == 1 else exp.Tuple(expressions=columns), query=free.subquery()))
    plan = checked(session, chosen, statement.text, given, {FREE: MemoryRelation(FREE, target.relation.identified)})

    def execute(values: Sequence[Any]) -> Result:
        check_values(plan.parameters, values)
        session.check_writable(target.relation.name)
        return session.change(target.relation, lambda: once(values))

    def once(values: Sequence[Any]) -> Result:
        rows = target.take_free(values, _count(limit, values))
        return run(session, plan, values, statement.text, {FREE: rows})

    return Ready(statement.text, execute, plan.schema, plan.parameters, version=session.version)


def _count(limit: Any, values: Sequence[Any]) -> int | None:
    """How many rows a LIMIT wants; None for all. Raises SqlError."""
    wanted = None if limit is None else limit.args.get("count") if isinstance(limit, exp.Fetch) else limit.expression
    if wanted is None or isinstance(wanted, exp.Null):
        return None
    number = whole_number(wanted)
    if number is None and isinstance(wanted, exp.Parameter) and wanted.name.isdigit():
        number = values[int(wanted.name) - 1]
        return None if number is None else int(number)
    if number is None:
        raise not_supported("SKIP LOCKED needs a number behind LIMIT", position_in(wanted))
    return number


class _Target:
    """A table whose rows are locked."""

    def __init__(
        self, session: Host, table: Any, query: Any, statement: Statement, given: Sequence[pa.DataType | None]
    ) -> None:  # fmt: skip
        self._session, self._text = session, statement.text
        self.relation: TopicRelation = keyed_target(session, table, "lock rows in")
        items = [exp.alias_(own_column(table, name), name, quoted=True) for name in self.relation.identified.names]
        self._plan: QueryPlan = checked(session, query.select(*items, append=False), statement.text, given)

    def lock(self, values: Sequence[Any], *, waits: bool) -> None:
        """Lock the rows. Raises SqlError."""
        rows = collected(self._session, self._plan, values, self._text)
        try:
            self._session.lock_rows(self.relation, rows, waits=waits)
        except SqlError as error:
            if waits or error.sqlstate != LOCK_NOT_AVAILABLE:
                raise
            raise SqlError(LOCK_NOT_AVAILABLE, f'could not obtain lock on row in relation "{self.relation.name}"') from None

    def take_free(self, values: Sequence[Any], most: int | None) -> pa.Table:
        """Lock the first rows that no other session holds, and give them. Raises SqlError."""
        rows = collected(self._session, self._plan, values, self._text)
        first = rows if most is None else rows.slice(0, most)
        if self._is_free(first):
            return first
        found: list[pa.Table] = []
        for place in range(rows.num_rows):
            if most is not None and len(found) >= most:
                break
            row = rows.slice(place, 1)
            if self._is_free(row):
                found.append(row)
        return pa.concat_tables(found) if found else rows.slice(0, 0)

    def _is_free(self, rows: pa.Table) -> bool:
        """Whether no other session holds one of some rows, which are locked then."""
        try:
            self._session.lock_rows(self.relation, rows, waits=False)
        except SqlError as error:
            if error.sqlstate not in (LOCK_NOT_AVAILABLE, DEADLOCK):
                raise
            return False
        return True


def _check(tree: Any, locks: Sequence[Any]) -> None:
    """Raises SqlError for a query whose rows are not rows of tables."""
    word = "FOR UPDATE" if locks[0].args.get("update") else "FOR SHARE"
    if not isinstance(tree, exp.Select):
        raise SqlError("0A000", f"{word} is not allowed with UNION/INTERSECT/EXCEPT")
    for name, clause in _GROUPS.items():
        if tree.args.get(name):
            raise SqlError("0A000", f"{word} is not allowed with {clause}")
    if any(each.find(exp.AggFunc) for each in tree.expressions):
        raise SqlError("0A000", f"{word} is not allowed with aggregate functions")


def _tables(tree: Any, locks: Sequence[Any]) -> list[Any]:
    """The tables that are locked. Raises SqlError."""
    sources = [tree.args["from_"].this] if tree.args.get("from_") else []
    sources += [each.this for each in tree.args.get("joins") or []]
    named = {each.alias_or_name.lower(): each for each in sources}
    wanted = [name for each in locks for name in each.args.get("expressions") or []]
    for each in wanted:
        if each.name.lower() not in named:
            raise SqlError(
                UNDEFINED_TABLE, f'relation "{each.name}" in FOR UPDATE clause not found in FROM clause',
                position=position_in(each),
            )  # fmt: skip
    found = [named[each.name.lower()] for each in wanted] or sources
    others = [each for each in found if not isinstance(each, exp.Table) or not isinstance(each.this, exp.Identifier)]
    if others or not found:
        raise not_supported(
            "FOR UPDATE of a subquery is not supported", position_in(others[0]) if others else None, "FOR UPDATE OF a table"
        )
    return found
