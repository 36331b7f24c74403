"""The seam between the registry and what keeps its records in order.

Several registries may share one store. One of them writes at a time: `become_writer` shuts out all others before it returns, and reads
all that they wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from barnabas.registry.core.records import Record

Replay = Callable[[bytes, bytes | None, int], None]  # arguments: key, value, timestamp in ms


class StoreFailed(Exception):
    """A write may or may not have happened, or the store cannot be used. Its writer must become the writer again before it goes on."""


class Fenced(StoreFailed):
    """Another registry has become the writer; nothing was written."""


class TooLarge(Exception):
    """The records are larger than the store takes; nothing was written."""


class Store(Protocol):
    """Records in an order that all readers see alike."""

    async def start(self, replay: Replay) -> None:
        """Replay all records that exist, then those that come, until `close`. Raises StoreFailed with one line."""

    async def become_writer(self) -> None:
        """Shut out other writers and read what they wrote. Raises StoreFailed."""

    async def append(self, records: Sequence[Record]) -> None:
        """Write records, all or none, and replay them. Raises Fenced, TooLarge or StoreFailed."""

    async def close(self) -> None:
        """Stop reading; safe to call twice."""

    def is_following(self) -> bool:
        """Whether records that others write still arrive."""
