"""The inner join of two inputs: with the rows L and R before the step and the changes l and r, its change is lR + Lr + lr."""

from __future__ import annotations

from barnabas.incremental.bag import Bag
from barnabas.incremental.changes import NOTHING, WEIGHT, Change, Step, listing
from barnabas.incremental.database import Database
from barnabas.incremental.plan import Join, listed


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
