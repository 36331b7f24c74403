"""Names of columns become columns of sources, as DuckDB looks them up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from sqlglot import exp

from barnabas.sql.continuous.parts import NotSplit, column_of, outer_nodes


class Source(Struct, frozen=True):
    """A name in a FROM.

    Args:
        names: what the query sees, with the columns of the node.
    """

    number: int
    alias: str
    names: tuple[tuple[str, str], ...]

    def column(self, name: str) -> str | None:
        """The node's column of a name, whatever its case."""
        return next((column for shown, column in self.names if shown.lower() == name.lower()), None)


class Scope:
    """The names of a block.

    Args:
        outer: the block around it.
    """

    def __init__(self, outer: Scope | None = None) -> None:
        self.outer = outer
        self.sources: list[Source] = []
        self.merged: dict[str, Any] = {}  # columns of USING: what their plain name means
        self.hidden: set[tuple[int, str]] = set()  # columns of USING that `*` does not show again
        self.uses_outer = False

    def add(self, source: Source) -> None:
        """Raises NotSplit if the alias is there."""
        if any(each.alias.lower() == source.alias.lower() for each in self.sources):
            raise NotSplit("two tables with one name")
        self.sources.append(source)

    def resolved(self, tree: Any, aliases: Mapping[str, Any] | None = None) -> Any:
        """An expression over columns of sources; subqueries stay as they are.

        Args:
            aliases: what names mean that no table has.
        """
        holder = exp.Tuple(expressions=[tree.copy()])
        for node in list(outer_nodes(holder)):
            if isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count):
                raise NotSplit("a star within an expression")
            if isinstance(node, exp.Column) and not _is_name(node):
                node.replace(self._meaning(node, aliases or {}))
        return holder.expressions[0]

    def _meaning(self, node: Any, aliases: Mapping[str, Any]) -> Any:
        parts = [each.name for each in node.parts]
        found = self.find(parts)
        if found is None and len(parts) == 1 and parts[0].lower() in aliases:
            return _bracketed(aliases[parts[0].lower()])
        outer = self.outer
        while found is None and outer is not None:
            found = outer.find(parts)
            outer = outer.outer
            self.uses_outer = self.uses_outer or found is not None
        if found is None:
            raise NotSplit(f"the name {'.'.join(parts)}")
        return found

    def find(self, parts: list[str]) -> Any | None:
        """A column, or a field of one. Raises NotSplit for a name that two tables have."""
        first = parts[0].lower()
        if len(parts) > 1:
            for each in self.sources:
                column = each.column(parts[1]) if each.alias.lower() == first else None
                if column is not None:
                    return _fields(column_of(each.number, column), parts[2:])
        elif first in self.merged:
            return self.merged[first].copy()
        found = [(each.number, column) for each in self.sources if (column := each.column(parts[0])) is not None]
        if len(found) > 1:
            raise NotSplit(f"the name {parts[0]} of two tables")
        if not found:
            return None
        return _fields(column_of(*found[0]), parts[1:])

    def star(self, item: Any) -> list[tuple[str, Any]]:
        """The columns that `*` or `t.*` shows, with their names."""
        star = item.this if isinstance(item, exp.Column) else item
        if star.args.get("replace") or star.args.get("rename"):
            raise NotSplit("a star with REPLACE or RENAME")
        left_out = list(star.args.get("except_") or [])
        found = []
        for source in self.sources:
            if isinstance(item, exp.Column) and source.alias.lower() != item.table.lower():
                continue
            for name, column in source.names:
                is_hidden = not isinstance(item, exp.Column) and (source.number, column) in self.hidden
                if is_hidden or any(_excludes(each, source.alias, name) for each in left_out):
                    continue
                is_merged = not isinstance(item, exp.Column) and name.lower() in self.merged
                found.append((name, self.merged[name.lower()].copy() if is_merged else column_of(source.number, column)))
        if not found:
            raise NotSplit("a star of no table")
        return found


def _is_name(node: Any) -> bool:
    """Whether what looks like a column is the parameter of a lambda, or the name of a field."""
    if isinstance(node.parent, (exp.PropertyEQ, exp.Kwarg)) and node.arg_key == "this":
        return True
    if isinstance(node.this, exp.Star):
        return False
    first = node.parts[0].name.lower()
    inner = node.find_ancestor(exp.Lambda)
    while inner is not None:
        if any(each.name.lower() == first for each in inner.expressions):
            return True
        inner = inner.find_ancestor(exp.Lambda)
    return False


def _bracketed(tree: Any) -> Any:
    simple = isinstance(tree, (exp.Column, exp.Literal, exp.Func, exp.Anonymous, exp.Paren))
    return tree.copy() if simple else exp.Paren(this=tree.copy())


def _fields(column: Any, names: list[str]) -> Any:
    for name in names:
        column = exp.Anonymous(this="struct_extract", expressions=[column, exp.Literal.string(name)])
    return column


def _excludes(each: Any, alias: str, name: str) -> bool:
    table = each.table if isinstance(each, exp.Column) else ""
    return each.name.lower() == name.lower() and (not table or table.lower() == alias.lower())
