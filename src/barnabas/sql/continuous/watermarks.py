"""From the watermarks of tables to what each node of a plan may forget, and to rows that are final.

Rules
  1. A column of a node has a bound if every row that comes or goes in a later step has at least this value in it.
  2. A text of a node that is not understood gives no bound, so nothing is forgotten because of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace
from sqlglot import exp
from sqlglot.errors import SqlglotError

from barnabas.incremental.append_only import reads_streams_alone
from barnabas.incremental.plan import (
    Final,
    Groups,
    Join,
    Less,
    Lookup,
    Named,
    Node,
    OnTime,
    Plan,
    Rows,
    Sessions,
    Sums,
    Union,
    Until,
    quoted,
)
from barnabas.sql.continuous.bounds import (
    Bound,
    Bounds,
    Find,
    bound_of,
    hops,
    is_constant,
    least,
    of_column,
    of_columns,
    orders,
    parsed,
    until,
)
from barnabas.sql.continuous.nodes import moved
from barnabas.sql.interface import SqlError
from barnabas.sql.states import not_supported

_SEMI = re.compile(r"SELECT \* FROM input_0 WHERE EXISTS \(SELECT 1 FROM input_1 WHERE (.*)\)", re.DOTALL)
ZONED = "TIMESTAMP WITH TIME ZONE"


def with_watermarks(plan: Plan, *, is_final: bool = False) -> Plan:
    """The plan whose nodes forget what the watermarks allow.

    Args:
        is_final: whether the view gives a row when it cannot change any more.

    Raises:
        SqlError: 0A000 if nothing tells when a row of the result is final.
    """
    if not plan.marks:
        if is_final:
            raise not_supported(
                "EMIT FINAL needs a watermark, and no table of the query has one",
                hint="declare it: CREATE TABLE … (…, WATERMARK FOR at AS at - INTERVAL '5 seconds')",
            )
        return plan
    bounding = Bounding(plan)
    made = replace(plan, nodes=tuple(bounding.nodes), until=bounding.result())
    return _final(made) if is_final else made


def _final(plan: Plan) -> Plan:
    if plan.until is None:
        raise _never_final(plan)
    last = len(plan.nodes) - 1
    return replace(plan, nodes=(*plan.nodes, Final(last, plan.columns, plan.until)))


def with_waiting_rows(plan: Plan) -> Plan:
    """The plan of a join of streams. Its nodes forget what the watermarks allow, and a row without a partner waits until it is final.

    Raises:
        SqlError: 0A000 if nothing tells when such a row is final.
    """
    number = 0
    while plan.marks and number < len(plan.nodes):
        if isinstance(plan.nodes[number], Less) and reads_streams_alone(plan, number):
            final = Final(number, plan.columns_of(number), Bounding(plan).final(number))
            number += 1
            numbers = {each: each + (each >= number - 1) for each in range(len(plan.nodes))}
            later = (moved(each, numbers) for each in plan.nodes[number:])
            plan = replace(plan, nodes=(*plan.nodes[:number], final, *later))
        number += 1
    return replace(with_watermarks(plan), until=None)


def _never_final(plan: Plan) -> SqlError:
    times = ", ".join(sorted({each.time for each in plan.marks.values()}))
    return not_supported(
        f"EMIT FINAL needs a column that tells when a row is final, and no watermark passes one of the result (watermarks are on {times})",
        hint="show the time column, or group by a window of it; in a join, compare the times of both sides",
    )


class Bounding:
    """The nodes of a plan with what they may forget, and the bounds of their columns."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._is_aware = any(each.kind == ZONED for each in plan.marks.values())
        self.nodes: list[Node] = list(plan.nodes)
        self._bounds: list[Bounds] = []
        for number in range(len(plan.nodes)):
            try:
                self._bounds.append(self._bounded(number))
            except SqlglotError:
                self._bounds.append({})

    def result(self) -> Until | None:
        """The rows of the result that cannot change."""
        bounds = self._bounds[-1]
        names = [*(self._plan.key or ()), *(each.name for each in self._plan.columns)]
        return next((until(_column(name), bounds[name]) for name in names if name in bounds), None)

    def final(self, number: int) -> Until:
        """The rows of a node that cannot change. Raises SqlError 0A000 if nothing tells it."""
        for name, bound in self._bounds[number].items():
            return until(_column(name), bound)
        raise not_supported(
            "nothing tells when a row of a stream without a partner is final",
            hint="compare the times of both streams: ON … AND b.at BETWEEN a.at - INTERVAL '5 minutes' AND a.at + INTERVAL '5 minutes'",
        )

    def _bounded(self, number: int) -> Bounds:
        """The bounds of a node; the node gets what it may forget."""
        match self._plan.nodes[number]:
            case OnTime(time=time):
                return {time: ((number, exp.column(f"w{number}")),)}
            case Rows() as node:
                return self._rows(node)
            case Join() as node:
                return self._join(number, node)
            case Lookup(left=left, columns=columns):
                own = of_columns(self._bounds[left])
                return self._named(columns, lambda column: own(column) if column.table == "input_0" else None)
            case Sums() as node:
                return self._sums(number, node)
            case Groups() as node:
                return self._groups(number, node)
            case Sessions() as node:
                return self._sessions(number, node)
            case Union(inputs=inputs):
                return self._of_all(inputs)
            case Less(input=one, less=less):
                return self._of_all((one, less))
        return {}

    def _of(self, tree: Any, find: Find) -> Bound | None:
        return bound_of(tree, find, is_aware=self._is_aware)

    def _named(self, columns: Sequence[Named], find: Find) -> Bounds:
        """The bounds of columns that expressions make."""
        found = {each.name: self._of(parsed(each.sql), find) for each in columns}
        return {name: bound for name, bound in found.items() if bound is not None}

    def _rows(self, node: Rows) -> Bounds:
        below = of_columns(self._bounds[node.input])
        lateral = hops(node.source, below, is_aware=self._is_aware)
        return self._named(node.columns, lambda column: lateral.get((column.table, column.name)) or below(column))

    def _of_all(self, inputs: Sequence[int]) -> Bounds:
        columns = [self._plan.columns_of(each) for each in inputs]
        found = {}
        for place, first in enumerate(columns[0]):
            bound = least(*(self._bounds[each].get(own[place].name) for each, own in zip(inputs, columns, strict=True)))
            if bound is not None:
                found[first.name] = bound
        return found

    # joins

    def _join(self, number: int, node: Join) -> Bounds:
        pairs = list(orders(parsed(node.on))) if node.on else []
        met = [self._met(pairs, 0, node.right), self._met(pairs, 1, node.left)]
        self.nodes[number] = replace(node, until=tuple(until(*each[0]) if each else None for each in _local(met)))
        sides = [self._joined(own, each) for own, each in zip((node.left, node.right), met, strict=True)]

        def find(column: Any) -> Bound | None:
            place = {"input_0": (0,), "input_1": (1,)}.get(column.table, (0, 1))
            found = [sides[each][column.name] for each in place if column.name in sides[each]]
            return found[0] if len(found) == 1 else None

        return self._named(node.columns, find)

    def _met(self, pairs: Sequence[tuple[Any, Any]], side: int, other: int) -> list[tuple[Any, Bound]]:
        """Expressions of one side, and the least values that a row needs to meet later rows of the other side."""
        find = of_columns(self._bounds[other], f"input_{1 - side}")
        found = []
        for greater, smaller in pairs:
            if _sides(greater) == {f"input_{side}"} and _sides(smaller) == {f"input_{1 - side}"}:
                bound = self._of(smaller, find)
                if bound is not None:
                    found.append((greater, bound))
        return found

    def _joined(self, own: int, met: Sequence[tuple[Any, Bound]]) -> Bounds:
        """The bounds of a side's columns in the join: later rows of the side, or old ones that meet later rows of the other side."""
        derived = dict(one for tree, bound in met if (one := of_column(tree, bound)) is not None)
        return {name: both for name, bound in self._bounds[own].items() if (both := least(bound, derived.get(name))) is not None}

    # groups

    def _sums(self, number: int, node: Sums) -> Bounds:
        below = of_columns(self._bounds[node.input])
        keys = self._named(node.keys, below)
        first = next((each for each in node.keys if each.name in keys), None)
        if first is None:
            return {}
        self.nodes[number] = replace(node, until=until(first.sql, keys[first.name]))
        return self._named(node.columns, of_columns(keys))

    def _groups(self, number: int, node: Groups) -> Bounds:
        semi = _SEMI.fullmatch(node.query)
        if semi is not None and len(node.inputs) == 2:
            return self._semi(number, node, parsed(semi[1]))
        if not node.inputs or not node.keys[0]:
            return {}
        for place in range(len(node.keys[0])):
            trees = [parsed(each[place]) for each in node.keys]
            each_bound = [
                self._of(tree, of_columns(self._bounds[one], f"input_{at}"))
                for at, (tree, one) in enumerate(zip(trees, node.inputs, strict=True))
            ]
            bound = least(*each_bound)
            if bound is not None:
                self.nodes[number] = replace(node, until=tuple(_moved(tree, bound) for tree in trees))
                return self._shown(node, trees[0], bound) if len(trees) == 1 else {}
        return {}

    def _shown(self, node: Groups, key: Any, bound: Bound) -> Bounds:
        """The bounds of the columns of a query that show a key."""
        own = {key.name: bound} if isinstance(key, exp.Column) else {}
        found = {}
        for each, tree in zip(node.columns, _projections(parsed(node.query)), strict=False):
            shown = bound if tree == key else self._of(tree, of_columns(own)) if own else None
            if shown is not None:
                found[each.name] = shown
        return found

    def _semi(self, number: int, node: Groups, condition: Any) -> Bounds:
        """The rows of the left input with a partner. A row on the right stays as long as a row on the left that it meets."""
        left, right = node.inputs
        pairs = list(orders(condition))
        met = self._met(pairs, 0, right)
        derived = dict(one for tree, bound in met if (one := of_column(tree, bound)) is not None)
        kept = {name: least(bound, self._bounds[left].get(name)) for name, bound in derived.items()}
        kept_bounds = {name: bound for name, bound in kept.items() if bound is not None}
        theirs = []
        for greater, smaller in pairs:
            if _sides(greater) == {"input_1"} and _sides(smaller) == {"input_0"}:
                bound = self._of(smaller, of_columns(kept_bounds))
                if bound is not None:
                    theirs.append((greater, bound))
        if kept_bounds and theirs and self._plan.only_grows(left):
            name, bound = next(iter(kept_bounds.items()))
            untils = [until(_column(name), bound), *(until(*each[0]) for each in _local([theirs]))]
            self.nodes[number] = replace(node, until=tuple(untils))
        return self._joined(left, met)

    def _sessions(self, number: int, node: Sessions) -> Bounds:
        bound = self._of(parsed(node.at), of_columns(self._bounds[node.input]))
        if bound is None or not self._plan.only_grows(node.input):
            return {}
        last = node.columns[-1].name
        self.nodes[number] = replace(node, until=until(_column(last), bound))
        return {last: bound}


def _sides(tree: Any) -> set[str]:
    return {each.table for each in tree.find_all(exp.Column)}


def _local(met: Sequence[Sequence[tuple[Any, Bound]]]) -> Iterator[list[tuple[Any, Bound]]]:
    """The expressions of a side over its own row, which is `input_0` there."""
    for each in met:
        yield [(_own(tree), bound) for tree, bound in each]


def _own(tree: Any) -> Any:
    made = tree.copy()
    for column in made.find_all(exp.Column):
        column.set("table", exp.to_identifier("input_0"))
    return made


def _moved(tree: Any, bound: Bound) -> Until:
    return until(_own(tree) if not is_constant(tree) else tree, bound)


def _projections(query: Any) -> list[Any]:
    """The expressions of the columns of a query over `input_0`; none for a query of another form."""
    while isinstance(query, exp.Select):
        origin = query.args.get("from_")
        source = origin.this if origin is not None else None
        if query.args.get("joins") or source is None:
            return []
        if isinstance(source, exp.Table) and source.name == "input_0":
            return [each.unalias() for each in query.expressions]
        if not isinstance(source, exp.Subquery) or not (len(query.expressions) == 1 and query.expressions[0].is_star):
            return []
        query = source.this
    return []


def _column(name: str) -> str:
    return f"input_0.{quoted(name)}"
