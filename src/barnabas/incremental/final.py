"""Rows that are given when they cannot change any more: until then they wait in the state."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.incremental.bag import Bag
from barnabas.incremental.changes import NOTHING, Change, Step, merging
from barnabas.incremental.database import Database
from barnabas.incremental.marks import MARKS, below, has_moved
from barnabas.incremental.plan import Column, Final


class FinalRows:
    """Gives each row once, in the step whose watermarks pass it.

    Args:
        columns: of the input.
    """

    def __init__(self, number: int, node: Final, columns: Sequence[Column]) -> None:
        self._number, self._node, self._columns = number, node, columns
        self._waiting = Bag(node.input, columns, f"state.waiting_{number}")

    def create(self, database: Database) -> None:
        self._waiting.create(database)

    def rehash(self, database: Database) -> None:
        """Compute all hashes anew."""
        self._waiting.rehash(database)

    def change(self, step: Step) -> Change:
        change = step.merged(self._node.input, self._columns)
        until = self._node.until
        sources = [self._waiting.table] if has_moved(step, until) else []
        sources += [change.relation] if change.rows else []
        if not sources:
            return NOTHING
        rows = " UNION ALL ".join(below(self._columns, each, until) for each in sources)
        return step.change(f"_change_{self._number}", merging(self._columns, rows))

    def keep(self, step: Step) -> None:
        self._waiting.keep(step)
        if step.changes[self._number].rows:
            table = self._waiting.table
            going = f"SELECT input_0.rowid FROM {table} AS input_0, {MARKS} WHERE {self._node.until.condition}"
            step.database.run(f"DELETE FROM {table} WHERE rowid IN ({going})")
