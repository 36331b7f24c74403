"""UNION, EXCEPT and INTERSECT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from barnabas.incremental.plan import Column, Groups, Named, Rows, Sums, Union, quoted
from barnabas.sql.continuous.context import Common, Context
from barnabas.sql.continuous.joining import ONE, kept
from barnabas.sql.continuous.limits import Ordering
from barnabas.sql.continuous.parts import Made, NotSplit, free_name

WORDS = {exp.Union: "UNION", exp.Except: "EXCEPT", exp.Intersect: "INTERSECT"}


class Combining:
    """A set operation."""

    def __init__(self, planner: Context, tree: Any, common: Common) -> None:
        self._planner, self._tree, self._common = planner, tree, common
        self._nodes = planner.nodes

    def made(self) -> Made:
        tree = self._tree
        if tree.args.get("by_name") or tree.args.get("side") or tree.args.get("on") or type(tree) not in WORDS:
            raise NotSplit("a set operation of another kind")
        several = [self._planner.query(each, self._common) for each in (tree.this, tree.expression)]
        if len({len(each.names) for each in several}) > 1:
            raise NotSplit("queries with different numbers of columns")
        found = self._common_columns(several)
        sides = [self._cast(each, found) for each in several]
        names = [each.name for each in found]
        never = frozenset.intersection(*(self._never(each, names) for each in several))
        if isinstance(tree, exp.Union):
            node, unique = self._union(sides, found)
        else:
            node, unique = self._other(sides, found)
            never = self._never(several[0], names)
        shown = tuple((shown, name) for (shown, _), name in zip(several[0].names, names, strict=True))
        made = Made(node, shown, unique, never)
        return Ordering(self._planner, tree).of_relation(made)

    def _common_columns(self, several: Sequence[Made]) -> list[Column]:
        parts = [
            f"SELECT {', '.join(quoted(column) for _, column in each.names)} FROM input_{place}"
            for place, each in enumerate(several)
        ]
        kinds = self._nodes.kinds(" UNION ALL ".join(parts), [self._nodes.columns(each.node) for each in several])
        names: list[str] = []
        for shown, _ in several[0].names:
            names.append(free_name(shown, names))
        return [Column(name, each.kind) for name, each in zip(names, kinds, strict=True)]

    def _cast(self, made: Made, wanted: Sequence[Column]) -> int:
        own = self._nodes.columns(made.node)
        if list(own) == list(wanted) and [column for _, column in made.names] == [each.name for each in own]:
            return made.node
        columns = tuple(
            Named(each.name, each.kind, f"{ONE}.{quoted(column)}") for each, (_, column) in zip(wanted, made.names, strict=True)
        )
        return self._nodes.add(Rows(made.node, columns))

    @staticmethod
    def _never(made: Made, names: Sequence[str]) -> frozenset[str]:
        return frozenset(name for name, (_, column) in zip(names, made.names, strict=True) if column in made.not_null)

    def _union(self, sides: Sequence[int], columns: Sequence[Column]) -> tuple[int, tuple[frozenset[str], ...]]:
        node = self._nodes.add(Union(tuple(sides)))
        if not self._tree.args.get("distinct"):
            return node, ()
        keys = tuple(Named(each.name, each.kind, quoted(each.name)) for each in columns)
        return self._nodes.add(Sums(node, keys, (), kept(columns))), (frozenset(each.name for each in columns),)

    def _other(self, sides: Sequence[int], columns: Sequence[Column]) -> tuple[int, tuple[frozenset[str], ...]]:
        """By all columns, because equal rows are compared with equal rows alone."""
        is_distinct = bool(self._tree.args.get("distinct"))
        word = f"{WORDS[type(self._tree)]}{'' if is_distinct else ' ALL'}"
        keys = tuple(quoted(each.name) for each in columns)
        query = f"SELECT {', '.join(keys)} FROM input_0 {word} SELECT {', '.join(keys)} FROM input_1"
        node = self._nodes.add(Groups(tuple(sides), (keys, keys), query, tuple(columns)))
        return node, (frozenset(each.name for each in columns),) if is_distinct else ()
