"""ORDER BY, LIMIT and OFFSET. An order without a limit means nothing to a view."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from barnabas.incremental.plan import Groups, quoted
from barnabas.sql.continuous.context import Context
from barnabas.sql.continuous.joining import ONE
from barnabas.sql.continuous.parts import Made, NotSplit
from barnabas.sql.dialect import to_duckdb
from barnabas.sql.planning.literals import whole_number

IGNORED = "ORDER BY without LIMIT is ignored: the rows of a view have no order"
FIRST_ROWS = "each change recomputes the first rows of all (LIMIT)"


class Ordering:
    """The order and the limit of a query."""

    def __init__(self, planner: Context, tree: Any) -> None:
        self._planner, self._tree = planner, tree
        order = tree.args.get("order")
        self.order: list[Any] = list(order.expressions) if order is not None else []
        self._limit, self._offset = tree.args.get("limit"), tree.args.get("offset")

    @property
    def is_limited(self) -> bool:
        return self._limit is not None or self._offset is not None

    def check(self) -> None:
        """Raises NotSplit for what has no node; takes note of an order that is ignored."""
        if isinstance(self._limit, exp.Fetch) and (
            self._limit.args.get("limit_options") is not None and any(self._limit.args["limit_options"].args.values())
        ):
            raise NotSplit("FETCH WITH TIES")
        if self._limit is not None and not isinstance(self._count, (exp.Literal, exp.Null)):
            raise NotSplit("a LIMIT that is computed")
        if self._offset is not None and not isinstance(self._offset.expression, exp.Literal):
            raise NotSplit("an OFFSET that is computed")
        if self.order and not self.is_limited:
            self._planner.note(IGNORED)

    @property
    def _count(self) -> Any:
        return self._limit.args.get("count") if isinstance(self._limit, exp.Fetch) else self._limit.expression

    def limited(self, made: Made, keys: list[str]) -> Made:
        """The first rows by keys, and by all columns where these are equal.

        Args:
            keys: texts of sort keys over the columns of the node.
        """
        nodes = self._planner.nodes
        columns = nodes.columns(made.node)
        order = ", ".join([*keys, *(quoted(each.name) for each in columns)])
        count = f" LIMIT {to_duckdb(self._count)}" if self._limit is not None else ""
        skipped = f" OFFSET {to_duckdb(self._offset.expression)}" if self._offset is not None else ""
        query = f"SELECT * FROM {ONE} ORDER BY {order}{count}{skipped}"
        node = nodes.add(Groups((made.node,), ((),), query, columns))
        self._planner.note(FIRST_ROWS)
        return Made(node, made.names, made.unique, made.not_null)

    def of_relation(self, made: Made) -> Made:
        """A relation whose order names its columns alone."""
        self.check()
        if not self.is_limited:
            return made
        return self.limited(made, [key_text(each, self._column(each.this, made)) for each in self.order])

    @staticmethod
    def _column(tree: Any, made: Made) -> str:
        place = whole_number(tree)
        if place is not None and 0 < place <= len(made.names):
            return quoted(made.names[place - 1][1])
        found = [
            column
            for shown, column in made.names
            if isinstance(tree, exp.Column) and not tree.table and shown.lower() == tree.name.lower()
        ]
        if len(found) != 1:
            raise NotSplit("an ORDER BY of expressions behind a set operation")
        return quoted(found[0])


def key_text(ordered: Any, column: str) -> str:
    """A sort key."""
    made = ordered.copy()
    made.set("this", exp.column(exp.to_identifier("x")))
    return to_duckdb(made).replace("x", column, 1)
