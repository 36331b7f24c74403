"""Helpers for tests of flows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from barnabas.incremental.flow import DuckFlow, open_flow
from barnabas.incremental.interface import DELETED, ROW, Flow
from barnabas.incremental.plan import Plan

MEMORY = 256 << 20


def opened(plan: Plan, path: Path | None = None) -> DuckFlow:
    return open_flow(plan, path, MEMORY, 2)


def lines(rows: pa.Table) -> Counter[str]:
    """The rows as a multiset."""
    return Counter(map(repr, rows.to_pylist()))


class Follower:
    """A reader that knows the changes alone."""

    def __init__(self, plan: Plan) -> None:
        self._key = plan.key or (ROW,)
        self.rows: dict[tuple[Any, ...], dict[str, Any]] = {}

    def take(self, changes: pa.Table) -> None:
        seen = set()
        for row in changes.to_pylist():
            is_deleted = row.pop(DELETED)
            key = tuple(repr(value) if isinstance(value := row[name], (dict, list)) else value for name in self._key)
            assert key not in seen, f"{key} comes twice"
            seen.add(key)
            if is_deleted:
                del self.rows[key]
                assert all(value is None for name, value in row.items() if name not in self._key)
            else:
                self.rows[key] = row

    @property
    def lines(self) -> Counter[str]:
        return Counter(repr({name: value for name, value in row.items() if name != ROW}) for row in self.rows.values())


def stepped(flow: Flow, inputs: Mapping[str, pa.Table]) -> pa.Table:
    """A step, kept."""
    changes = flow.step(flow.position + 1, inputs)
    flow.commit()
    return changes
