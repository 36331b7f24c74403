"""Finds the next data of a consumer that reads in order, while the consumer handles the last answer.

If a consumer handles one answer before it asks for the next, the broker is idle during that time. Two large parts of the next answer do
not depend on the request: to find the records, and to ask whether they are in memory. So the broker does them as soon as the last answer
has left. If the consumer is the only one and asks for little at a time, the broker also reads its records.

Rules
  1. This is only for consumers that ask again within `QUICK_S` seconds of the last answer, so that the broker looks up no unwanted data.
  2. A result is valid for the next request and for `GOOD_FOR_S` seconds, if the log still has the data at that place. It is never less
     than a lookup would find now, except for records that came in the meantime. If the general way handles a request, the result is
     dropped (`forget`), because the request may have another isolation level.
  3. The broker reads ahead the records of at most one consumer, and at most as many as the loop sends in one turn (`Readers`).
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

QUICK_S = 0.02  # between two requests of a consumer that waits only for answers
GOOD_FOR_S = 0.1  # later, a part of the data may have left memory
ALONE_AFTER_S = 0.02  # without requests of other quick consumers
MOST_PARTITIONS = 8  # looked at in one turn of the loop
COPIED_BYTES = FILE_BYTES_PER_TURN - 4096  # one system call takes the records and the fields around them


class ReadAheadBroker(Protocol):
    """The parts of the broker that this module uses."""

    files: Files
    loop: asyncio.AbstractEventLoop
    readers: Readers


class Readers:
    """The quick readers of one broker, and the records read ahead for the only one."""

    def __init__(self) -> None:
        self._last: object = None
        self._changed_s = 0.0
        self._region: FileRegion | None = None
        self._data = b""

    def is_alone(self, reader: object, now_s: float) -> bool:
        """Whether `reader`, which asks now, has been the only one for a while."""
        if self._last is not reader:
            self._last, self._changed_s = reader, now_s
        return now_s - self._changed_s >= ALONE_AFTER_S

    def keep(self, region: FileRegion, data: bytes) -> None:
        """Keep the data of a region, and drop any other."""
        self._region, self._data = region, data

    def take(self, region: FileRegion) -> Copied | None:
        """The kept data of a region, which is then dropped; None if it is not kept."""
        if self._region is not region:
            return None
        data, self._region, self._data = self._data, None, b""
        return Copied(data)


class ReadAhead:
    """The data for the next fetch of one connection."""

    __slots__ = ("_asked_s", "_found_s", "_given", "found")

    def __init__(self) -> None:
        self._asked_s = -1.0
        # for `take`: the data, and the limit of its fetch in bytes
        self.found: dict[OnlinePartition, tuple[Behind, int]] = {}
        self._found_s = 0.0
        self._given: list[tuple[OnlinePartition, FileRegion, int]] = []  # of the last answer; with the limit in bytes

    def begin(self, connection: Connection) -> bool:
        """Note a request. Returns whether its consumer is quick, so that the caller must tell `gave` the regions of the answer."""
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
        """The result for this request: the region, and the form in which to send it."""
        behind, wanted_bytes = self.found.pop(partition, (None, 0))
        if behind is None or behind.offset != offset or wanted_bytes != max_bytes or not partition.log.reader.still_has(behind):
            return None
        region = behind.region
        return region, broker.readers.take(region) or region

    def gave(self, partition: OnlinePartition, region: FileRegion, max_bytes: int) -> None:
        """Note that the answer has `region` of a partition, within a limit of `max_bytes`."""
        self._given.append((partition, region, max_bytes))

    def answered(self, broker: ReadAheadBroker, connection: Connection, isolation_level: int) -> None:
        """Look ahead when the answer is sent."""
        if self._given:
            connection.when_sent(lambda: self._look(broker, isolation_level))

    def _look(self, broker: ReadAheadBroker, isolation_level: int) -> None:
        """Look up the data after the last answer. Unreadable data is skipped: the next request meets the same error and reports it."""
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
