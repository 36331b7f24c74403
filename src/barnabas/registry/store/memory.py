"""A store in memory, for tests: several stores may share one log."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.registry.core import records
from barnabas.registry.core.records import Record
from barnabas.registry.store.interface import Fenced, Replay, StoreFailed


class MemoryLog:
    """The records, and the number of the writer."""

    def __init__(self) -> None:
        self.records: list[tuple[bytes, bytes | None, int]] = []
        self.writer = 0
        self.readers: list[Replay] = []

    def append(self, pairs: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Append records, and replay them in every reader."""
        for key, value in pairs:
            record = key, value, len(self.records) + 1
            self.records.append(record)
            for replay in self.readers:
                replay(*record)


class MemoryStore:
    """A view of a log. `fails` makes the next write fail: before (False) or after (True) the append."""

    def __init__(self, log: MemoryLog | None = None) -> None:
        self.log = log or MemoryLog()
        self.fails: bool | None = None
        self._number = -1
        self._replay: Replay | None = None

    async def start(self, replay: Replay) -> None:
        for record in self.log.records:
            replay(*record)
        self._replay = replay
        self.log.readers.append(replay)

    async def become_writer(self) -> None:
        self.log.writer += 1
        self._number = self.log.writer
        await self.append([records.noop_record()])

    async def append(self, records_: Sequence[Record]) -> None:
        if self._number != self.log.writer:
            raise Fenced("another registry writes")
        pairs = [records.encode(each) for each in records_]
        fails, self.fails = self.fails, None
        if fails is not False:
            self.log.append(pairs)
        if fails is not None:
            raise StoreFailed("the answer was lost")

    async def close(self) -> None:
        if self._replay in self.log.readers:
            self.log.readers.remove(self._replay)
        self._replay = None

    def is_following(self) -> bool:
        return self._replay is not None
