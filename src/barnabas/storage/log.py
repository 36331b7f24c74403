"""The log of one partition: what is appended, in order, for as long as it is kept.

Owns the segments of one folder, where the log begins and ends, the leader epochs, the producers' state.

Rules
  1. Offsets grow and are dense on the leader; `log_end_offset` is the next one to be given.
  2. A batch is checked, then written, then counted: if any step fails, nothing has changed that a reader could see.
  3. The buffer that is handed in is not kept. If it can be written to, base offset and leader epoch are set in it.
  4. Everything is called from one thread, apart from `flush`, which blocks and runs in another.
  5. A region handed out by `read` stays readable until the loop runs again; who sends later duplicates the descriptor. Files
     are removed in two steps, so that a removal never meets a read: detached here, at once, and deleted by `Garbage.remove`.

How it works: an append is a header parse, the checks, one `pwrite` at the end of the active segment's file, and arithmetic. A
read is a lookup of two positions. Both are written out in one piece, for they are run for every request.

Ugly: `flush` shares the segments and the recovery point with the loop. It works on copies and sets the recovery point last, under
a lock, and only if no truncation came between (`_truncations`, raised when one begins and when it ends).
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import NamedTuple
from uuid import UUID

from crc32c import crc32c

from barnabas.config.topic import TopicConfig
from barnabas.error_codes import ErrorCode
from barnabas.errors import Closed, KafkaError, LogDirFailed
from barnabas.protocol.records.header import (
    CRC_START,
    HEADER,
    LENGTH_OVERHEAD,
    MAGIC,
    NO_TIMESTAMP,
    PLACE,
    BatchHeader,
    Buffer,
    only_batch,
    split_batches,
)
from barnabas.protocol.records.record import iterate_records
from barnabas.protocol.records.validate import AppendOrigin, validate_batch
from barnabas.storage import checkpoints
from barnabas.storage.files import Files, sync_file, write_all
from barnabas.storage.garbage import Garbage
from barnabas.storage.index import TIME_ENTRY
from barnabas.storage.leader_epochs import LeaderEpochs
from barnabas.storage.loader import aborted_of, load_log, load_producers, remove_segment_files, snapshot_offsets
from barnabas.storage.producer_state import CompletedTransaction, ProducerStates, parse_marker
from barnabas.storage.segment import DELETED_SUFFIX, SNAPSHOT_SUFFIX, SUFFIXES, Segment, file_name
from barnabas.storage.snapshot import encode_snapshot
from barnabas.storage.time_search import TimestampedOffset, first_at_or_after, newest

__all__ = ["AppendOrigin", "AppendResult", "FileRegion", "Garbage", "Log", "ProducerDescription", "TimestampedOffset"]

log = logging.getLogger(__name__)

PRODUCER_ID_EXPIRATION_MS = 86_400_000  # Kafka's producer.id.expiration.ms
MAX_RELATIVE_OFFSET = 2**31 - 1
MAX_INT64 = 2**63 - 1
CLIENT = AppendOrigin.CLIENT
new_tuple = tuple.__new__  # makes a named tuple in half the time its own constructor takes


class AppendResult(NamedTuple):
    """Where a batch lies, or lay already if `duplicate`. `log_append_time_ms` is -1 where the producer's times are kept."""

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    duplicate: bool


class FileRegion(NamedTuple):
    """Bytes [position, position + size) of an open file: whole batches. `base_offset` is at most the first one's."""

    fileno: int
    position: int
    size: int
    base_offset: int


class ProducerDescription(NamedTuple):
    """A producer as DescribeProducers shows it; `current_txn_start_offset` is -1 without an open transaction."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_txn_start_offset: int


class Log:
    """One partition's log; made by `Log.open`."""

    def __init__(
        self, directory: Path, topic: str, partition: int, topic_id: UUID | None, config: TopicConfig, files: Files
    ) -> None:
        self.directory = directory
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.config = config
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.recovery_point = 0  # everything below it is on the disk
        self.size_bytes = 0
        self.producer_id_expiration_ms = PRODUCER_ID_EXPIRATION_MS
        self._files = files
        self._segments: list[Segment] = []
        self._bases: list[int] = []
        self._epochs = LeaderEpochs()
        self._producers = ProducerStates()
        self._roll_time = self._roll_offset = self._roll_size = -1  # a batch past one of them may begin a new segment
        self._truncations = 0
        self._recovery_lock = Lock()
        self._torn = False  # a write failed: bytes may lie behind the active segment's size
        self._garbage: list[Garbage] = []
        self._epochs_unsynced = False
        self._flush_seen = 0, 0  # the recovery point, and when `is_flush_due` first saw it
        self._as_on_disk: tuple[int, int, int] | None = None  # `_extent` of which the files tell everything
        self._closed = False

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        config: TopicConfig,
        files: Files,
        now_ms: int,
        clean_shutdown: bool,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        topic_id: UUID | None = None,
        producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
    ) -> Log:
        """Open the log in `directory` (named `<topic>-<partition>`), or begin one there.

        Args:
            clean_shutdown: the log was closed, so its files are taken as they are.
            recovery_point: what a crash cannot have touched.
            topic_id: written down for a new log; for an existing one its own stands.

        Raises:
            CorruptLog: the folder holds something that no crash leaves behind.
            LogDirFailed: the disk does not work.
        """
        topic, _, partition = directory.name.rpartition("-")
        opened = cls(directory, topic, int(partition), topic_id, config, files)
        opened.producer_id_expiration_ms = producer_id_expiration_ms
        try:
            files.make_directory(directory)
            opened._load_topic_id()
            loaded = load_log(
                directory,
                files=files,
                config=config,
                now_ms=now_ms,
                clean_shutdown=clean_shutdown,
                recovery_point=recovery_point,
                log_start_offset=log_start_offset,
            )
        except OSError as error:
            raise LogDirFailed(str(directory), str(error)) from error
        opened._epochs, opened._producers = loaded.epochs, loaded.producers
        opened.log_start_offset = loaded.log_start_offset
        opened._use_segments(loaded.segments)
        opened.recovery_point = opened.log_end_offset if clean_shutdown else min(recovery_point, opened.log_end_offset)
        opened._flush_seen = opened.recovery_point, now_ms
        opened._producers.expire(now_ms, producer_id_expiration_ms)
        if clean_shutdown or not opened.log_end_offset:
            opened._as_on_disk = opened._extent
        return opened

    @property
    def _extent(self) -> tuple[int, int, int]:
        """Differs after every change: appends move the end, and what moves it back counts as a truncation."""
        return self.log_start_offset, self.log_end_offset, self._truncations

    # Appending

    def append_as_leader(
        self, records: Buffer, *, leader_epoch: int, now_ms: int, origin: AppendOrigin = AppendOrigin.CLIENT
    ) -> AppendResult:
        """Append the one batch in `records` at the end.

        Raises:
            KafkaError: as `only_batch` and `validate_batch`; also RECORD_LIST_TOO_LARGE,
                OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED.
            LogDirFailed: the write failed.
        """
        if len(records) < HEADER.size or records[16] != MAGIC:
            records = only_batch(records)
        header = new_tuple(BatchHeader, HEADER.unpack_from(records))
        size = header.batch_length + LENGTH_OVERHEAD
        if size != len(records):
            records = only_batch(records)
        config = self.config
        header, rewritten = validate_batch(records, header, config=config, now_ms=now_ms, origin=origin)
        data: Buffer = records
        if rewritten is not None:
            data, size = bytearray(rewritten), len(rewritten)
        if size > config.segment_bytes:
            raise _too_large_for_segment(size, config)
        log_append_time = NO_TIMESTAMP if config.message_timestamp_type == "CreateTime" else header.max_timestamp
        base_offset = self.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        if header.producer_id >= 0:
            duplicate = self._producers.check(header, from_client=origin is CLIENT)
            if duplicate is not None:
                time = NO_TIMESTAMP if log_append_time == NO_TIMESTAMP else duplicate.timestamp
                return AppendResult(duplicate.first_offset, duplicate.last_offset, time, self.log_start_offset, True)
            if header.is_control:
                self._check_marker(header, data)
        if leader_epoch > self._epochs.latest:
            self._assign_epoch(leader_epoch, base_offset)
        segment = self._segments[-1]
        end = segment.size + size
        if end > self._roll_size or header.max_timestamp > self._roll_time or last_offset > self._roll_offset:
            segment = self._segment_for(size, header._replace(base_offset=base_offset), now_ms)

        self._write(segment, (base_offset, header.batch_length, leader_epoch), data, size)
        segment.appended(last_offset, size, header.max_timestamp, config.index_interval_bytes)
        self.log_end_offset = last_offset + 1
        self.size_bytes += size
        if header.producer_id >= 0:
            self._count_producer(segment, header, base_offset, data)
        return new_tuple(AppendResult, (base_offset, last_offset, log_append_time, self.log_start_offset, False))

    def _write(self, segment: Segment, place: tuple[int, int, int], data: Buffer, size: int) -> None:
        """Write a batch at the segment's end, with base offset, length and leader epoch as in `place`."""
        try:
            if (type(data) is memoryview and data.readonly) or type(data) is bytes:
                head = PLACE.pack(*place)
                written = self._files.pwritev(segment.fileno, (head, memoryview(data)[PLACE.size :]), segment.size)
            else:
                PLACE.pack_into(data, 0, *place)
                written = self._files.pwrite(segment.fileno, data, segment.size)
            if written != size:  # a disk that is nearly full takes a part: try the rest
                whole = PLACE.pack(*place) + bytes(data[PLACE.size :])
                write_all(self._files, segment.fileno, memoryview(whole)[written:], segment.size + written)
        except OSError as error:
            self._torn = True
            raise LogDirFailed(str(self.directory.parent), str(error)) from error

    def append_as_follower(self, records: Buffer, *, now_ms: int) -> AppendResult:
        """Append the leader's batches as they are, a cut last one left out.

        Raises:
            KafkaError: CORRUPT_MESSAGE, or OFFSET_OUT_OF_RANGE where they do not begin at or past the log's end.
            LogDirFailed: the write failed.
        """
        view = memoryview(records)
        first_offset = -1
        for position, header in split_batches(view, allow_partial=True):
            data = view[position : position + header.size]
            if crc32c(data[CRC_START:]) != header.crc:
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"The leader's batch at offset {header.base_offset} fails its CRC.")
            if header.base_offset < self.log_end_offset or header.last_offset_delta < 0:
                raise KafkaError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"The leader's batch at offset {header.base_offset} does not follow {self.log_end_offset}.",
                )
            first_offset = header.base_offset if first_offset < 0 else first_offset
            self._append_leaders_batch(header, data, now_ms)
        return AppendResult(first_offset, self.log_end_offset - 1, NO_TIMESTAMP, self.log_start_offset, False)

    def _append_leaders_batch(self, header: BatchHeader, data: memoryview, now_ms: int) -> None:
        if header.partition_leader_epoch > self._epochs.latest:
            self._assign_epoch(header.partition_leader_epoch, header.base_offset)
        segment = self._segment_for(header.size, header, now_ms)
        try:
            write_all(self._files, segment.fileno, data, segment.size)
        except OSError as error:
            self._torn = True
            raise LogDirFailed(str(self.directory.parent), str(error)) from error
        segment.appended(header.last_offset, header.size, header.max_timestamp, self.config.index_interval_bytes)
        self.log_end_offset = header.last_offset + 1
        self.size_bytes += header.size
        if header.producer_id >= 0:
            self._count_producer(segment, header, header.base_offset, data)

    def _check_marker(self, header: BatchHeader, data: Buffer) -> None:
        marker = next(iterate_records(data), None)
        decision = parse_marker(marker) if marker is not None else None
        if decision is not None:
            self._producers.check_marker(header, decision[1])

    def _count_producer(self, segment: Segment, header: BatchHeader, base_offset: int, data: Buffer) -> None:
        if not header.is_control:
            self._producers.update(header, base_offset)
            return
        marker = next(iterate_records(data), None)
        if marker is None:
            return
        completed = self._producers.update_marker(header, marker._replace(offset=base_offset + header.last_offset_delta))
        if completed is not None and completed.aborted:
            aborted_of(segment).append(completed)

    def begin_epoch(self, leader_epoch: int) -> None:
        """What is appended from here on is of `leader_epoch`; writes a file, which the first append then need not."""
        if leader_epoch > self._epochs.latest:
            self._assign_epoch(leader_epoch, self.log_end_offset)

    def _assign_epoch(self, leader_epoch: int, offset: int) -> None:
        self._epochs.assign(leader_epoch, offset)
        self._save_epochs()

    def _save_epochs(self) -> None:
        """Write the epochs down; the next flush makes that durable."""
        path = self.directory / checkpoints.LEADER_EPOCHS
        try:
            checkpoints.write_leader_epochs(self._files, path, self._epochs.entries)
        except OSError as error:
            raise LogDirFailed(str(self.directory.parent), str(error)) from error
        self._epochs_unsynced = True

    def _sync_epochs(self) -> None:
        """Block until the file of epochs is on the disk. It is not written here: that is the loop's."""
        if not self._epochs_unsynced:
            return
        self._epochs_unsynced = False
        try:
            sync_file(self._files, self.directory / checkpoints.LEADER_EPOCHS)
            self._files.sync_directory(self.directory)
        except OSError as error:
            if self._closed:  # deleted meanwhile: its folder has another name
                return
            self._epochs_unsynced = True
            raise LogDirFailed(str(self.directory.parent), str(error)) from error

    # Rolling

    @property
    def _active(self) -> Segment:
        return self._segments[-1]

    def _plan_roll(self) -> None:
        """Work out bounds below which nothing ends the active segment, so that an append has three numbers to compare."""
        segment, config = self._active, self.config
        first = segment.load_first_timestamp()
        self._roll_time = -1 if first is None else (MAX_INT64 if first < 0 else first + config.segment_ms)
        self._roll_offset = segment.base_offset + MAX_RELATIVE_OFFSET
        room = config.segment_index_bytes - max(segment.index.size_bytes, segment.time_index.size_bytes)
        # An index grows by an entry for every interval at most.
        unfilled = segment.size + room // TIME_ENTRY.size * config.index_interval_bytes
        self._roll_size = min(config.segment_bytes, unfilled)

    def _segment_for(self, size: int, header: BatchHeader, now_ms: int) -> Segment:
        """The segment for a batch of `size` bytes that is past one of the bounds: the active one, or a new one."""
        segment, config = self._active, self.config
        is_far = header.last_offset > segment.base_offset + MAX_RELATIVE_OFFSET
        if segment.size and not is_far:
            index_bytes = max(segment.index.size_bytes, segment.time_index.size_bytes)
            first = segment.load_first_timestamp()
            is_full = segment.size + size > config.segment_bytes or index_bytes + TIME_ENTRY.size > config.segment_index_bytes
            is_old = first is not None and first >= 0 and header.max_timestamp - first > config.segment_ms
        if is_far or (segment.size and (is_full or is_old)):
            segment = self._roll(now_ms, header.base_offset)
        if not segment.size and header.max_timestamp >= 0:
            segment.first_timestamp = header.max_timestamp
        self._plan_roll()
        return segment

    def maybe_roll(self, now_ms: int) -> bool:
        """Begin a new segment if the active one is as old as `segment.ms` allows; whether it did."""
        segment = self._active
        first = segment.load_first_timestamp()
        if first is None:
            return False
        began = first if first >= 0 else segment.created_ms
        if now_ms - began <= self.config.segment_ms:
            return False
        self._roll(now_ms, self.log_end_offset)
        return True

    def _roll(self, now_ms: int, offset: int) -> Segment:
        """Seal the active segment and begin another at `offset`, the log's end or, on a follower, behind a gap there."""
        sealed = self._active
        try:
            self._cut_torn()
            if sealed.size:
                sealed.seal()
                self.snapshot()
            segment = Segment.create(self._files, self.directory, offset, now_ms)
            if not sealed.size:
                remove_segment_files(self._files, sealed)
                del self._segments[-1], self._bases[-1]
        except OSError as error:
            raise LogDirFailed(str(self.directory.parent), str(error)) from error
        sealed.next_offset = offset
        self._segments.append(segment)
        self._bases.append(offset)
        self._plan_roll()
        return segment

    def snapshot(self) -> None:
        """Write down the producers as they are at the log's end."""
        path = self.directory / file_name(self.log_end_offset, SNAPSHOT_SUFFIX)
        self._files.replace_file(path, encode_snapshot(self._producers), sync=False)

    # Reading

    def read(self, offset: int, max_bytes: int, *, limit_offset: int, minimum_one: bool) -> FileRegion | None:
        """Whole batches from the one that holds `offset` on, ending before `limit_offset`; None if there are none.

        Args:
            max_bytes: bound on the size.
            minimum_one: the first batch comes even if it alone is larger.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE outside [log start offset, log end offset].
        """
        if offset >= limit_offset and self.log_start_offset <= offset <= self.log_end_offset:
            return None
        segments = self._segments
        segment = segments[-1]
        slot = -1
        if offset < self.log_start_offset or offset > self.log_end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if offset < segment.base_offset:
            slot = bisect_right(self._bases, offset) - 1
            segment = segments[slot]
        found = segment.find(offset)
        while found is None:  # the segment ends in a gap
            if slot == -1 or slot + 1 == len(segments):
                return None
            slot += 1
            segment = segments[slot]
            found = segment.find(offset)
        start = found.position
        end = segment.size
        if limit_offset < segment.next_offset:
            limit = segment.find(limit_offset)
            end = end if limit is None else limit.position
        if end - start > max_bytes:
            end = segment.whole_batches_end(start, start + max_bytes)
            if end <= start and minimum_one:
                end = start + segment.batch_size(start)
        return FileRegion(segment.fileno, start, end - start, found.base_offset) if end > start else None

    def offset_for_timestamp(self, timestamp_ms: int) -> TimestampedOffset | None:
        """The first record at or after a time; None if there is none."""
        return first_at_or_after(self._segments, timestamp_ms, self.log_start_offset)

    def offset_of_max_timestamp(self) -> TimestampedOffset | None:
        """The first record that has the largest time in the log; None in an empty log."""
        return None if self.log_start_offset == self.log_end_offset else newest(self._segments, self.log_start_offset)

    @property
    def active_base_offset(self) -> int:
        """Base offset of the segment that grows; everything below it is sealed."""
        return self._bases[-1]

    @property
    def first_offset(self) -> int:
        """Base offset of the oldest segment; `log_start_offset` is at or past it."""
        return self._bases[0]

    # Epochs and transactions

    @property
    def latest_epoch(self) -> int:
        """The leader epoch of the last record, -1 before the first."""
        return self._epochs.latest

    def epoch_at(self, offset: int) -> int:
        """The leader epoch in which the record at `offset` was or will be written, -1 if unknown."""
        return self._epochs.epoch_of(offset)

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """The largest epoch up to this one and the offset its records end before; (-1, -1) where that is unknown (KIP-101)."""
        return self._epochs.end_offset_for(leader_epoch, self.log_end_offset)

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Where the first transaction begins that readers of committed records may not pass; None without one."""
        return self._producers.first_unstable_offset(high_watermark)

    def aborted_transactions(self, first_offset: int, end_offset: int) -> list[CompletedTransaction]:
        """The aborted transactions with records in [first_offset, end_offset)."""
        found = []
        for segment in self._segments[max(0, bisect_right(self._bases, first_offset) - 1) :]:
            for entry in aborted_of(segment):
                if entry.last_offset >= first_offset and entry.first_offset < end_offset:
                    found.append(entry)
                if entry.last_stable_offset >= end_offset:
                    return found
        return found

    def producers(self) -> list[ProducerDescription]:
        """Everyone who wrote with a producer id and is not forgotten yet."""
        return [
            ProducerDescription(
                e.producer_id, e.epoch, e.last_sequence, e.last_timestamp, e.coordinator_epoch, e.transaction_first_offset
            )
            for e in self._producers
        ]

    def expire_producers(self, now_ms: int) -> int:
        """Forget producers that were silent for `producer_id_expiration_ms`; how many."""
        return self._producers.expire(now_ms, self.producer_id_expiration_ms)

    # Removing

    def delete_records_before(self, offset: int) -> None:
        """Move the log's start up to `offset`; whole segments below it are detached.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE past the end.
        """
        if offset > self.log_end_offset or offset < 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if offset <= self.log_start_offset:
            return
        self.log_start_offset = offset
        self._epochs.truncate_from_start(offset)
        self._save_epochs()
        self._detach(self._count_below_start())

    def delete_retained(self, now_ms: int) -> int:
        """Detach the oldest segments that `retention.ms` and `retention.bytes` no longer keep; how many.

        An active segment of which all is too old is rolled and goes too, so that an idle topic empties.
        """
        config = self.config
        if "delete" not in config.cleanup_policy:
            return self._detach(self._count_below_start())
        count, size = 0, self.size_bytes
        for segment in self._segments[:-1]:
            too_much = 0 <= config.retention_bytes <= size - segment.size
            if not (self._is_too_old(segment, now_ms) or too_much or segment.next_offset <= self.log_start_offset):
                break
            count, size = count + 1, size - segment.size
        if count == len(self._segments) - 1 and self._active.size and self._is_too_old(self._active, now_ms):
            self._roll(now_ms, self.log_end_offset)
            count += 1
        if count:
            self.log_start_offset = max(self.log_start_offset, self._segments[count].base_offset)
            self._epochs.truncate_from_start(self.log_start_offset)
            self._save_epochs()
        return self._detach(count)

    def _is_too_old(self, segment: Segment, now_ms: int) -> bool:
        newest = segment.max_timestamp if segment.max_timestamp >= 0 else segment.created_ms
        return 0 <= self.config.retention_ms < now_ms - newest

    def _count_below_start(self) -> int:
        """How many segments lie wholly below the log's start."""
        return sum(following.base_offset <= self.log_start_offset for _, following in pairwise(self._segments))

    def _detach(self, count: int) -> int:
        """Give the first `count` segments up: their files are renamed now and removed later."""
        gone = self._segments[:count]
        if not gone:
            return 0
        first_kept = self._segments[count].base_offset
        self._use_segments(self._segments[count:])
        doomed = [path for segment in gone for path in self._rename_segment(segment)]
        for offset in snapshot_offsets(self._files, self.directory):
            if offset < first_kept:
                self._files.unlink(self.directory / file_name(offset, SNAPSHOT_SUFFIX))
        self._garbage.append(Garbage(self._files, doomed, [segment.close for segment in gone]))
        log.info("segments deleted directory=%s count=%d log_start_offset=%d", self.directory, count, self.log_start_offset)
        return count

    def _rename_segment(self, segment: Segment) -> list[Path]:
        renamed = []
        for suffix in SUFFIXES:
            path = self.directory / file_name(segment.base_offset, suffix)
            if self._files.exists(path):
                target = path.with_name(path.name + DELETED_SUFFIX)
                self._files.rename(path, target)
                renamed.append(target)
        return renamed

    def take_garbage(self) -> list[Garbage]:
        """What was detached since the last time; the caller removes it in a thread after `file.delete.delay.ms`."""
        garbage, self._garbage = self._garbage, []
        return garbage

    def truncate_to(self, offset: int) -> None:
        """Drop the records at and past `offset`; a batch that holds it goes as a whole."""
        if offset >= self.log_end_offset:
            return
        if offset < self._segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return
        with self._recovery_lock:
            self._truncations += 1
        keep = bisect_right(self._bases, offset)
        gone, self._segments = self._segments[keep:], self._segments[:keep]
        for segment in gone:  # after they left the list that a flush goes by
            remove_segment_files(self._files, segment)
        segment = self._segments[-1]
        if segment.index.sealed:
            segment.activate()
        found = segment.find(offset)
        if found is not None:
            segment.truncate(found.position)
        self._torn = False
        self._use_segments(self._segments)
        self._forget_past_end()

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; the next record gets `offset`."""
        with self._recovery_lock:
            self._truncations += 1
        created_ms = self._active.created_ms
        gone, self._segments = self._segments, []
        for segment in gone:
            remove_segment_files(self._files, segment)
        self.log_start_offset = offset
        self._torn = False
        self._use_segments([Segment.create(self._files, self.directory, offset, created_ms)])
        for stale in snapshot_offsets(self._files, self.directory):
            self._files.unlink(self.directory / file_name(stale, SNAPSHOT_SUFFIX))
        self._forget_past_end()
        self.recovery_point = offset

    def _forget_past_end(self) -> None:
        """Bring everything else back to the log's new end."""
        with self._recovery_lock:
            self._truncations += 1
            self.recovery_point = min(self.recovery_point, self.log_end_offset)
        self.log_start_offset = min(self.log_start_offset, self.log_end_offset)
        self._epochs.truncate_from_end(self.log_end_offset)
        self._save_epochs()
        for segment in self._segments:
            aborted_of(segment).truncate(self.log_end_offset)
        self._producers = load_producers(self._files, self.directory, self._segments)

    def _use_segments(self, segments: list[Segment]) -> None:
        self._segments = segments
        self._bases = [segment.base_offset for segment in segments]
        self.size_bytes = sum(segment.size for segment in segments)
        self.log_end_offset = segments[-1].next_offset
        self._plan_roll()

    # Keeping

    def is_flush_due(self, now_ms: int) -> bool:
        """Whether `flush.messages` or `flush.ms` ask for a `flush` before more is acknowledged."""
        waiting = self.log_end_offset - self.recovery_point
        seen, seen_ms = self._flush_seen
        if not waiting or seen != self.recovery_point:
            self._flush_seen, seen_ms = (self.recovery_point, now_ms), now_ms
        return waiting > 0 and (waiting >= self.config.flush_messages or now_ms - seen_ms >= self.config.flush_ms)

    def flush(self, up_to_offset: int | None = None) -> None:
        """Block until the records below `up_to_offset` (all, if None) are on the disk. Safe in a thread while the loop appends.

        Raises:
            LogDirFailed: the disk does not work; the recovery point stays.
        """
        truncations, segments = self._truncations, list(self._segments)
        end = self.log_end_offset if up_to_offset is None else min(up_to_offset, self.log_end_offset)
        start = self.recovery_point
        if end <= start:
            return
        for segment in segments:
            if segment.next_offset > start and segment.base_offset < end:
                self._sync_segment(segment, truncations)
        self._sync_epochs()
        with self._recovery_lock:
            if self._truncations == truncations:
                self.recovery_point = max(self.recovery_point, end)

    def _sync_segment(self, segment: Segment, truncations: int) -> None:
        try:
            segment.sync()
            aborted_of(segment).sync()
        except OSError as error:
            removed = self._closed or segment not in self._segments or self._truncations != truncations
            if not removed:
                raise LogDirFailed(str(self.directory.parent), str(error)) from error

    def update_config(self, config: TopicConfig) -> None:
        self.config = config
        self._plan_roll()

    def close(self) -> None:
        """Flush, write down what opening again needs, and let go of the files; a log that did not change costs nothing."""
        if self._closed:
            return
        self._closed = True
        if self._as_on_disk == self._extent and not self._torn:
            self._close_files()
            return
        try:
            self._cut_torn()
            self._active.add_time_entry()
            for index in (self._active.index, self._active.time_index):
                index.write(exact=True)
            self.snapshot()
            self._save_epochs()
            self.flush()
        except OSError as error:
            raise LogDirFailed(str(self.directory.parent), str(error)) from error
        finally:
            self._close_files()

    def abandon(self) -> None:
        """Let go of the files as they are, as a crash would; the next `open` recovers."""
        self._closed = True
        self._close_files()

    def detach_all(self) -> Garbage:
        """Stop using the folder, which is about to be renamed; its descriptors stay open for reads under way."""
        self._closed = True
        garbage, self._garbage = self._garbage, []
        return Garbage(self._files, [], [segment.close for segment in self._segments], garbage)

    def check_open(self) -> None:
        if self._closed:
            raise Closed(f"log {self.directory.name}")

    def _close_files(self) -> None:
        for garbage in self.take_garbage():
            garbage.remove()
        for segment in self._segments:
            segment.close()

    def _cut_torn(self) -> None:
        if self._torn:
            self._files.truncate(self._active.fileno, self._active.size)
            self._torn = False

    def _load_topic_id(self) -> None:
        path = self.directory / checkpoints.PARTITION_METADATA
        known = checkpoints.read_partition_metadata(self._files, path)
        if known is not None:
            self.topic_id = known
        elif self.topic_id is not None:
            checkpoints.write_partition_metadata(self._files, path, self.topic_id)


def _too_large_for_segment(size: int, config: TopicConfig) -> KafkaError:
    return KafkaError(
        ErrorCode.RECORD_LIST_TOO_LARGE,
        f"Message batch size is {size} bytes, which exceeds the maximum configured segment size of {config.segment_bytes}.",
    )
