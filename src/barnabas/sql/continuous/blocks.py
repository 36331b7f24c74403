"""One SELECT: FROM and WHERE, groups, windows, columns, DISTINCT, order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from barnabas.incremental.plan import quoted
from barnabas.sql.continuous.aggregates import Aggregating
from barnabas.sql.continuous.context import Common, Context
from barnabas.sql.continuous.functions import Functions
from barnabas.sql.continuous.limits import Ordering, key_text
from barnabas.sql.continuous.parts import (
    Item,
    Made,
    NotSplit,
    Part,
    conjuncts,
    has_query,
    used_by,
)
from barnabas.sql.continuous.projecting import Projecting
from barnabas.sql.continuous.sources import Sources
from barnabas.sql.continuous.subqueries import Subqueries
from barnabas.sql.continuous.windows import with_windows
from barnabas.sql.dialect import to_duckdb
from barnabas.sql.planning.literals import whole_number

CLAUSES = ("into", "sample", "windows", "cluster", "distribute", "sort", "qualify_", "locks", "operation_modifiers")


class Select:
    """A SELECT that reads nothing of what is around it."""

    def __init__(self, planner: Context, tree: Any, common: Common) -> None:
        self._planner, self._tree, self._common = planner, tree, common
        self._nodes = planner.nodes
        self._functions: Functions = planner.functions
        self._projecting = Projecting(planner.nodes)
        if any(tree.args.get(name) for name in CLAUSES) or tree.args.get("kind"):
            raise NotSplit("a clause of SELECT")
        self._ordering = Ordering(planner, tree)

    def made(self) -> Made:
        self._ordering.check()
        sources = Sources(self._planner, self._tree, self._common)
        self._scope = sources.scope
        self._subqueries = Subqueries(self._planner, self._scope, self._common)
        items = self._items()
        self._aliases = {name.lower(): each for name, each in items}
        sources.aliases = self._aliases
        having = self._clause("having")
        qualify = self._clause("qualify")
        order = self._order_keys(items) if self._ordering.is_limited or self._is_distinct_on else []
        distinct = self._distinct_on()
        nested, outer = sources.conditions()
        if outer:
            raise NotSplit("the name of a table around it")
        groups = Aggregating(self._planner, self._scope, self._tree, items)
        trees = [*(each for _, each in items), *having, *qualify, *(each for _, each in order), *distinct, *groups.keys]
        is_simple = not nested and not any(map(has_query, trees))
        part, conditions = sources.joined(used_by(*trees) if is_simple else None)
        if nested:
            part, conditions = self._subqueries.applied(sources.joining.filtered(part, conditions), nested, self._aliases)
        if groups.is_aggregated([each for _, each in items] + having + qualify + [each for _, each in order]):
            several = [*(each for _, each in items), *having, *qualify, *(each for _, each in order)]
            part, several = groups.made(sources.joining.filtered(part, conditions), several)
            if not used_by(*several) <= set(part.columns):
                raise NotSplit("a column that is no group")
            counts = (len(items), len(having), len(qualify))
            items = [(name, each) for (name, _), each in zip(items, several, strict=False)]
            conditions = several[counts[0] : counts[0] + counts[1]]
            qualify = several[counts[0] + counts[1] : sum(counts)]
            order = [(one, each) for (one, _), each in zip(order, several[sum(counts) :], strict=True)]
        elif having:
            raise NotSplit("HAVING without groups")
        return self._shown(part, conditions, items, qualify, order, distinct)

    def _shown(
        self, part: Part, conditions: Sequence[Any], items: Sequence[Item], qualify: Sequence[Any], order: Any, distinct: Any
    ) -> Made:
        part, conditions, items, order = self._without_scalars(part, conditions, items, order)
        has_windows = any(
            self._functions.has_window(each) for each in [*(each for _, each in items), *qualify, *(each for _, each in order)]
        )
        if has_windows:
            part, items, order = with_windows(self._planner, self._filtered(part, conditions), items, qualify, order)
            conditions = []
        elif qualify:
            raise NotSplit("QUALIFY without windows")
        if distinct:
            made = self._projecting.first_of_each(self._filtered(part, conditions), items, order, distinct)
            return self._limited(made, items, order) if self._ordering.is_limited else made
        is_distinct = self._tree.args.get("distinct") is not None
        if is_distinct:
            made = self._projecting.distinct(self._filtered(part, conditions), items)
            return self._limited(made, items, order) if self._ordering.is_limited else made
        if not self._ordering.is_limited:
            return self._projecting.projected(part, conditions, items)
        extra = [
            (f"_order_{place}", each) for place, (_, each) in enumerate(order) if not any(each == other for _, other in items)
        ]
        made = self._projecting.projected(part, conditions, [*items, *extra])
        shown = Made(made.node, made.names[: len(items)], made.unique, made.not_null)
        columns = {to_duckdb(each): column for (_, each), (_, column) in zip([*items, *extra], made.names, strict=True)}
        return self._ordering.limited(shown, [key_text(one, quoted(columns[to_duckdb(each)])) for one, each in order])

    def _filtered(self, part: Part, conditions: Sequence[Any]) -> Part:
        return self._subqueries.joining.filtered(part, conditions)

    # the clauses of the statement

    def _items(self) -> list[Item]:
        items: list[Item] = []
        aliases: dict[str, Any] = {}
        for each in self._tree.expressions:
            if each.is_star and isinstance(each, (exp.Star, exp.Column)):
                items += self._scope.star(each)
                continue
            if isinstance(each, exp.Aliases):
                raise NotSplit("a column with several names")
            made = self._scope.resolved(each.unalias(), aliases)
            name = each.alias_or_name or to_duckdb(each)
            items.append((name, made))
            aliases.setdefault(name.lower(), made)
        return items

    def _clause(self, name: str) -> list[Any]:
        clause = self._tree.args.get(name)
        return [self._scope.resolved(each, self._aliases) for each in conjuncts(clause.this if clause is not None else None)]

    def _order_keys(self, items: Sequence[Item]) -> list[tuple[Any, Any]]:
        """Sort keys, each with its expression."""
        found = []
        for each in self._ordering.order:
            tree = each.this
            if isinstance(tree, exp.Var) or (isinstance(tree, exp.Column) and tree.name.upper() == "ALL" and not tree.table):
                raise NotSplit("ORDER BY ALL")
            named = self._aliases.get(tree.name.lower()) if isinstance(tree, exp.Column) and not tree.table else None
            if isinstance(tree, exp.Literal) and not tree.is_string:
                place = whole_number(tree)
                if place is None or not 0 < place <= len(items):
                    raise NotSplit("a place of ORDER BY")
                named = items[place - 1][1]
            found.append((each, named.copy() if named is not None else self._scope.resolved(tree, self._aliases)))
        return found

    @property
    def _is_distinct_on(self) -> bool:
        distinct = self._tree.args.get("distinct")
        return distinct is not None and distinct.args.get("on") is not None

    def _distinct_on(self) -> list[Any]:
        if not self._is_distinct_on:
            return []
        on = self._tree.args["distinct"].args["on"]
        return [self._scope.resolved(each, self._aliases) for each in (on.expressions if isinstance(on, exp.Tuple) else [on])]

    # nodes

    def _without_scalars(self, part: Part, conditions: Sequence[Any], items: Sequence[Item], order: Any) -> Any:
        """The same without subqueries in expressions."""
        every = [*conditions, *(each for _, each in items), *(each for _, each in order)]
        if not any(map(has_query, every)):
            return part, conditions, items, order
        part, made = self._subqueries.scalars(part, every)
        count = len(conditions)
        named = [(name, each) for (name, _), each in zip(items, made[count:], strict=False)]
        return part, made[:count], named, [(one, each) for (one, _), each in zip(order, made[count + len(items) :], strict=True)]

    def _limited(self, made: Made, items: Sequence[Item], order: Any) -> Made:
        """The first rows of a relation whose columns are sorted by."""
        columns = {to_duckdb(each): column for (_, each), (_, column) in zip(items, made.names, strict=True)}
        try:
            keys = [key_text(one, quoted(columns[to_duckdb(each)])) for one, each in order]
        except KeyError:
            raise NotSplit("an order by what is not shown") from None
        return self._ordering.limited(made, keys)
