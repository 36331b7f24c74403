"""The interface between the registry and the store, which keeps its records in order.

Several registries may share one store. One of them writes at a time: before `become_writer` returns, it fences all others and
reads all their records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from barnabas.registry.core.records import Record

Replay = Callable[[bytes, bytes | None, int], None]  # arguments: key, value, timestamp in ms


class StoreFailed(Exception):
    """A write may or may not have happened, or the store cannot be used. The registry must become the writer again before the
    next write."""


class Fenced(StoreFailed):
    """Another registry has become the writer; nothing was written."""


class ReadOnly(StoreFailed):
    """The records are a copy of those of another registry; nothing was written. The text names the reason."""


class TooLarge(Exception):
    """The records are too large for the store; nothing was written."""


class Store(Protocol):
    """Records in an order that is the same for all readers."""

    async def start(self, replay: Replay) -> None:
        """Replay all records that exist, then new ones until `close`. Raises StoreFailed with a text of one line."""

    async def become_writer(self) -> None:
        """Fence other writers and read their records. Raises ReadOnly or StoreFailed."""

    async def append(self, records: Sequence[Record]) -> None:
        """Write records, all or none, and replay them. Raises Fenced, TooLarge or StoreFailed."""

    async def close(self) -> None:
        """Stop reading; safe to call twice."""

    def is_following(self) -> bool:
        """Whether records of other writers still arrive."""
