"""SELECT … FOR UPDATE: the rows of a query are locked before it reads them.

A second query of the same tables and conditions finds the keys. If another session has changed one of these rows meanwhile, the keys are
read again. FOR SHARE locks as FOR UPDATE does: a row has one holder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.dialect import Statement
from barnabas.sql.interface import Result, SqlError
from barnabas.sql.planning.names import position_in
from barnabas.sql.planning.query import QueryPlan, check_values
from barnabas.sql.statements.host import Host
from barnabas.sql.statements.modify import own_column
from barnabas.sql.statements.ready import Ready
from barnabas.sql.statements.select import checked, collected, run
from barnabas.sql.statements.target import keyed_target
from barnabas.sql.states import LOCK_NOT_AVAILABLE, UNDEFINED_TABLE, not_supported

_GROUPS = {
    "distinct": "DISTINCT clause", "group": "GROUP BY clause", "having": "HAVING clause", "windows": "WINDOW clause",
    "connect": "CONNECT BY clause",
}  # fmt: skip


def select_for_update(session: Host, statement: Statement, given: Sequence[pa.DataType | None], tree: Any) -> Ready:
    """SELECT … FOR UPDATE | NO KEY UPDATE | SHARE | KEY SHARE [OF table, …] [NOWAIT]."""
    locks = locks_of(tree)
    tree = tree.copy()
    tree.set("locks", None)
    _check(tree, locks)
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
    for each in locks:
        if each.args.get("wait") is False:
            raise not_supported("SKIP LOCKED is not supported", position_in(each), "NOWAIT")


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
