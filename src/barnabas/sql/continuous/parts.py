"""Relations while a plan is made.

Rules
  1. Each name in a FROM is a source with a number. After names are resolved, a column of source 3 is `#3.column` in a tree.
  2. A part is one node that has the columns of some sources. `unique` are sets of its columns that identify a row; what a plan says about
     keys and nulls follows from the declarations of tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from sqlglot import exp

from barnabas.incremental.plan import Column
from barnabas.sql.dialect import to_duckdb

Of = tuple[int, str]  # a source and its column
Uniques = tuple[frozenset[str], ...]
Item = tuple[str, Any]  # a column of a result: its name and its expression


class NotSplit(Exception):
    """A block of a query is not one of those that have nodes of their own; the text says what it has."""


class Made(Struct, frozen=True):
    """A relation.

    Args:
        names: what a query sees, with the columns of the node. The node may have more columns.
    """

    node: int
    names: tuple[tuple[str, str], ...]
    unique: Uniques = ()
    not_null: frozenset[str] = frozenset()


class Part(Struct, frozen=True):
    """Sources that are joined.

    Args:
        columns: of the node, by their sources.
        plain: where each column of the node comes from (an alias of an input, a column), if the node only passes columns on.
    """

    node: int
    columns: Mapping[Of, str]
    unique: Uniques = ()
    not_null: frozenset[str] = frozenset()
    plain: Mapping[str, tuple[str | None, str]] | None = None

    @property
    def sources(self) -> frozenset[int]:
        return frozenset(number for number, _ in self.columns)

    def renamed(self, **changes: Any) -> Part:
        """The part with other fields."""
        return replace(self, **changes)


def column_of(source: int, name: str) -> exp.Column:
    """A resolved column."""
    return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(f"#{source}"))


def source_of(column: Any) -> int | None:
    """The source of a resolved column."""
    table = column.table
    return int(table[1:]) if table.startswith("#") else None


def outer_nodes(tree: Any) -> Iterator[Any]:
    """The nodes of an expression, without what is within its subqueries."""
    if tree is not None:
        yield from tree.walk(prune=lambda node: isinstance(node, exp.Query) and node is not tree)


def used_by(*trees: Any) -> set[Of]:
    """The resolved columns in expressions."""
    found = set[Of]()
    for tree in trees:
        for node in tree.find_all(exp.Column):
            source = source_of(node)
            if source is not None:
                found.add((source, node.name))
    return found


def sources_in(tree: Any) -> frozenset[int]:
    """The sources of an expression's columns."""
    return frozenset(source for source, _ in used_by(tree))


def has_query(tree: Any) -> bool:
    """Whether an expression has a subquery."""
    return tree.find(exp.Query) is not None


def conjuncts(tree: Any) -> list[Any]:
    """The conditions that must all be true."""
    match tree:
        case None:
            return []
        case exp.And():
            return [*conjuncts(tree.this), *conjuncts(tree.expression)]
        case exp.Paren():
            return conjuncts(tree.this)
        case exp.Or():
            return _factored(tree)
    return [tree]


def _factored(tree: Any) -> list[Any]:
    """The conditions that all alternatives have, and the alternatives without them: `(a AND b) OR (a AND c)` is `a AND (b OR c)`."""
    alternatives = [conjuncts(each) for each in _disjuncts(tree)]
    common = [each for each in alternatives[0] if all(each in others for others in alternatives[1:])]
    if not common:
        return [tree]
    rest = [[each for each in several if each not in common] for several in alternatives]
    if not all(rest):
        return common
    return [*common, exp.or_(*(exp.and_(*(each.copy() for each in several)) for several in rest))]


def _disjuncts(tree: Any) -> list[Any]:
    match tree:
        case exp.Or():
            return [*_disjuncts(tree.this), *_disjuncts(tree.expression)]
        case exp.Paren():
            return _disjuncts(tree.this)
    return [tree]


def replaced(tree: Any, change: Callable[[Any], Any | None]) -> Any:
    """A copy of an expression with other nodes for some; what `change` gives is not looked into."""
    holder = exp.Tuple(expressions=[tree.copy()])
    _replace_within(holder, change)
    return holder.expressions[0]


def _replace_within(node: Any, change: Callable[[Any], Any | None]) -> None:
    for child in list(node.iter_expressions()):
        made = change(child)
        if made is None:
            _replace_within(child, change)
        elif made is not child:
            child.replace(made)


def text(tree: Any, *parts: Part) -> str:
    """DuckDB's text of an expression over nodes: the first part is `input_0`, and so on."""
    return to_duckdb(
        placed(tree, lambda of: next((f"input_{at}", each.columns[of]) for at, each in enumerate(parts) if of in each.columns))
    )


def placed(tree: Any, where: Callable[[Of], tuple[str | None, str]]) -> Any:
    """An expression over the columns of nodes."""

    def change(node: Any) -> Any | None:
        source = source_of(node) if isinstance(node, exp.Column) else None
        if source is None:
            return None
        try:
            alias, name = where((source, node.name))
        except (StopIteration, KeyError):
            raise NotSplit("a column that is not there") from None
        return exp.column(exp.to_identifier(name, quoted=True), table=alias)

    return replaced(tree, change)


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """A name that no other column has; case does not count."""
    lower = {each.lower() for each in taken}
    found, number = wanted or "column", 1
    while found.lower() in lower:
        number += 1
        found = f"{wanted}_{number}"
    return found


def narrowed(unique: Iterable[frozenset[str]], names: Mapping[str, str]) -> Uniques:
    """Unique sets by other names; those with a column that has none are left out."""
    return minimal(frozenset(names[each] for each in columns) for columns in unique if all(each in names for each in columns))


def minimal(unique: Iterable[frozenset[str]]) -> Uniques:
    """Without sets that contain others."""
    found = sorted(set(unique), key=lambda each: (len(each), sorted(each)))
    return tuple(each for place, each in enumerate(found) if not any(smaller <= each for smaller in found[:place]))[:4]


def kinds_of(columns: Sequence[Column]) -> dict[str, str]:
    """Types by names."""
    return {each.name: each.kind for each in columns}
