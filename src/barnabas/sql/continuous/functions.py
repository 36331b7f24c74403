"""Facts about functions: which are aggregates, and which make several rows of one."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, ClassVar

from sqlglot import exp

from barnabas.incremental.macros import MACROS
from barnabas.sql.continuous.parts import outer_nodes
from barnabas.sql.dialect import to_duckdb

_WORD = re.compile(r"\w+")
_WRAPPERS = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
_OF_LISTS = ("json_group_array", "json_group_object", "json_group_structure")  # macros around aggregates


class Functions:
    """Asks DuckDB for its aggregates, once in a process: they are the same for all connections, and the question takes 20 ms.

    Args:
        cursor: of a DuckDB.
    """

    _known: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, cursor: Any) -> None:
        if not Functions._known:
            found = cursor.execute(
                "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type = 'aggregate'"
            ).fetchall()
            Functions._known = frozenset(name for (name,) in found) | frozenset(_OF_LISTS)
        self._aggregates = Functions._known

    def is_aggregate(self, node: Any) -> bool:
        """Whether a node is the call of an aggregate, with its FILTER and the like; not one that is a window."""
        while isinstance(node, _WRAPPERS):
            node = node.this
        if not isinstance(node, exp.Func):
            return False
        return isinstance(node, exp.AggFunc) or name_of(node) in self._aggregates

    def aggregates(self, tree: Any) -> list[Any]:
        """The outermost aggregates of an expression."""
        found: list[Any] = []
        self._collect(tree, found)
        return found

    def _collect(self, node: Any, found: list[Any]) -> None:
        if isinstance(node, exp.Query):
            return
        if isinstance(node, exp.Window):
            call = node.this
            while isinstance(call, _WRAPPERS):
                call = call.this
            children = [*call.iter_expressions(), *(each for each in node.iter_expressions() if each is not node.this)]
        elif self.is_aggregate(node):
            found.append(node)
            return
        else:
            children = list(node.iter_expressions())
        for each in children:
            self._collect(each, found)

    @staticmethod
    def has_window(tree: Any) -> bool:
        """Whether an expression has a window function."""
        return any(isinstance(each, exp.Window) for each in outer_nodes(tree))


def name_of(node: Any) -> str:
    """The name of a call in DuckDB."""
    found = _WORD.match(str(node.this) if isinstance(node, exp.Anonymous) else to_duckdb(node))
    return found[0].lower() if found else ""


@cache
def _unnesting() -> frozenset[str]:
    return frozenset(re.findall(r"MACRO (\w+)\([^)]*\) AS unnest", MACROS)) | {"unnest"}


def multiplies(tree: Any) -> bool:
    """Whether an expression of a SELECT makes several rows of one."""
    for each in outer_nodes(tree):
        if isinstance(each, (exp.Unnest, exp.Explode, exp.Posexplode, exp.ExplodingGenerateSeries)):
            return True
        if isinstance(each, exp.Anonymous) and str(each.this).lower() in _unnesting():
            return True
    return False
