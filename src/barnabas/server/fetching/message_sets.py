"""A fetch below version 4: it looks and waits like every fetch, and its answer has message sets that are made from the batches.

Only requests of those versions come here. They differ in these ways:
- Their clients do not know batches without a message. So the look skips markers of transactions, and batches that compaction emptied.
  Otherwise a reader would get an empty answer at once, again and again.
- Below version 3 an answer has no more bytes of a partition than requested, and may end within a message. A truncated first message tells
  the client that it must ask for more bytes. From version 3 on the first message is always complete.
- The loop converts little data. A thread converts data that may take longer.
- A request converts at most `limits.MAX_CONVERTED_BYTES`. Below version 3 clients do not rotate their partitions, so each request begins
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
from barnabas.protocol.records.batch_header import HEADER_SIZE, read_header, split_batches
from barnabas.protocol.records.compression import NAMES, Compression
from barnabas.protocol.records.message_sets.down_conversion import message_set_of
from barnabas.server.fetching.disk_loading import hold
from barnabas.server.fetching.fetch import Fetch, Known
from barnabas.server.fetching.fetch_session import FetchedPartition
from barnabas.server.fetching.partition_lookup import Found, Records
from barnabas.server.pinned_regions import PinnedRegion
from barnabas.storage.file_region import FileRegion
from barnabas.storage.files import Files

if TYPE_CHECKING:
    from barnabas.replication.partition import Partition
    from barnabas.server.connection import Connection
    from barnabas.server.fetching.partition_lookup import FetchBroker

logger = logging.getLogger(__name__)
MAX_INT32 = 2**31 - 1
MOST_STEPPED_OVER = 500  # batches without a message that one look skips: half a millisecond


class _Asked(NamedTuple):
    """The sources of a message set, for a reader of `offset` that takes `most` bytes."""

    wanted: FetchedPartition
    data: FetchedData[Records]
    offset: int
    most: int


class _Made(NamedTuple):
    """A partition's part of the answer. `behind`: the offset of the next look, if the found data has no message; -1 if it has one."""

    wanted: FetchedPartition
    messages: FetchedSet
    behind: int = -1


def handle_older_fetch(
    broker: FetchBroker, connection: Connection, frame: memoryview, body: int, version: int, correlation_id: int
) -> None:
    """Answer at once, or when `min_bytes` bytes are available or `max_wait_ms` milliseconds have passed."""
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

    def start(self, known: Known | None = None) -> None:
        self._max_bytes = min(self._max_bytes, limits.MAX_CONVERTED_BYTES)
        super().start(known)

    def look_at(
        self,
        partition: Partition,
        wanted: FetchedPartition,
        left: int,
        *,
        minimum_one: bool,
        first: bool = False,
        is_verified_later: bool = True,
    ) -> FetchedData[Records]:
        if partition.is_offline:
            return self.failure(wanted, partition.refusal)
        if NAMES.get(partition.log.config.compression_type) == Compression.ZSTD:
            return self.failure(wanted, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if self._version < FIRST_BOUNDED_VERSION:
            minimum_one = left > 0 and wanted.max_bytes > 0
        for _ in range(MOST_STEPPED_OVER):
            data = super().look_at(
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
        """Convert the found data, and answer."""
        size = sum(data.records.size for _, data in found if data.records is not None)
        magic = 1 if self._version >= FIRST_TIMED_VERSION else 0
        files = self._broker.files
        if size <= limits.MAX_CONVERTED_AT_ONCE and all(_takes_little(data) for _, data in found):
            self._tell(_made(files, self._asked(found), magic), size)
            return
        self._be_late()
        if hold(self._broker, self._connection, found) is not None:
            future = self._broker.loop.run_in_executor(self._broker.io_threads, _made, files, self._asked(found), magic)
            future.add_done_callback(lambda done: self._after(done, size))

    def _asked(self, found: list[Found]) -> list[_Asked]:
        is_cut = self._version < FIRST_BOUNDED_VERSION
        return [_Asked(wanted, data, wanted.fetch_offset, wanted.max_bytes if is_cut else MAX_INT32) for wanted, data in found]

    def _after(self, done: asyncio.Future[list[_Made]], size: int) -> None:
        if done.cancelled() or done.exception() is not None:
            logger.error("event=conversion-failed peer=%s error=%r", self._connection.peer, done.cancelled() or done.exception())
            self._connection.close()
        elif not self._connection.closed:
            self._tell(done.result(), size)

    def _tell(self, made: Sequence[_Made], size: int) -> None:
        """Answer with the message sets made from `size` bytes. If a partition has no message at its offset, look at later offsets;
        otherwise the reader would ask for it without end.
        """
        passed = [each for each in made if each.behind >= 0]
        if not passed:
            self._send_sets(made, size)
            return
        for each in passed:
            each.wanted.fetch_offset = each.behind
        found, left, must_answer = self._look()
        if left or must_answer:
            self._load(found)
        else:  # no more data: send an empty answer after the wait, and the reader asks again
            self._be_late()
            empty = _made(self._broker.files, self._asked(found), 0)
            self._broker.loop.call_later(self._longest_wait_ms / 1000, self._send_late, empty)

    def _send_late(self, made: Sequence[_Made]) -> None:
        if not self._connection.closed:
            self._send_sets(made, 0)

    def _send_sets(self, made: Sequence[_Made], size: int) -> None:
        throttle_ms = 0 if self._allowance is None else self._allowance.settle(size)
        self._broker.metrics.bytes_out += size
        topics: dict[str, list[FetchedSet]] = {}
        for wanted, messages, _ in made:
            topics.setdefault(str(wanted.topic), []).append(messages)
        self._send([write_older_answer(self._version, self._correlation_id, topics.items(), throttle_ms)])


def _behind_nothing(files: Files, region: FileRegion) -> int | None:
    """The offset after the first batch of a region, if that batch has no message for a client; None otherwise."""
    head = files.pread(region.fileno, HEADER_SIZE, region.position)
    if len(head) < HEADER_SIZE:
        return None
    header = read_header(head)
    return header.next_offset if header.is_control or not header.records_count else None


def _takes_little(data: FetchedData[Records]) -> bool:
    """Whether the data is in memory and uncompressed, so that the conversion takes little time. Compressed data may decompress to very
    much.
    """
    records = data.records
    if records is None:
        return True
    try:
        return isinstance(records, Copied) and not any(header.compression for _, header in split_batches(records.data))
    except KafkaError:
        return False


def _made(files: Files, asked: Sequence[_Asked], magic: int) -> list[_Made]:
    made, allowance = [], limits.MAX_CONVERTED_BYTES
    for wanted, data, offset, most in asked:
        sets = FetchedSet(data.partition, data.error_code, data.high_watermark, b"")
        if data.records is None or allowance <= 0:
            made.append(_Made(wanted, sets))
            continue
        try:
            converted = message_set_of(_read(files, data.records), magic, offset, allowance)
        except KafkaError as error:
            made.append(_Made(wanted, FetchedSet(data.partition, error.code, -1, b"")))
            continue
        allowance -= converted.unfolded
        if converted.is_empty and converted.next_offset > offset:
            made.append(_Made(wanted, sets, converted.next_offset))
        else:
            made.append(_Made(wanted, sets._replace(messages=converted.data[:most])))
    return made


def _read(files: Files, records: Records) -> Buffer:
    if isinstance(records, Copied):
        return records.data
    assert isinstance(records, PinnedRegion)
    return files.pread(records.fileno, records.size, records.position)
