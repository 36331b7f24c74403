"""The seam between what keeps a result and what feeds it: a job of the engine takes any `Flow`.

Rules
  1. The steps are numbered and follow one another. `step` begins a transaction on the state, `commit` ends it; a process that dies in
     between has the state of the step before, and is given the same step again.
  2. An input is the rows of a table since the last step, in the order of their offsets: the columns of its node, for a keyed table also
     `_key` (binary, never null) and `_deleted` (bool). A table without an entry has no rows.
  3. A change is a row of the result with its key, or a key that is gone (`_deleted` is true, and all columns but the key are null). A key
     comes at most once in a step.
  4. A step may have a note of the caller, such as the offsets behind its rows. It is kept and undone with the step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import pyarrow as pa
from msgspec import Struct

from barnabas.errors import BarnabasError
from barnabas.incremental.plan import Plan

ROW, DELETED, KEY = "_row", "_deleted", "_key"


class FlowError(BarnabasError):
    """A step failed: an expression failed for a row, or the state does not fit the plan. Nothing of the step remains."""


class Size(Struct, frozen=True):
    """The state of a flow.

    Args:
        rows: that it keeps, of all nodes.
        size: bytes, in memory and on disk.
    """

    rows: int
    size: int


class Flow(Protocol):
    """Keeps the result of one plan."""

    @property
    def plan(self) -> Plan: ...

    @property
    def position(self) -> int:
        """The number of the last step that was committed; -1 before the first."""

    @property
    def note(self) -> str:
        """The note of the last step that was committed; empty if it has none."""

    def step(self, number: int, inputs: Mapping[str, pa.Table], note: str = "") -> pa.Table:
        """The changes of the result: its columns, `_row` (text) if the plan has no key, and `_deleted`.

        Raises:
            FlowError: with the reason in one line; the step is undone.
        """

    def commit(self) -> None:
        """Keep the last step."""

    def rollback(self) -> None:
        """Undo the last step; safe if there is none."""

    def result(self) -> pa.Table:
        """All rows of the result, without those of an open step."""

    def snapshot(self) -> pa.Table:
        """The same rows as changes that make them of nothing: with `_row` if the plan has no key, and `_deleted`."""

    def release(self) -> None:
        """The caller has the rows of the result, and asks for changes alone from now on: `result` and `snapshot` may leave out rows that
        cannot change any more."""

    def late(self) -> int:
        """How many rows came behind a watermark and were dropped, those of an open step too."""

    def size(self) -> Size: ...

    def close(self) -> None:
        """Release the state; what was committed stays on disk."""
