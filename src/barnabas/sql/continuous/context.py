"""The whole planner, as its parts know it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from barnabas.sql.continuous.functions import Functions
from barnabas.sql.continuous.nodes import Nodes
from barnabas.sql.continuous.parts import Made

Common = Mapping[str, Callable[[], Made]]  # common table expressions by their names in lower case


class Context(Protocol):
    """The planner of one query."""

    nodes: Nodes
    functions: Functions
    notices: list[str]

    def source_number(self) -> int:
        """The number of a further source."""

    def note(self, text: str) -> None:
        """Say something once."""

    def table(self, table: Any, common: Common) -> Made:
        """The relation of a name. Raises NotSplit."""

    def query(self, tree: Any, common: Common) -> Made:
        """A query that reads nothing of what is around it. Raises NotSplit if it does, and duckdb.Error."""
