"""A fetch below version 4: it looks and waits as every fetch does, and is answered with message sets that are made of what it found.

Only requests of those versions come here. What they may have is theirs in these ways:
- They do not know batches without a message for them, so markers of transactions and batches that compaction emptied are stepped over
  before anything is found: else a reader would be answered with nothing, at once and again and again.
- Below version 3 an answer has no more bytes of a partition than were asked for, and ends within a message where that is what it takes: by a
  first message that is cut off the client knows that it has to ask for more. From version 3 on the first message comes whole.
- A little is converted by the loop, what may take longer by a thread.
- A request converts so much and no more (`limits.MAX_CONVERTED_BYTES`). Below version 3 clients do not ask in turn, so each request begins
  with another partition.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from barnabas import limits
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.fetch import Buffer, Copied, FetchedData
from barnabas.protocol.older_fetch import (
    FIRST_BOUNDED_VERSION,
    FIRST_TIMED_VERSION,
    FetchedSet,
    read_older_fetch,
    write_older_answer,
)
from barnabas.protocol.records.compression import NAMES, Compression
from barnabas.protocol.records.header import HEADER_SIZE, read_header
from barnabas.protocol.records.message_sets.down_conversion import message_set_of
from barnabas.server.fetching.fetch import Fetch
from barnabas.server.fetching.looking import Found, Records
from barnabas.server.fetching.session import FetchedPartition
from barnabas.server.held import HeldRegion
from barnabas.storage.files import Files
from barnabas.storage.reading import FileRegion

if TYPE_CHECKING:
    from barnabas.replication.partition import Partition
    from barnabas.server.broker import Broker
    from barnabas.server.connection import Connection

logger = logging.getLogger(__name__)
MAX_INT32 = 2**31 - 1
MOST_STEPPED_OVER = 500  # batches without a message, by one look: half a millisecond


class _Batches(NamedTuple):
    """What a thread makes a message set of: the batches in `records`, for a reader of `offset` who takes `most` bytes."""

    topic: str
    data: FetchedData[Records]
    offset: int
    most: int


def handle_older_fetch(
    broker: Broker, connection: Connection, frame: memoryview, body: int, version: int, correlation_id: int
) -> None:
    """Answer at once, or when `min_bytes` are there or `max_wait_ms` have passed."""
    request = read_older_fetch(frame, body, version)
    context = broker.fetch_sessions.open(request, version, broker.clock.now_ms())
    if version < FIRST_BOUNDED_VERSION and context.partitions:
        first = correlation_id % len(context.partitions)
        context.partitions[:] = [*context.partitions[first:], *context.partitions[:first]]
    client_id = None if broker.authorizer is None else broker.authorizer.client_id(frame)
    OlderFetch(broker, connection, request, context, version, correlation_id, client_id).start()


class OlderFetch(Fetch):
    """One request of those versions from its first look to its answer."""

    __slots__ = ()

    def start(self, known: None = None) -> None:
        self._max_bytes = min(self._max_bytes, limits.MAX_CONVERTED_BYTES)
        super().start(known)

    def _look_at(
        self,
        partition: Partition,
        wanted: FetchedPartition,
        left: int,
        *,
        minimum_one: bool,
        first: bool = False,
        is_verified_later: bool = True,
    ) -> FetchedData[Records]:
        if NAMES.get(partition.log.config.compression_type) == Compression.ZSTD:
            return self._failed(wanted, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if self._version < FIRST_BOUNDED_VERSION:
            minimum_one = left > 0 and wanted.max_bytes > 0
        for _ in range(MOST_STEPPED_OVER):
            data = super()._look_at(
                partition, wanted, left, minimum_one=minimum_one, first=first, is_verified_later=is_verified_later
            )
            region, first = data.records, False
            if not isinstance(region, FileRegion):
                break
            behind = _behind_nothing(self._broker.files, region)
            if behind is None or behind <= wanted.fetch_offset:
                break
            wanted.fetch_offset = behind
        return data

    def _put_off(self, wait_ms: int) -> None:
        self._send([write_older_answer(self._version, self._correlation_id, (), wait_ms)])

    def _answer(self, found: list[Found]) -> None:
        """Convert what was found, and answer."""
        sizes = [data.records.size for _, data in found if data.records is not None]
        asked = [
            _Batches(str(wanted.topic), data, wanted.fetch_offset, wanted.max_bytes if self._is_cut else MAX_INT32)
            for wanted, data in found
        ]
        throttle_ms = 0 if self._allowance is None else self._allowance.settle(sum(sizes))
        self._broker.metrics.bytes_out += sum(sizes)
        magic = 1 if self._version >= FIRST_TIMED_VERSION else 0
        if sum(sizes) <= limits.MAX_CONVERTED_AT_ONCE and all(_is_copied_plain(data) for _, data in found):
            self._tell(_made(self._broker.files, asked, magic), throttle_ms)
            return
        self._be_late()
        if self._hold(found) is None:
            return
        asked = [each._replace(data=data) for each, (_, data) in zip(asked, found, strict=True)]
        future = self._broker.loop.run_in_executor(self._broker.io_threads, _made, self._broker.files, asked, magic)
        future.add_done_callback(lambda done: self._after(done, throttle_ms))

    @property
    def _is_cut(self) -> bool:
        return self._version < FIRST_BOUNDED_VERSION

    def _after(self, done: asyncio.Future[list[tuple[str, FetchedSet]]], throttle_ms: int) -> None:
        if done.cancelled() or done.exception() is not None:
            logger.error("event=conversion-failed peer=%s error=%r", self._connection.peer, done.cancelled() or done.exception())
            self._connection.close()
        elif not self._connection.closed:
            self._tell(done.result(), throttle_ms)

    def _tell(self, made: Sequence[tuple[str, FetchedSet]], throttle_ms: int) -> None:
        topics: dict[str, list[FetchedSet]] = {}
        for topic, messages in made:
            topics.setdefault(topic, []).append(messages)
        self._send([write_older_answer(self._version, self._correlation_id, topics.items(), throttle_ms)])


def _behind_nothing(files: Files, region: FileRegion) -> int | None:
    """Where the batch behind begins, if the first one of a region has no message for a client; None otherwise."""
    head = files.pread(region.fileno, HEADER_SIZE, region.position)
    if len(head) < HEADER_SIZE:
        return None
    header = read_header(head)
    return header.next_offset if header.is_control or not header.records_count else None


def _is_copied_plain(data: FetchedData[Records]) -> bool:
    """Whether it takes little to convert: it is in memory, and its first batch has no codec."""
    records = data.records
    return records is None or (isinstance(records, Copied) and not read_header(records.data).compression)


def _made(files: Files, asked: Sequence[_Batches], magic: int) -> list[tuple[str, FetchedSet]]:
    made, allowance = [], limits.MAX_CONVERTED_BYTES
    for topic, data, offset, most in asked:
        messages: bytes | bytearray = b""
        code = data.error_code
        if data.records is not None and allowance > 0:
            try:
                converted = message_set_of(_read(files, data.records), magic, offset, allowance)
            except KafkaError as error:
                code, data = error.code, data._replace(high_watermark=-1)
            else:
                allowance -= converted.unfolded
                messages = converted.data[:most]
        made.append((topic, FetchedSet(data.partition, code, data.high_watermark, messages)))
    return made


def _read(files: Files, records: Records) -> Buffer:
    if isinstance(records, Copied):
        return records.data
    assert isinstance(records, HeldRegion)
    return files.pread(records.fileno, records.size, records.position)
