"""Functions of sequences in DuckDB: they ask the session that has the instance. DuckDB reads the annotations of the functions.

An error of such a function becomes text in DuckDB; the session takes note of it before.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Protocol

import pyarrow as pa

NEXT, CURRENT, LAST, SET = "__nextval", "__currval", "__lastval", "__setval"


class Numbers(Protocol):
    """The sequences of a session. All methods raise SqlError."""

    def take(self, name: str, count: int) -> list[int]:
        """The next numbers of a sequence."""

    def current(self, name: str) -> int:
        """The last number that the session had of a sequence."""

    def last(self) -> int:
        """The last number that the session had."""

    def set(self, name: str, value: int, *, is_called: bool) -> int:
        """Set a sequence; returns the value."""


class Calls:
    """The functions of one instance. `numbers` is that of the session that has it."""

    def __init__(self) -> None:
        self.numbers: Numbers | None = None

    def register(self, instance: Any) -> None:
        """Make the functions known. A null has no answer but null."""
        options = {"type": "arrow", "side_effects": True, "null_handling": "special"}
        instance.create_function(NEXT, self._next, ["VARCHAR"], "BIGINT", **options)
        instance.create_function(CURRENT, self._current, ["VARCHAR"], "BIGINT", **options)
        instance.create_function(LAST, self._last, ["BOOLEAN"], "BIGINT", **options)
        instance.create_function(SET, self._set, ["VARCHAR", "BIGINT", "BOOLEAN"], "BIGINT", **options)

    @property
    def _asked(self) -> Numbers:
        assert self.numbers is not None
        return self.numbers

    def _next(self, names: Any) -> Any:
        found: list[int | None] = []
        for name, same in itertools.groupby(names.to_pylist()):
            count = sum(1 for _ in same)
            found += [None] * count if name is None else self._asked.take(name, count)
        return pa.array(found, pa.int64())

    def _current(self, names: Any) -> Any:
        return pa.array([None if name is None else self._asked.current(name) for name in names.to_pylist()], pa.int64())

    def _last(self, rows: Any) -> Any:
        return pa.array([self._asked.last() for _ in rows], pa.int64())

    def _set(self, names: Any, values: Any, called: Any) -> Any:
        return pa.array(list(self._set_each(names, values, called)), pa.int64())

    def _set_each(self, names: Any, values: Any, called: Any) -> Iterator[int | None]:
        for name, value, is_called in zip(names.to_pylist(), values.to_pylist(), called.to_pylist(), strict=True):
            known = None not in (name, value, is_called)
            yield self._asked.set(name, value, is_called=is_called) if known else None
