"""Prepared statements and portals of one connection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from barnabas.sql.interface import Prepared, Result
from barnabas.sql.postgres.binary_copy import BinaryCopy
from barnabas.sql.postgres.cursors import Action

MAX_ROWS = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Statement:
    """A checked statement.

    Args:
        text: as the client sent it.
        prepared: by the session; None for one that the protocol serves itself, apart from DECLARE.
        oids: types of its parameters.
        given: the types that the client declared.
        binary_copy: for a COPY in the binary format, of which `prepared` is another form.
    """

    text: str
    prepared: Prepared | None
    oids: Sequence[int] = ()
    action: Action | None = None
    binary_copy: BinaryCopy | None = None
    given: Sequence[pa.DataType | None] = ()


@dataclass(slots=True)
class Portal:
    """A statement with values, and its rows as far as the client has not taken them."""

    statement: Statement
    values: Sequence[Any] = ()
    formats: Sequence[int] = ()
    holds: bool = False
    described: Sequence[int] | None = None  # the types that the client was told
    rows: Rows | None = None
    finished: str | None = None  # the tag, once it ended

    def close(self) -> None:
        """Release its result."""
        if self.rows is not None:
            self.rows.close()


@dataclass(slots=True)
class Rows:
    """The rows of a result, taken in portions."""

    result: Result
    schema: pa.Schema
    taken: int = 0  # by the current portion
    ended: bool = False
    _batches: Iterator[pa.RecordBatch] | None = None
    _rest: pa.RecordBatch | None = field(default=None)

    @property
    def is_live(self) -> bool:
        """Whether the rows come as time goes on: each is sent at once, and a batch without rows means that there are none now."""
        return bool(getattr(self.result, "is_live", False))

    def take(self, most: int | None, *, until_idle: bool = False) -> Iterator[pa.RecordBatch]:
        """Up to so many rows, None for all. Raises SqlError.

        Args:
            until_idle: of live rows only those that are there.
        """
        self.taken, left = 0, MAX_ROWS if most is None else most
        while left > 0 and not self.ended:
            batch = self._next()
            if batch is None:
                self.ended = True
                self.close()
                return
            piece = batch.slice(0, left)
            self._rest = batch.slice(left) if batch.num_rows > left else None
            left -= piece.num_rows
            self.taken += piece.num_rows
            yield piece
            if until_idle and self.is_live and not piece.num_rows:
                return

    def _next(self) -> pa.RecordBatch | None:
        if self._rest is not None:
            return self._rest
        if self._batches is None:
            self._batches = self.result.batches()
        return next(self._batches, None)

    def close(self) -> None:
        """Release the result."""
        self._rest, self.ended = None, True
        self.result.close()
