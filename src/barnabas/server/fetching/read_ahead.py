"""What a consumer that reads in order asks for next, found while it takes in what it was sent.

A consumer that has one answer worked through before it asks for the next waits meanwhile, and so does the broker. Of what the next answer
takes, finding the records and asking whether they are in memory are the largest parts that do not depend on the request; so they
are done as soon as the last answer has left. Of a consumer that is alone, and asks for little at a time, the records are read as well.

Rules
  1. Only for who asks again within `QUICK_S` of the last answer, so that nothing is looked for that is not wanted.
  2. What was found is good for the next request of the connection and for `GOOD_FOR_S`, and if the log still has it where it was. It is
     never less than would be found now, but for records that came meanwhile. A request that is read, and not recognised, ends it
     (`forget`): it may have another isolation level.
  3. Records are read for one consumer of a broker at most, and no more than go in one turn (`Readers`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from barnabas.errors import KafkaError, StorageError
from barnabas.protocol.fetch import Copied
from barnabas.server.outbox import FILE_BYTES_PER_TURN
from barnabas.server.page_cache import at_hand
from barnabas.storage.file_region import Behind, FileRegion

if TYPE_CHECKING:
    import asyncio

    from barnabas.replication.partition import OnlinePartition
    from barnabas.server.connection import Connection
    from barnabas.storage.files import Files

QUICK_S = 0.02  # from one request to the next, of a consumer that waits for nothing but answers
GOOD_FOR_S = 0.1  # then some of it may have left memory
ALONE_AFTER_S = 0.02  # without requests of others that are as quick
MOST_PARTITIONS = 8  # looked at in one turn of the loop
COPIED_BYTES = FILE_BYTES_PER_TURN - 4096  # with what stands around the records it goes in one system call


class ReadAheadBroker(Protocol):
    """What is asked of the broker."""

    files: Files
    loop: asyncio.AbstractEventLoop
    readers: Readers


class Readers:
    """Who reads quickly from one broker, and what was read for who is alone at it."""

    def __init__(self) -> None:
        self._last: object = None
        self._changed_s = 0.0
        self._region: FileRegion | None = None
        self._data = b""

    def is_alone(self, reader: object, now_s: float) -> bool:
        """Whether `reader`, which asks now, is the only one for a while."""
        if self._last is not reader:
            self._last, self._changed_s = reader, now_s
        return now_s - self._changed_s >= ALONE_AFTER_S

    def keep(self, region: FileRegion, data: bytes) -> None:
        """What a region holds; in the place of any other."""
        self._region, self._data = region, data

    def take(self, region: FileRegion) -> Copied | None:
        """What a region holds, where that is kept: for the last time."""
        if self._region is not region:
            return None
        data, self._region, self._data = self._data, None, b""
        return Copied(data)


class ReadAhead:
    """What one connection asks for next."""

    __slots__ = ("_asked_s", "_found_s", "_given", "found")

    def __init__(self) -> None:
        self._asked_s = -1.0
        self.found: dict[OnlinePartition, tuple[Behind, int]] = {}  # for `take`; and at most how many bytes it was to have
        self._found_s = 0.0
        self._given: list[tuple[OnlinePartition, FileRegion, int]] = []  # in the last answer, and at most how many bytes

    def begin(self, connection: Connection) -> bool:
        """A request is at hand; whether its consumer is quick, so that `gave` is to be told what it gets."""
        if self._given:
            connection.when_sent(None)
            self._given.clear()
        before, now = self._asked_s, connection.last_active
        self._asked_s = now
        if self.found and now - self._found_s > GOOD_FOR_S:
            self.found.clear()
        return now - before <= QUICK_S

    def forget(self) -> None:
        """Find nothing for the next request."""
        self.found.clear()
        self._given.clear()

    def take(
        self, broker: ReadAheadBroker, partition: OnlinePartition, offset: int, max_bytes: int
    ) -> tuple[FileRegion, FileRegion | Copied] | None:
        """What was found for this: where it lies, and as it is sent."""
        behind, wanted_bytes = self.found.pop(partition, (None, 0))
        if behind is None or behind.offset != offset or wanted_bytes != max_bytes or not partition.log.reader.still_has(behind):
            return None
        region = behind.region
        return region, broker.readers.take(region) or region

    def gave(self, partition: OnlinePartition, region: FileRegion, max_bytes: int) -> None:
        """The answer has this of a partition, which was to be `max_bytes` at most."""
        self._given.append((partition, region, max_bytes))

    def answered(self, broker: ReadAheadBroker, connection: Connection, isolation_level: int) -> None:
        """The answer is on its way."""
        if self._given:
            connection.when_sent(lambda: self._look(broker, isolation_level))

    def _look(self, broker: ReadAheadBroker, isolation_level: int) -> None:
        """What cannot be read is passed over: whoever asks for it finds the same and words it."""
        self.found.clear()
        self._found_s = broker.loop.time()
        copies = broker.readers.is_alone(self, self._found_s)
        for partition, given, max_bytes in self._given[:MOST_PARTITIONS]:
            if partition.closed:
                continue
            try:
                behind = partition.read_behind(given, max_bytes, isolation_level)
                if behind is None or at_hand(broker.files, behind.region, may_copy=False) is None:
                    continue
                region = behind.region
                if copies and region.size <= COPIED_BYTES and len(self._given) == 1:
                    data = broker.files.pread(region.fileno, region.size, region.position)
                    if len(data) < region.size:
                        continue
                    broker.readers.keep(region, data)
            except (KafkaError, StorageError, OSError):
                continue
            self.found[partition] = behind, max_bytes
