"""Nodes that keep nothing: rows made of rows, and unions."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.incremental.changes import NOTHING, WEIGHT, Change, Step, listing
from barnabas.incremental.database import Database
from barnabas.incremental.plan import Column, Less, Rows, Union, listed, quoted


class MadeRows:
    """Each row of the change makes rows by itself, with its weight."""

    def __init__(self, number: int, node: Rows) -> None:
        self._number, self._node = number, node

    def change(self, step: Step) -> Change:
        change = step.changes[self._node.input]
        if change.rows == 0:
            return NOTHING
        where = f" WHERE {self._node.where}" if self._node.where else ""
        columns = f"{listed(self._node.columns)}, {WEIGHT}"
        text = f"WITH input_0 AS (SELECT * FROM {change.relation}) SELECT {columns} FROM {self._node.source}{where}"
        return step.change(f"_change_{self._number}", text, (change.lowest, change.highest))

    def create(self, database: Database) -> None:
        """It keeps nothing."""

    def rehash(self, database: Database) -> None:
        """It has no hashes."""

    def keep(self, step: Step) -> None:
        """It keeps nothing."""


class AllRows:
    """The changes of all inputs, with the names of the first.

    Args:
        columns: of each input.
    """

    def __init__(self, number: int, node: Union, columns: Sequence[Sequence[Column]]) -> None:
        self._number, self._node, self._columns = number, node, columns

    def change(self, step: Step) -> Change:
        parts, bounds = [], (1, 1)
        for columns, each in zip(self._columns, self._node.inputs, strict=True):
            change = step.changes[each]
            if change.rows:
                parts.append(f"SELECT {self._renamed(columns)}, {WEIGHT} FROM {change.relation}")
                bounds = min(bounds[0], change.lowest), max(bounds[1], change.highest)
        return step.change(f"_change_{self._number}", " UNION ALL ".join(parts), bounds) if parts else NOTHING

    def _renamed(self, columns: Sequence[Column]) -> str:
        pairs = zip(columns, self._columns[0], strict=True)
        return ", ".join(f"{quoted(own.name)}::{first.kind} AS {quoted(first.name)}" for own, first in pairs)

    def create(self, database: Database) -> None:
        """It keeps nothing."""

    def rehash(self, database: Database) -> None:
        """It has no hashes."""

    def keep(self, step: Step) -> None:
        """It keeps nothing."""


class FewerRows:
    """The change of one input, less the change of the other.

    Args:
        columns: of both.
    """

    def __init__(self, number: int, node: Less, columns: Sequence[Column]) -> None:
        self._number, self._node, self._columns = number, node, columns

    def change(self, step: Step) -> Change:
        parts = []
        for each, weight in ((self._node.input, WEIGHT), (self._node.less, f"-{WEIGHT} AS {WEIGHT}")):
            change = step.changes[each]
            if change.rows:
                parts.append(f"SELECT {listing(self._columns)}, {weight} FROM {change.relation}")
        return step.change(f"_change_{self._number}", " UNION ALL ".join(parts)) if parts else NOTHING

    def create(self, database: Database) -> None:
        """It keeps nothing."""

    def rehash(self, database: Database) -> None:
        """It has no hashes."""

    def keep(self, step: Step) -> None:
        """It keeps nothing."""
