"""The columns of a result, DISTINCT and DISTINCT ON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from barnabas.incremental.plan import Column, Groups, Join, Named, Rows, Sums, quoted
from barnabas.sql.continuous.functions import multiplies
from barnabas.sql.continuous.joining import ONE, bracketed, compared, kept
from barnabas.sql.continuous.limits import key_text
from barnabas.sql.continuous.nodes import Nodes
from barnabas.sql.continuous.nulls import is_never_null
from barnabas.sql.continuous.parts import Item, Made, NotSplit, Part, column_of, free_name, narrowed, placed, text, used_by
from barnabas.sql.dialect import to_duckdb


class Projecting:
    """Makes nodes of the columns of a result."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    def projected(self, part: Part, conditions: Sequence[Any], items: Sequence[Item]) -> Made:
        """The columns of the result, in the node below where that one only passes columns on."""
        is_single = not any(multiplies(each) for _, each in items)
        extra = self._identifying(part, items) if is_single else []
        whole = [*items, *extra]
        if not whole:
            raise NotSplit("a result without columns")
        names: list[str] = []
        for name, _ in whole:
            names.append(free_name(name, names))
        columns = self._typed(part, names, [each for _, each in whole])
        node = self._folded(part, conditions, names, columns, whole) if is_single else None
        if node is None:
            where = " AND ".join(bracketed(each, part) for each in conditions) or None
            node = self._nodes.add(Rows(part.node, columns, where))
        shown = tuple((name, column) for (name, _), column in zip(items, names, strict=False))
        never = part.not_null | {part.columns[each] for each in compared(conditions) if each in part.columns}
        passed: dict[str, str] = {}
        for column, (_, each) in zip(names, whole, strict=True):
            if isinstance(each, exp.Column):
                passed.setdefault(part.columns[next(iter(used_by(each)))], column)
        not_null = frozenset(column for column, (_, each) in zip(names, whole, strict=True) if is_never_null(each, part, never))
        return Made(node, shown, narrowed(part.unique, passed) if is_single else (), not_null)

    def _identifying(self, part: Part, items: Sequence[Item]) -> list[Item]:
        """Columns that identify a row, if the shown ones do not."""
        shown = {part.columns[next(iter(used_by(each)))] for _, each in items if isinstance(each, exp.Column)}
        if not part.unique or any(columns <= shown for columns in part.unique):
            return []
        of = {name: of for of, name in part.columns.items()}
        wanted = min(part.unique, key=lambda columns: (len(columns - shown), sorted(columns)))
        missing = sorted(wanted - shown)
        if not all(name in of for name in missing):
            return []
        return [(name, column_of(*of[name])) for name in missing]

    def _typed(self, part: Part, names: Sequence[str], trees: Sequence[Any]) -> tuple[Named, ...]:
        texts = [text(each, part) for each in trees]
        query = ", ".join(f"({each}) AS {quoted(name)}" for name, each in zip(names, texts, strict=True))
        kinds = self._nodes.kinds(f"SELECT {query} FROM {ONE}", [self._nodes.columns(part.node)])
        return tuple(Named(name, kind.kind, each) for name, kind, each in zip(names, kinds, texts, strict=True))

    def _folded(
        self, part: Part, conditions: Sequence[Any], names: Sequence[str], columns: Sequence[Named], items: Sequence[Item]
    ) -> int | None:
        """The projection within the node that makes the part; None if it cannot be there."""
        below, plain = self._nodes.node(part.node), part.plain
        if plain is None:
            return None

        def sql(tree: Any) -> str:
            return to_duckdb(placed(tree, lambda of: plain[part.columns[of]]))

        made = tuple(Named(name, each.kind, sql(tree)) for name, each, (_, tree) in zip(names, columns, items, strict=True))
        more = " AND ".join(f"({sql(each)})" if isinstance(each, exp.Or) else sql(each) for each in conditions)
        match below:
            case Join():
                return self._nodes.add(Join(below.left, below.right, _both(below.on, more), made))
            case Rows(source="input_0"):
                return self._nodes.add(Rows(below.input, made, _both(below.where, more)))
            case Sums() if not conditions:
                return self._nodes.add(Sums(below.input, below.keys, below.sums, made))
        return None

    def distinct(self, part: Part, items: Sequence[Item]) -> Made:
        if any(multiplies(each) for _, each in items):
            made = self.projected(part, [], items)
            columns = self._nodes.columns(made.node)
            keys = tuple(Named(each.name, each.kind, quoted(each.name)) for each in columns)
            node = self._nodes.add(Sums(made.node, keys, (), kept(columns)))
            return Made(node, made.names, (frozenset(each.name for each in columns),), made.not_null)
        names: list[str] = []
        for name, _ in items:
            names.append(free_name(name, names))
        keys = self._typed(part, names, [each for _, each in items])
        shown = tuple((name, column) for (name, _), column in zip(items, names, strict=True))
        not_null = frozenset(
            column for column, (_, each) in zip(names, items, strict=True) if is_never_null(each, part, part.not_null)
        )
        passed = tuple(Named(each.name, each.kind, quoted(each.name)) for each in keys)
        return Made(self._nodes.add(Sums(part.node, keys, (), passed)), shown, (frozenset(names),), not_null)

    def first_of_each(self, part: Part, items: Sequence[Item], order: Any, distinct: Sequence[Any]) -> Made:
        """DISTINCT ON: by its expressions."""
        names: list[str] = []
        for name, _ in items:
            names.append(free_name(name, names))
        columns = self._typed(part, names, [each for _, each in items])
        keys = tuple(text(each, part) for each in distinct)
        sort = [key_text(one, f"({text(each, part)})") for one, each in order]
        sort += [f"({each.sql})" for each in columns] + [f"{ONE}.{quoted(each.name)}" for each in self._nodes.columns(part.node)]
        shown = ", ".join(f"({each.sql}) AS {quoted(each.name)}" for each in columns)
        query = f"SELECT DISTINCT ON ({', '.join(keys)}) {shown} FROM {ONE} ORDER BY {', '.join(sort)}"
        node = self._nodes.add(Groups((part.node,), (keys,), query, tuple(Column(each.name, each.kind) for each in columns)))
        passed = {
            part.columns[next(iter(used_by(each)))]: column
            for column, (_, each) in zip(names, items, strict=True)
            if isinstance(each, exp.Column)
        }
        unique = list(narrowed(part.unique, passed))
        own = [next((name for name, (_, item) in zip(names, items, strict=True) if item == each), None) for each in distinct]
        if all(own):
            unique.append(frozenset(name for name in own if name))
        not_null = frozenset(
            column for column, (_, each) in zip(names, items, strict=True) if is_never_null(each, part, part.not_null)
        )
        made = Made(node, tuple((name, column) for (name, _), column in zip(items, names, strict=True)), tuple(unique), not_null)
        return made


def _both(one: str | None, more: str) -> str | None:
    if not more:
        return one
    return more if not one else f"{one} AND {more}"
