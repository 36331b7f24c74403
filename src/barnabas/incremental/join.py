"""Joins of two inputs.

With the rows L and R before the step and the changes l and r, the change of the inner join is lR + Lr + lr. That of a lookup is l(R + r).
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.incremental.bag import Bag
from barnabas.incremental.changes import NOTHING, WEIGHT, Change, Step, listing, merging
from barnabas.incremental.database import Database
from barnabas.incremental.plan import Column, Join, Lookup, listed


class JoinedRows:
    """The bags have the rows before the step."""

    def __init__(self, number: int, node: Join, left: Bag, right: Bag) -> None:
        self._number, self._node, self._left, self._right = number, node, left, right
        for bag, until in zip((left, right), node.until, strict=True):
            bag.lets_go(until)

    def change(self, step: Step) -> Change:
        left, right = self._changed(step, self._left), self._changed(step, self._right)
        parts = []
        if left is not None:
            parts.append(self._joined(left, self._right.weighted()))
        if right is not None:
            parts.append(self._joined(self._left.weighted(), right))
        if left is not None and right is not None:
            parts.append(self._joined(left, right))
        return step.change(f"_change_{self._number}", " UNION ALL ".join(parts)) if parts else NOTHING

    @staticmethod
    def _changed(step: Step, bag: Bag) -> str | None:
        change = step.merged(bag.node, bag.columns)
        return f"SELECT {listing(bag.columns)}, {WEIGHT} FROM {change.relation}" if change.rows else None

    def _joined(self, left: str, right: str) -> str:
        columns = f"{listed(self._node.columns)}, input_0.{WEIGHT} * input_1.{WEIGHT} AS {WEIGHT}"
        return f"SELECT {columns} FROM ({left}) AS input_0 JOIN ({right}) AS input_1 ON {self._node.on or 'true'}"

    def create(self, database: Database) -> None:
        """Its bags keep all."""

    def rehash(self, database: Database) -> None:
        """It has no hashes."""

    def keep(self, step: Step) -> None:
        """Its bags keep all."""


class LookedUpRows:
    """The rows of the left input with those of the right one after the step.

    Args:
        right: has the rows before the step.
    """

    def __init__(self, number: int, node: Lookup, left: Sequence[Column], right: Bag) -> None:
        self._number, self._node, self._left, self._right = number, node, left, right
        right.lets_go(None)

    def change(self, step: Step) -> Change:
        change, right = step.merged(self._node.left, self._left), self._right
        if change.rows == 0:
            return NOTHING
        rows, theirs = right.weighted(), step.merged(right.node, right.columns)
        if theirs.rows:
            names = f"{listing(right.columns)}, {WEIGHT}"
            rows = f"{rows} UNION ALL SELECT {names} FROM {theirs.relation}"
            rows = merging(right.columns, rows) if theirs.lowest < 0 else rows
        weight = f"input_0.{WEIGHT} * coalesce(input_1.{WEIGHT}, 1) AS {WEIGHT}"
        return step.change(f"_change_{self._number}", self._node.joined(f"SELECT * FROM {change.relation}", rows, weight))

    def create(self, database: Database) -> None:
        """The bag keeps all."""

    def rehash(self, database: Database) -> None:
        """It has no hashes."""

    def keep(self, step: Step) -> None:
        """The bag keeps all."""
