"""GROUP BY, with grouping sets: the keys of a SELECT's groups, and its expressions over keys and aggregates."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from barnabas.incremental.plan import Column, Named, Rows, Union, quoted
from barnabas.sql.continuous.context import Context
from barnabas.sql.continuous.functions import multiplies, name_of
from barnabas.sql.continuous.parts import NotSplit, Part, column_of, has_query, replaced, text
from barnabas.sql.continuous.scope import Scope
from barnabas.sql.continuous.sums import Summing
from barnabas.sql.planning.literals import whole_number


class Aggregating:
    """The groups of a SELECT.

    Args:
        items: the columns of the result.
    """

    def __init__(self, planner: Context, scope: Scope, tree: Any, items: Sequence[tuple[str, Any]]) -> None:
        self._planner, self._nodes, self._scope = planner, planner.nodes, scope
        self._functions = planner.functions
        self._summing = Summing(planner)
        self._clause = tree.args.get("group")
        self._aliases = {name.lower(): each for name, each in reversed(items)}
        self._items = items
        self.keys: list[Any] = []
        self._sets: list[list[int]] | None = None
        if self._clause is not None:
            self._read(self._clause)

    def is_aggregated(self, trees: Sequence[Any]) -> bool:
        """Whether the SELECT has groups."""
        return self._clause is not None or any(self._functions.aggregates(each) for each in trees)

    # keys

    def _read(self, clause: Any) -> None:
        if clause.args.get("totals"):
            raise NotSplit("GROUP BY WITH TOTALS")
        if clause.args.get("all"):
            self.keys = [each for _, each in self._items if not self._functions.aggregates(each)]
            return
        sets = [self._alternatives(each) for each in clause.expressions]
        for name in ("rollup", "cube", "grouping_sets"):
            sets += [self._alternatives(each) for each in clause.args.get(name) or []]
        if any(len(each) != 1 for each in sets):
            self._sets = [sorted(set(itertools.chain(*chosen))) for chosen in itertools.product(*sets)]

    def _alternatives(self, tree: Any) -> list[list[int]]:
        """The keys of each grouping set that a part of GROUP BY has."""
        match tree:
            case exp.Rollup():
                numbers = [self._keys(one) for one in tree.expressions]
                return [list(itertools.chain(*numbers[:count])) for count in range(len(numbers), -1, -1)]
            case exp.Cube():
                numbers = [self._keys(one) for one in tree.expressions]
                counts = range(len(numbers), -1, -1)
                return [list(itertools.chain(*chosen)) for count in counts for chosen in itertools.combinations(numbers, count)]
            case exp.GroupingSets():
                return list(itertools.chain(*map(self._alternatives, tree.expressions)))
        return [self._keys(tree)]

    def _keys(self, tree: Any) -> list[int]:
        if isinstance(tree, exp.Tuple):
            return [self._key(each) for each in tree.expressions]
        return [self._key(tree)]

    def _key(self, tree: Any) -> int:
        """The number of a key."""
        if isinstance(tree, exp.Literal) and not tree.is_string:
            place = whole_number(tree)
            if place is None or not 0 < place <= len(self._items):
                raise NotSplit("a place of GROUP BY")
            found = self._items[place - 1][1]
        else:
            found = self._scope.resolved(tree, self._aliases)
        while isinstance(found, exp.Paren):
            found = found.this
        if self._functions.aggregates(found) or has_query(found) or multiplies(found):
            raise NotSplit("a group by an aggregate, a subquery or unnest")
        if found not in self.keys:
            self.keys.append(found.copy())
        return self.keys.index(found)

    # nodes

    def made(self, part: Part, trees: Sequence[Any]) -> tuple[Part, list[Any]]:
        """A part with keys and aggregates as columns, and the expressions over it."""
        calls: list[Any] = []
        for tree in trees:
            for each in self._functions.aggregates(tree):
                if each not in calls:
                    calls.append(each)
        if any(has_query(each) for each in calls):
            raise NotSplit("a subquery within an aggregate")
        grouping = [each for each in calls if name_of(each) in ("grouping", "grouping_id")]
        calls = [each for each in calls if each not in grouping]
        source = self._planner.source_number()
        values: list[tuple[Any, Any]] = []
        if self._sets is not None:
            found = self._by_sets(part, source, calls, grouping, values)
        elif grouping:
            raise NotSplit("GROUPING without grouping sets")
        else:
            found = self._summing.grouped(part, source, self.keys, calls, values)
        names = [(each, column_of(source, f"g{place}")) for place, each in enumerate(self.keys)]
        return found, [self._over(each, names, values) for each in trees]

    def _over(self, tree: Any, keys: Sequence[tuple[Any, Any]], values: Sequence[tuple[Any, Any]]) -> Any:
        def change(node: Any) -> Any | None:
            if isinstance(node, exp.Query):
                return node
            if self._functions.is_aggregate(node) and not (isinstance(node.parent, exp.Window) and node.arg_key == "this"):
                return next((made.copy() for each, made in values if each == node), None)
            return next((made.copy() for each, made in keys if each == node), None)

        return replaced(tree, change)

    def _by_sets(
        self, part: Part, source: int, calls: Sequence[Any], grouping: Sequence[Any], values: list[tuple[Any, Any]]
    ) -> Part:
        """The union of the groups by each grouping set."""
        assert self._sets is not None
        kinds = [each.kind for each in self._summing.named_keys(part, self.keys)]
        several: list[int] = []
        names: list[Column] = []
        for chosen in self._sets:
            inner = self._planner.source_number()
            own: list[tuple[Any, Any]] = []
            found = self._summing.grouped(part, inner, [self.keys[place] for place in chosen], calls, own)
            columns = [
                Named(f"g{place}", kind, quoted(f"g{chosen.index(place)}") if place in chosen else "NULL")
                for place, kind in enumerate(kinds)
            ]
            texts = [text(value, found) for _, value in own]
            made = [f"a{place}" for place in range(len(own))]
            columns += [
                Named(name, kind, each) for name, kind, each in zip(made, self._summing.kinds(found, texts), texts, strict=True)
            ]
            for place, call in enumerate(grouping):
                columns.append(Named(f"h{place}", "BIGINT", str(self._grouping(call, chosen))))
            several.append(self._nodes.add(Rows(found.node, tuple(columns))))
            names = [Column(each.name, each.kind) for each in columns]
        values += [(call, column_of(source, f"a{place}")) for place, call in enumerate(calls)]
        values += [(call, column_of(source, f"h{place}")) for place, call in enumerate(grouping)]
        return Part(self._nodes.add(Union(tuple(several))), {(source, each.name): each.name for each in names})

    def _grouping(self, call: Any, chosen: Sequence[int]) -> int:
        arguments = call.expressions or ([call.this] if isinstance(call.this, exp.Expression) else [])
        found = 0
        for each in arguments:
            if each not in self.keys:
                raise NotSplit("GROUPING of what is no key")
            found = found * 2 + (self.keys.index(each) not in chosen)
        return found
