"""The log of a coordinator in an internal topic: the coordinator appends records, and reads them back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

from barnabas.coordination.interfaces import EndMarker, LogEntry
from barnabas.coordination.result import NO_PRODUCER, Producer
from barnabas.coordination.version_prefix import Record
from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.protocol.records.batch import OwnBatch, build_pairs, iterate_records, split_batches
from barnabas.server.logs.damaged_reads import tell_damage
from barnabas.server.page_cache import is_resident
from barnabas.storage.file_region import FileRegion
from barnabas.storage.files import Files
from barnabas.storage.markers import Ending, marker_batch, parse_marker
from barnabas.storage.verify import Verified, verify

if TYPE_CHECKING:
    from barnabas.replication.leader_partition import LeaderPartition
    from barnabas.server.pinned_regions import PinnedFiles
    from barnabas.server.services import FaultReports, Services

STRICT_VERSION = 2  # of transactions; from it on, a marker has the epoch after that of its transaction
READ_BYTES = 1024 * 1024  # per read while loading
# the loop itself reads up to this size from memory: the way to a thread and back takes longer than the CRCs
READ_AT_ONCE_BYTES = 16 * 1024


class AppendServices(Protocol):
    """The parts of the broker that an append needs."""

    loop: asyncio.AbstractEventLoop

    @property
    def faults(self) -> FaultReports: ...


def append_marker(
    services: AppendServices, partition: LeaderPartition, marker: EndMarker, now_ms: int
) -> asyncio.Future[None] | None:
    """Append the end of a transaction; see `CoordinatorLog.append_marker`.

    A marker of version 2 with the epoch of the open transaction is late: it has already ended the previous transaction, and would end the
    next one too (KIP-1228). So the answer is INVALID_PRODUCER_EPOCH.
    """
    (producer_id, epoch), commit, coordinator_epoch, version = marker
    if version >= STRICT_VERSION and partition.log.reader.is_in_transaction(producer_id, epoch):
        raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH)
    batch, ending = marker_batch(producer_id, epoch, commit=commit, coordinator_epoch=coordinator_epoch, now_ms=now_ms)
    return _append(services, partition, batch, now_ms, ending)


def _append(
    services: AppendServices, partition: LeaderPartition, batch: OwnBatch, now_ms: int, ending: Ending | None = None
) -> asyncio.Future[None] | None:
    try:
        last_offset = partition.append_own(batch, now_ms, ending)
    except StorageError as error:
        services.faults.report(error)
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR) from error
    if partition.is_committed(last_offset):
        return None
    future: asyncio.Future[None] = services.loop.create_future()
    partition.wait_committed(last_offset, lambda error: _settle(future, error))
    return future


class PartitionedLog:
    """`CoordinatorLog` over the partitions of one internal topic."""

    def __init__(self, services: Services, pinned_files: PinnedFiles, topic: str, partition_count: int) -> None:
        self._services = services
        self._pinned_files = pinned_files
        self._topic = topic
        self._configured_count = partition_count

    @property
    def partition_count(self) -> int:
        """The number of partitions of the topic; before the topic exists, the configured number."""
        return self._services.metadata.partition_count(self._topic) or self._configured_count

    def append(
        self, partition: int, records: list[Record], now_ms: int, producer: Producer | None = None
    ) -> asyncio.Future[None] | None:
        """See `CoordinatorLog.append`."""
        if producer is None:
            batch = build_pairs(records, now_ms)
        else:
            batch = build_pairs(records, now_ms, producer.producer_id, producer.epoch, transactional=True)
        return _append(self._services, self._found(partition), batch, now_ms)

    def append_marker(self, partition: int, marker: EndMarker, now_ms: int) -> asyncio.Future[None] | None:
        """See `CoordinatorLog.append_marker`."""
        return append_marker(self._services, self._found(partition), marker, now_ms)

    def _found(self, partition: int) -> LeaderPartition:
        found = self._services.partitions.get(self._topic, partition)
        if found is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        if not found.is_leader:
            raise KafkaError(found.refusal)
        return found

    async def read_all(self, partition: int) -> AsyncGenerator[Iterable[LogEntry], None]:
        """All records of the partition in order. It omits damaged records, and logs a line for them.

        It reads to the end of the log. All of these records will be committed, even if a new leader does not know this yet for each of
        them.
        """
        found = self._services.partitions.get(self._topic, partition)
        if found is None:
            return
        if found.is_offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        offset, log_end_offset = found.log.log_start_offset, found.log.log_end_offset
        while offset < log_end_offset:
            region = found.log.reader.read(
                offset, READ_BYTES, limit_offset=log_end_offset, minimum_one=True, is_verified_later=True
            )
            if region is None:
                return
            integrity, cuts = region.integrity, region.integrity.cuts
            verified, data = await self._read(region)
            if integrity.cuts != cuts:  # only a follower cuts its log, so this broker does not lead any more
                raise KafkaError(ErrorCode.NOT_COORDINATOR)
            assert verified.damage is not None or verified.end > region.position, (
                "a region begins with a whole batch, or a damaged one"
            )
            integrity.add(region.position, verified.end)
            if verified.damage is None:
                integrity.note_end(verified.next_offset, verified.end)
            yield _entries(data, offset)
            offset = max(offset, verified.next_offset)
            if verified.damage is not None:
                damage = found.log.reader.bounded(verified.damage)
                if integrity.note(damage):
                    self._services.metrics.corrupt_stretches += 1
                    tell_damage(self._topic, partition, damage)
                offset = max(offset, damage.next_offset)

    async def _read(self, region: FileRegion) -> tuple[Verified, bytes]:
        """The whole batches of a region. A thread reads a region that is large or not in memory."""
        files = self._services.files
        if region.size <= READ_AT_ONCE_BYTES and is_resident(files, region):
            return _verified(files, region, region.fileno)
        held = self._pinned_files.hold(region)
        return await self._services.loop.run_in_executor(
            self._services.reading_threads, lambda: _verified(files, region, held.fileno)
        )


def _verified(files: Files, region: FileRegion, fileno: int) -> tuple[Verified, bytes]:
    start = region.position
    files.will_need(fileno, start, region.size)
    tail = region.integrity.tail
    end_offset = region.integrity.end_offset()
    verified = verify(files, fileno, start, start + region.size, region.base_offset, end_offset, region.reach, tail=tail)
    return verified, files.pread(fileno, verified.end - start, start)


def _entries(data: bytes, start_offset: int) -> Iterator[LogEntry]:
    """The records of whole batches from an offset on."""
    for position, header in split_batches(data, allow_partial=True):
        producer_id = header.producer_id if header.is_transactional else NO_PRODUCER
        for record in iterate_records(data, position):
            if record.offset < start_offset:
                continue
            if not header.is_control:
                yield LogEntry((record.key or b"", record.value), producer_id)
            elif (decision := parse_marker(record)) is not None:
                yield LogEntry(None, header.producer_id, commit=not decision[0])


def _settle(future: asyncio.Future[None], error: KafkaError | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
        future.exception()  # counts as retrieved: at a stop, nobody may be waiting for it
