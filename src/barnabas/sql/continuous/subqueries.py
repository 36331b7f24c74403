"""Subqueries in expressions: IN and EXISTS become joins with the rows that have a partner, scalar ones become columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
from sqlglot import exp

from barnabas.incremental.plan import Join, Named, Rows, Sum, Sums, quoted
from barnabas.sql.continuous.aggregates import Aggregating
from barnabas.sql.continuous.context import Common, Context
from barnabas.sql.continuous.joining import ONE, Joining, kept
from barnabas.sql.continuous.nulls import is_never_null
from barnabas.sql.continuous.parts import Made, NotSplit, Part, column_of, has_query, outer_nodes, replaced, sources_in, text
from barnabas.sql.continuous.scope import Scope, Source
from barnabas.sql.continuous.sources import Sources, part_of

TOO_MANY = "More than one row returned by a subquery used as an expression"


class Subqueries:
    """Those of one block.

    Args:
        scope: the names of the block.
    """

    def __init__(self, planner: Context, scope: Scope, common: Common) -> None:
        self._planner, self._nodes, self._scope, self._common = planner, planner.nodes, scope, common
        self.joining = Joining(planner.nodes)

    # conditions

    def applied(self, part: Part, conditions: Sequence[Any], aliases: Mapping[str, Any]) -> tuple[Part, list[Any]]:
        """A part with the conditions that are joins applied; the others come back, without subqueries."""
        rest = []
        for each in conditions:
            made = self._joined(part, each)
            if made is None:
                rest.append(self._scope.resolved(each, aliases))
            else:
                part = made
        return self.scalars(part, rest)

    def _joined(self, part: Part, condition: Any) -> Part | None:
        is_not = isinstance(condition, exp.Not)
        inner = condition.this if is_not else condition
        inner = inner.this if isinstance(inner, exp.Paren) else inner
        is_not = is_not != bool(inner.args.get("negate"))
        match inner:
            case exp.Exists():
                return self._exists(part, inner.this, is_anti=is_not)
            case exp.In() if inner.args.get("query") is not None and not inner.expressions:
                return self._in(part, inner, is_anti=is_not)
            case exp.EQ(expression=exp.Any(this=query)) if not is_not and isinstance(query, exp.Query):
                return self._in(part, exp.In(this=inner.this.copy(), query=query.copy()), is_anti=False)
        return None

    def _exists(self, part: Part, query: Any, *, is_anti: bool) -> Part:
        made = self._alone(query)
        if made is not None:
            right = part_of(made, Source(self._planner.source_number(), "", made.names))
            return self.joining.semi(part, right, [], is_anti=is_anti)
        select = _plain(query, self._planner, limit=True)
        right, conditions, _ = self._correlated(select)
        return self.joining.semi(part, right, conditions, is_anti=is_anti)

    def _in(self, part: Part, condition: Any, *, is_anti: bool) -> Part:
        query = condition.args["query"]
        sides = condition.this.expressions if isinstance(condition.this, exp.Tuple) else [condition.this]
        if any(map(has_query, sides)):
            raise NotSplit("a subquery within IN")
        sides = [self._scope.resolved(each) for each in sides]
        made = self._alone(query)
        if made is not None:
            source = Source(self._planner.source_number(), "", made.names)
            right = part_of(made, source)
            values: list[Any] = [column_of(source.number, column) for _, column in made.names]
            conditions: list[Any] = []
        else:
            select = _plain(query, self._planner, limit=False)
            right, conditions, scope = self._correlated(select)
            values = [scope.resolved(each.unalias()) for each in select.expressions]
            if any(not sources_in(each) <= right.sources for each in values):
                raise NotSplit("IN with a name of a table around it")
        if len(values) != len(sides):
            raise NotSplit("IN with another number of columns")
        equal = [exp.EQ(this=one.copy(), expression=other.copy()) for one, other in zip(sides, values, strict=True)]
        if not is_anti:
            return self.joining.semi(part, right, [*conditions, *equal])
        never = all(is_never_null(each, part, part.not_null) for each in sides) and all(
            is_never_null(each, right, right.not_null) for each in values
        )
        if never:
            return self.joining.semi(part, right, [*conditions, *equal], is_anti=True)
        if conditions or len(sides) > 1:
            raise NotSplit("NOT IN with nulls and a name of a table around it")
        return self._not_in(part, right, sides[0], values[0], equal[0])

    def _not_in(self, part: Part, right: Part, side: Any, value: Any, equal: Any) -> Part:
        """Nothing if the right side has a null; also rows without a value if it has no rows."""
        left = self.joining.semi(part, right, [equal], is_anti=True)
        sums = (Sum("n", "BIGINT", "count"), Sum("c", "BIGINT", "count", text(value, right)))
        flags = (Named("has_rows", "BOOLEAN", "n > 0"), Named("has_null", "BOOLEAN", "n > c"))
        facts = self._nodes.add(Sums(right.node, (), sums, flags))
        columns = self._nodes.columns(left.node)
        passed = tuple(Named(each.name, each.kind, f"{ONE}.{quoted(each.name)}") for each in columns)
        on = f"NOT input_1.has_null AND (({text(side, left)}) IS NOT NULL OR NOT input_1.has_rows)"
        return left.renamed(
            node=self._nodes.add(Join(left.node, facts, on, passed)), plain={each.name: (ONE, each.name) for each in columns}
        )

    def _alone(self, query: Any) -> Made | None:
        """The relation of a query that uses no name of a table around it; None if it does."""
        inner = query.this if isinstance(query, exp.Subquery) else query
        before = list(self._planner.notices)
        try:
            return self._planner.query(inner, self._common)
        except (NotSplit, duckdb.Error):
            self._planner.notices = before
            return None

    def _correlated(self, select: Any) -> tuple[Part, list[Any], Scope]:
        """The rows of a subquery, and its conditions on the tables around it."""
        if select.args.get("with_"):
            raise NotSplit("WITH in a subquery")
        sources = Sources(self._planner, select, self._common, self._scope)
        nested, outer = sources.conditions()
        part, conditions = sources.joined(None)
        part = sources.joining.filtered(part, conditions)
        if nested:
            inner = Subqueries(self._planner, sources.scope, self._common)
            part, rest = inner.applied(part, nested, {})
            part = inner.joining.filtered(part, rest)
        return part, outer, sources.scope

    # values

    def scalars(self, part: Part, trees: Sequence[Any]) -> tuple[Part, list[Any]]:
        """A part with the values of subqueries as columns, and the expressions over it."""
        found: list[tuple[Any, Any]] = []
        for tree in trees:
            holder = exp.Tuple(expressions=[tree.copy()])
            for each in list(outer_nodes(holder)):
                if isinstance(each, exp.Query) and not any(each == known for known, _ in found):
                    if not isinstance(each, exp.Subquery) or isinstance(each.parent, (exp.In, exp.Exists, exp.Any, exp.All)):
                        raise NotSplit("a subquery within an expression")
                    part, value = self._scalar(part, each)
                    found.append((each.copy(), value))

        def change(node: Any) -> Any | None:
            made = next((value for each, value in found if each == node), None) if isinstance(node, exp.Query) else None
            return None if made is None else exp.Paren(this=made.copy())

        return part, [replaced(each, change) for each in trees]

    def _scalar(self, part: Part, subquery: Any) -> tuple[Part, Any]:
        made = self._alone(subquery)
        if made is not None:
            if len(made.names) != 1:
                raise NotSplit("a subquery of several columns")
            column = made.names[0][1]
            node = (
                made.node
                if frozenset() in made.unique and _is_one_row(subquery)
                else self._at_most_one(node=made.node, column=column)
            )
            source = Source(self._planner.source_number(), "", ((column, column),))
            right = part_of(Made(node, ((column, column),), (frozenset(),)), source)
            return self.joining.inner(part, right, []), column_of(source.number, column)
        select = _plain(subquery, self._planner, limit=False)
        if len(select.expressions) != 1:
            raise NotSplit("a subquery of several columns")
        inner, conditions, scope = self._correlated(select)
        value = scope.resolved(select.expressions[0].unalias())
        sides = [_sides(each, inner) for each in conditions]
        functions = self._planner.functions
        if not functions.aggregates(value):
            if not sources_in(value) <= inner.sources:
                raise NotSplit("a subquery with a name of a table around it")
            value = _only(value)
        source_number, keys = self._planner.source_number(), [one for one, _ in sides]
        groups = Aggregating(self._planner, scope, exp.Select(), [])
        groups.keys = keys
        right, (made_value,) = groups.made(inner, [value])
        columns = list(right.columns)
        key_columns = [column_of(columns[0][0], f"g{place}") for place in range(len(keys))]
        equal = [exp.EQ(this=outer.copy(), expression=key.copy()) for (_, outer), key in zip(sides, key_columns, strict=True)]
        del source_number
        joined = self.joining.outer(part, right, equal)
        counts = {of for of in right.columns if right.columns[of] in right.not_null and not of[1].startswith("g")}

        def change(node: Any) -> Any | None:
            if not isinstance(node, exp.Column):
                return None
            is_count = any(node.name == name and node.table == f"#{number}" for number, name in counts)
            return exp.Coalesce(this=node.copy(), expressions=[exp.Literal.number(0)]) if is_count else node

        return joined, replaced(made_value, change)

    def _at_most_one(self, node: int, column: str) -> int:
        kind = next(each.kind for each in self._nodes.columns(node) if each.name == column)
        sums = (Sum("n", "BIGINT", "count"), Sum("v", kind, "max", f"{ONE}.{quoted(column)}"))
        value = f"CASE WHEN n > 1 THEN error('{TOO_MANY}') ELSE v END"
        found = self._nodes.add(Sums(node, (), sums, kept(self._columns(sums))))
        return self._nodes.add(Rows(found, (Named(column, kind, value),)))

    @staticmethod
    def _columns(sums: Sequence[Sum]) -> list[Any]:
        from barnabas.incremental.plan import Column

        return [Column(each.name, each.kind) for each in sums]


def _plain(query: Any, planner: Context, *, limit: bool) -> Any:
    """A SELECT of FROM and WHERE alone. Raises NotSplit."""
    while isinstance(query, exp.Subquery):
        query = query.this
    others = ["group", "having", "qualify", "offset", "with_", "sample", "pivots"] + ([] if limit else ["limit"])
    if not isinstance(query, exp.Select) or any(query.args.get(each) for each in others):
        raise NotSplit("a subquery with groups or limits that uses a table around it")
    count = query.args.get("limit")
    if count is not None and (
        not isinstance(count, exp.Limit) or not isinstance(count.expression, exp.Literal) or count.expression.name == "0"
    ):
        raise NotSplit("a limit in a subquery")
    if limit and any(planner.functions.aggregates(each) for each in query.expressions):
        raise NotSplit("EXISTS with aggregates")
    return query


def _sides(condition: Any, inner: Part) -> tuple[Any, Any]:
    """The expressions of an equality within the subquery and around it."""
    if isinstance(condition, exp.EQ):
        for one, other in ((condition.this, condition.expression), (condition.expression, condition.this)):
            if sources_in(one) and sources_in(one) <= inner.sources and not sources_in(other) & inner.sources:
                return one, other
    raise NotSplit("a subquery with a condition on a table around it that is no equality")


def _only(value: Any) -> Any:
    """The value of the only row."""
    several = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(1))
    failing = exp.Anonymous(this="error", expressions=[exp.Literal.string(TOO_MANY)])
    return exp.Case(ifs=[exp.If(this=several, true=failing)], default=exp.Max(this=value.copy()))


def _is_one_row(subquery: Any) -> bool:
    """Whether a query has one row in any case: it has aggregates and no groups."""
    inner = subquery
    while isinstance(inner, exp.Subquery):
        inner = inner.this
    return isinstance(inner, exp.Select) and not any(
        inner.args.get(each) for each in ("group", "having", "limit", "offset", "qualify")
    )
