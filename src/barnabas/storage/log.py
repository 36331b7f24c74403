"""The log of one partition: what is appended, in order, for as long as it is kept.

Owns the segments of one folder, where the log begins and ends, the leader epochs, the producers' state.

Rules
  1. Offsets grow and are dense on the leader; `log_end_offset` is the next one to be given.
  2. A batch is checked, then written, then counted: if any step fails, nothing has changed that a reader could see.
  3. The buffer that is handed in is not kept. If it can be written to, base offset and leader epoch are set in it.
  4. Everything is called from one thread, apart from `FlushPlan.run`, which blocks and runs in another.
  5. A region handed out by `read` stays readable until the loop runs again; who sends later duplicates the descriptor. Files
     are removed in two steps, so that a removal never meets a read: detached here, at once, and deleted by `Garbage.remove`.

How it works: an append is a header parse, the checks, one `pwrite` at the end of the active segment's file, and arithmetic. A
read is a lookup of two positions. Both are written out in one piece, for they are run for every request. What is not on their way
lies beside: the list of segments (`segments`), when to begin another (`rolling`), which to let go (`retention`), bringing all to the
disk (`flushing`), the leader epochs (`epoch_file`).

An operation that the disk refuses for lack of room (`StorageExhausted`) has changed nothing; one that meets any other error raises
`LogDirFailed`, and the log directory is not used any more.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from barnabas.config.topic import TopicConfig
from barnabas.error_codes import ErrorCode
from barnabas.errors import (
    Closed,
    CorruptLog,
    KafkaError,
    LogDirFailed,
    SegmentsGone,
    StorageError,
    StorageExhausted,
)
from barnabas.protocol.records.header import (
    HEADER,
    LENGTH_OVERHEAD,
    MAGIC,
    NO_TIMESTAMP,
    PLACE,
    BatchHeader,
    Buffer,
    only_batch,
)
from barnabas.protocol.records.record import iterate_records
from barnabas.protocol.records.scan import Run
from barnabas.protocol.records.validate import AppendOrigin, validate_batch
from barnabas.storage import checkpoints
from barnabas.storage.epoch_file import EpochFile
from barnabas.storage.faults import storage_error
from barnabas.storage.files import Files, write_all
from barnabas.storage.flushing import Flusher, FlushPlan
from barnabas.storage.garbage import Garbage
from barnabas.storage.loader import aborted_of, load_log, load_producers, remove_segment_files, snapshot_offsets
from barnabas.storage.markers import parse_marker
from barnabas.storage.open_files import OpenFiles
from barnabas.storage.producer_state import (
    KEPT_BATCHES,
    CompletedTransaction,
    LastWrite,
    ProducerDescription,
    ProducerStates,
)
from barnabas.storage.reading import FileRegion, read_region
from barnabas.storage.replicated import good_batches, stretch_from
from barnabas.storage.retention import count_not_retained
from barnabas.storage.rolling import MAX_RELATIVE_OFFSET, is_older_than_segment_ms, must_roll, roll_bounds
from barnabas.storage.segment import LARGE_BATCH_BYTES, SNAPSHOT_SUFFIX, Segment, file_name
from barnabas.storage.segments import Segments, retire
from barnabas.storage.snapshot import encode_snapshot
from barnabas.storage.time_search import TimestampedOffset, first_at_or_after, newest
from barnabas.storage.trust import NOTHING_FOLLOWS, Damage

__all__ = ["AppendOrigin", "AppendResult", "FileRegion", "Garbage", "Log", "ProducerDescription", "TimestampedOffset"]

log = logging.getLogger(__name__)

PRODUCER_ID_EXPIRATION_MS = 86_400_000  # Kafka's producer.id.expiration.ms
MAX_OFFSET = 2**63 - 1
MAX_SEGMENTS = 2**31
NO_LEADER_EPOCH = -1  # what producers write
CLIENT = AppendOrigin.CLIENT
STORED_AS_THEY_COME = ("producer", "uncompressed")  # compression.type under which batches without codec are
NEWEST_MS = 2**62  # beyond are no times of records
new_tuple = tuple.__new__  # makes a named tuple in half the time its own constructor takes


class AppendResult(NamedTuple):
    """Where a batch lies, or lay already if `duplicate`. `log_append_time_ms` is -1 where the producer's times are kept."""

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    duplicate: bool


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
        self.producer_id_expiration_ms = PRODUCER_ID_EXPIRATION_MS
        self._files = files
        self._open_files: OpenFiles | None = None
        self._segments: Segments
        self._epochs: EpochFile
        self._flusher: Flusher
        self._producers = ProducerStates()
        self._roll_size = self._roll_time = self._roll_offset = -1  # a batch past one of them may begin a new segment
        self._torn = False  # a write failed: bytes may lie behind the active segment's size
        self._garbage: list[Garbage] = []
        self._as_on_disk: tuple[int, int, int, int] | None = None  # `_extent` of which the files tell everything
        self._closed = False
        self._swapping: Segment | None = None  # the cleaned one
        self.lowest_truncation = MAX_OFFSET  # since whoever counts how far the log is clean has set it back

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
        cleaned_offset: int = 0,
        topic_id: UUID | None = None,
        producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
        open_files: OpenFiles | None = None,
        sync_name: bool = True,
    ) -> Log:
        """Open the log in `directory` (named `<topic>-<partition>`), or begin one there.

        Args:
            clean_shutdown: the log was closed, so its files are taken as they are.
            recovery_point: what a crash cannot have touched.
            cleaned_offset: compaction may have left gaps below it.
            topic_id: written down for a new log; for an existing one its own stands.
            open_files: bounds how many segments have their file open, of all logs that it was given to.
            sync_name: make the name of a new log's first segment durable; else the caller does, by `sync_name`, before it is used.

        Raises:
            CorruptLog: the folder holds something that no crash leaves behind.
            LogDirFailed: the disk does not work.
            StorageExhausted: it is full.
        """
        topic, _, partition = directory.name.rpartition("-")
        opened = cls(directory, topic, int(partition), topic_id, config, files)
        opened.producer_id_expiration_ms = producer_id_expiration_ms
        opened._open_files = open_files
        try:
            files.make_directory(directory)
            opened._load_topic_id(clean_shutdown=clean_shutdown)
            loaded = load_log(
                directory,
                files=files,
                config=config,
                now_ms=now_ms,
                clean_shutdown=clean_shutdown,
                recovery_point=recovery_point,
                log_start_offset=log_start_offset,
                cleaned_offset=cleaned_offset,
                sync_name=sync_name,
            )
        except OSError as error:
            raise storage_error(directory.parent, error) from error
        opened._epochs = EpochFile(files, directory, loaded.epochs, is_written=clean_shutdown)
        opened._producers = loaded.producers
        opened.log_start_offset = loaded.log_start_offset
        opened._segments = Segments(loaded.segments, open_files)
        end = opened.log_end_offset = opened._segments.active.next_offset
        opened._flusher = Flusher(
            files,
            directory,
            durable_end=end if clean_shutdown else min(recovery_point, end),
            is_folder_durable=clean_shutdown,
        )
        for segment in loaded.segments:
            segment.synced = clean_shutdown  # what a killed process made may not have a durable name yet
        opened._producers.expire(now_ms, producer_id_expiration_ms)
        if clean_shutdown or not opened.log_end_offset:
            opened._as_on_disk = opened._extent
        return opened

    def sync_name(self) -> None:
        """Make the names in the folder durable; blocks. Of many logs made one after the other, the first such call does most for all.

        Raises:
            LogDirFailed: the disk does not work.
        """
        try:
            self._files.sync_directory(self.directory)
        except OSError as error:
            raise LogDirFailed(str(self.directory.parent), str(error)) from error

    @property
    def _extent(self) -> tuple[int, int, int, int]:
        """Differs after every change: appends move the end, what moves it back counts as a truncation, a roll begins a segment."""
        return self.log_start_offset, self.log_end_offset, self.active_base_offset, self._flusher.truncations

    @property
    def recovery_point(self) -> int:
        """Everything below it is on the disk."""
        return self._flusher.recovery_point

    @property
    def durable_end(self) -> int:
        """Records below it survive the loss of power; at or past `recovery_point`."""
        return self._flusher.durable_end

    @property
    def unflushed_bytes(self) -> int:
        """Bytes of the active segment past the recovery point; all of them where it is not known how many lie before."""
        base, flushed = self._flusher.position
        active = self._segments.active
        return max(0, active.size - flushed) if base == active.base_offset else active.size

    @property
    def truncations(self) -> int:
        """Grows whenever records were dropped at the end: what was copied from the log's files before is not to be trusted."""
        return self._flusher.truncations

    @property
    def epoch_entries(self) -> list[tuple[int, int]]:
        """(leader epoch, its first offset), as they are to be in the file."""
        return self._epochs.epochs.entries

    @property
    def size_bytes(self) -> int:
        return self._segments.size_bytes

    # Appending

    def append_as_leader(
        self, records: Buffer, *, leader_epoch: int, now_ms: int, origin: AppendOrigin = AppendOrigin.CLIENT
    ) -> AppendResult:
        """Append the one batch in `records` at the end.

        Raises:
            KafkaError: as `only_batch` and `validate_batch`; also RECORD_LIST_TOO_LARGE,
                OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED.
            LogDirFailed: the write failed.
            StorageExhausted: the disk is full.
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
        if leader_epoch > self._epochs.epochs.latest:
            self._epochs.epochs.assign(leader_epoch, base_offset)
        segment = self._segments.active
        end = segment.size + size
        if end > self._roll_size or header.max_timestamp > self._roll_time or last_offset > self._roll_offset:
            segment = self._segment_for(size, header._replace(base_offset=base_offset), now_ms)

        self._write(segment, (base_offset, header.batch_length, leader_epoch), data, size)
        segment.appended(last_offset, size, header.max_timestamp, config.index_interval_bytes)
        self.log_end_offset = last_offset + 1
        if header.producer_id >= 0:
            self._count_producer(segment, header, base_offset, data)
        return new_tuple(AppendResult, (base_offset, last_offset, log_append_time, self.log_start_offset, False))

    def bounds_of_run(self, now_ms: int) -> tuple[int, int, int, int, int, bool] | None:
        """What the batches of a run must keep for `append_run`: the largest batch, the oldest and the newest time of a record, the bytes
        and the records there is room for, whether records must have keys. None where a batch is not stored as it comes."""
        config = self.config
        if config.message_timestamp_type != "CreateTime" or config.compression_type not in STORED_AS_THEY_COME:
            return None
        return (
            min(config.max_message_bytes, config.segment_bytes),
            max(now_ms - config.message_timestamp_before_max_ms, 0),
            min(now_ms + config.message_timestamp_after_max_ms, self._roll_time, NEWEST_MS),
            self._roll_size - self._segments.active.size,
            self._roll_offset - self.log_end_offset + 1,
            "compact" in config.cleanup_policy,
        )

    def append_run(self, run: Run, buffer: memoryview, *, leader_epoch: int) -> int | None:
        """Append batches that keep `bounds_of_run`, all or none, with one write; the first one's base offset.

        Args:
            run: where they lie in `buffer`, which can be written to; checked already.

        Returns:
            None where it takes more than that, or the first batch is there already, and nothing was done.

        Raises:
            KafkaError: as `append_as_leader`, for the producer of the batches.
            LogDirFailed, StorageExhausted: as `append_as_leader`.
        """
        if leader_epoch > self._epochs.epochs.latest:
            return None
        if run.has_producer:
            header = BatchHeader._make(HEADER.unpack_from(buffer, run.batches[0][1]))
            if self._producers.check(header, from_client=True) is not None:
                return None
        segment = self._segments.active
        offset, batches, place = self.log_end_offset, [], PLACE.pack_into
        for _, start, end, count, _ in run.batches:
            place(buffer, start, offset, end - start - LENGTH_OVERHEAD, leader_epoch)
            batches.append(buffer[start:end])
            offset += count
        size = run.size
        if size >= LARGE_BATCH_BYTES and segment.size + size > segment.reserved:
            segment.reserve(size)
        try:
            written = self._files.pwritev(segment.fileno, batches, segment.size)
            if written != size:
                write_all(self._files, segment.fileno, memoryview(b"".join(batches))[written:], segment.size + written)
        except OSError as error:
            for batch in batches:  # as the producers sent them: whoever words the refusals looks at them again
                PLACE.pack_into(batch, 0, 0, len(batch) - LENGTH_OVERHEAD, NO_LEADER_EPOCH)
            raise self._write_failed(error) from error
        first_offset, self.log_end_offset = self.log_end_offset, offset
        segment.appended_run(run, first_offset, self.config.index_interval_bytes)
        if run.has_producer:
            for _, start, *_ in run.batches[-KEPT_BATCHES:]:
                header = BatchHeader._make(HEADER.unpack_from(buffer, start))
                self._producers.update(header, header.base_offset)
        return first_offset

    def _write(self, segment: Segment, place: tuple[int, int, int], data: Buffer, size: int) -> None:
        """Write a batch at the segment's end, with base offset, length and leader epoch as in `place`."""
        if size >= LARGE_BATCH_BYTES and segment.size + size > segment.reserved:
            segment.reserve(size)
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
            if not memoryview(data).readonly:  # as the producer sent it: whoever words the refusal looks at it again
                PLACE.pack_into(data, 0, 0, place[1], NO_LEADER_EPOCH)
            raise self._write_failed(error) from error

    def _write_failed(self, error: OSError) -> StorageError:
        """A part of a batch may lie behind the end: it is cut, now if that works, else before the next roll or close."""
        self._torn = True
        with suppress(OSError):
            self._cut_torn()
        active = self._segments.active
        if not active.size:  # it is not the refused batch that its age counts from
            active.first_timestamp = None
            self._plan_roll()
        return storage_error(self.directory.parent, error)

    def append_as_follower(self, records: Buffer, *, now_ms: int) -> AppendResult:
        """Append the leader's batches as they are, a cut last one left out.

        Raises:
            KafkaError: CORRUPT_MESSAGE, or OFFSET_OUT_OF_RANGE where they do not begin at or past the log's end.
            LogDirFailed: the write failed.
            StorageExhausted: the disk is full.
        """
        view = memoryview(records)
        headers, fault = good_batches(view, self.log_end_offset)
        at = position = 0
        while at < len(headers):
            stop, size = self._append_stretch(headers, at, view[position:], now_ms)
            at, position = stop, position + size
        if fault is not None:
            raise fault
        first_offset = headers[0].base_offset if headers else -1
        return AppendResult(first_offset, self.log_end_offset - 1, NO_TIMESTAMP, self.log_start_offset, False)

    def _append_stretch(self, headers: Sequence[BatchHeader], at: int, data: memoryview, now_ms: int) -> tuple[int, int]:
        """Write the leader's batches from number `at` on, which `data` begins with, as far as one write goes; see `stretch_from`."""
        header = headers[at]
        if header.partition_leader_epoch > self._epochs.epochs.latest:
            self._epochs.epochs.assign(header.partition_leader_epoch, header.base_offset)
        segment = self._segments.active
        end, last_offset = segment.size + header.size, header.last_offset
        if end > self._roll_size or header.max_timestamp > self._roll_time or last_offset > self._roll_offset:
            segment = self._segment_for(header.size, header, now_ms)
        room = self._roll_size - segment.size
        stop, size = stretch_from(headers, at, room=room, time=self._roll_time, offset=self._roll_offset)
        if size >= LARGE_BATCH_BYTES and segment.size + size > segment.reserved:
            segment.reserve(size)
        try:
            write_all(self._files, segment.fileno, data[:size], segment.size)
        except OSError as error:
            raise self._write_failed(error) from error
        interval, position = self.config.index_interval_bytes, 0
        for header in headers[at:stop]:
            batch_size = header.batch_length + LENGTH_OVERHEAD
            segment.appended(header.base_offset + header.last_offset_delta, batch_size, header.max_timestamp, interval)
            self.log_end_offset = segment.next_offset
            if header.producer_id >= 0:
                self._count_producer(segment, header, header.base_offset, data[position : position + batch_size])
            position += batch_size
        return stop, size

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
            try:
                aborted_of(segment).append(completed)
            except OSError as error:
                # The marker is in the log. Readers of committed records must not get past it without this entry, so even a full disk
                # takes the log out of use; the next start makes the entry from the marker.
                raise LogDirFailed(str(self.directory.parent), str(error)) from error

    def begin_epoch(self, leader_epoch: int) -> None:
        """What is appended from here on is of `leader_epoch`."""
        if leader_epoch > self._epochs.epochs.latest:
            self._epochs.epochs.assign(leader_epoch, self.log_end_offset)

    # Rolling

    def _plan_roll(self) -> None:
        self._roll_size, self._roll_time, self._roll_offset = roll_bounds(self._segments.active, self.config)

    def _segment_for(self, size: int, header: BatchHeader, now_ms: int) -> Segment:
        """The segment for a batch of `size` bytes that is past one of the bounds: the active one, or a new one."""
        segment = self._segments.active
        if must_roll(segment, self.config, size, header):
            # A gap, as a follower of a compacted log has, goes into the segment it comes before: where one ends early, its tail was lost.
            within_reach = header.last_offset <= self.log_end_offset + MAX_RELATIVE_OFFSET
            segment = self._roll(now_ms, self.log_end_offset if within_reach and segment.size else header.base_offset)
        if not segment.size and header.max_timestamp >= 0:
            segment.first_timestamp = header.max_timestamp
        self._plan_roll()
        return segment

    def maybe_roll(self, now_ms: int) -> bool:
        """Begin a new segment if the active one is as old as `segment.ms` allows; whether it did."""
        if not is_older_than_segment_ms(self._segments.active, self.config, now_ms):
            return False
        self._roll(now_ms, self.log_end_offset)
        return True

    def _roll(self, now_ms: int, offset: int) -> Segment:
        """Seal the active segment and begin another at `offset`, the log's end or, on a follower, behind a gap that is too wide.

        Everything that takes room comes first, so that a full disk leaves the active segment as it was.
        """
        sealed = self._segments.active
        assert sealed.size or offset > sealed.base_offset, "a segment does not follow itself"
        segment = None
        try:
            self._cut_torn()
            if sealed.size:
                self.snapshot()
                sealed.write_indexes()
            segment = Segment.create(self._files, self.directory, offset, now_ms, self.config.preallocated_bytes)
            if sealed.size:
                sealed.seal()
            else:
                remove_segment_files(self._files, sealed)
        except OSError as error:
            if segment is not None:
                segment.close()
            raise storage_error(self.directory.parent, error) from error
        sealed.next_offset = offset
        if sealed.size:
            self._segments.append(segment)
        else:
            self._segments.replace_active(segment)
        self._plan_roll()
        return segment

    def snapshot(self) -> None:
        """Write down the producers as they are at the log's end."""
        path = self.directory / file_name(self.log_end_offset, SNAPSHOT_SUFFIX)
        self._files.replace_file(path, encode_snapshot(self._producers), sync=False)

    # Reading

    def read(
        self, offset: int, max_bytes: int, *, limit_offset: int, minimum_one: bool, as_stored: bool = False
    ) -> FileRegion | None:
        """Whole batches from the one that holds `offset` on, ending before `limit_offset`; None if there are none.

        Args:
            max_bytes: bound on the size.
            minimum_one: the first batch comes even if it alone is larger.
            as_stored: batches that compaction emptied are not stepped over, for who copies the log.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE outside [log start offset, log end offset].
            CorruptLog: what lies there is damaged beyond telling where it ends.
            OSError: the disk fails.
        """
        if offset >= limit_offset and self.log_start_offset <= offset <= self.log_end_offset:
            return None
        if offset < self.log_start_offset or offset > self.log_end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        return read_region(self._segments, offset, max_bytes, limit_offset, minimum_one=minimum_one, as_stored=as_stored)

    def bounded(self, damage: Damage) -> Damage:
        """The same damage; where nothing whole follows it in its file, it reaches to the end of the segment."""
        if damage.next_offset != NOTHING_FOLLOWS:
            return damage
        return damage._replace(next_offset=self._segments.starting_at(damage.first_offset)[0].next_offset)

    def offset_for_timestamp(self, timestamp_ms: int) -> TimestampedOffset | None:
        """The first record at or after a time; None if there is none."""
        return first_at_or_after(self._segments, timestamp_ms, self.log_start_offset)

    def offset_of_max_timestamp(self) -> TimestampedOffset | None:
        """The first record that has the largest time in the log; None in an empty log."""
        return None if self.log_start_offset == self.log_end_offset else newest(self._segments, self.log_start_offset)

    @property
    def active_base_offset(self) -> int:
        """Base offset of the segment that grows; everything below it is sealed."""
        return self._segments.active.base_offset

    @property
    def first_offset(self) -> int:
        """Base offset of the oldest segment; `log_start_offset` is at or past it."""
        return self._segments.bases[0]

    def segment_end(self, offset: int) -> int:
        """The offset that the segment which `offset` falls in ends before."""
        return self._segments.starting_at(offset)[0].next_offset

    # Epochs and transactions

    @property
    def latest_epoch(self) -> int:
        """The leader epoch of the last record, -1 before the first."""
        return self._epochs.epochs.latest

    def epoch_at(self, offset: int) -> int:
        """The leader epoch in which the record at `offset` was or will be written, -1 if unknown."""
        return self._epochs.epochs.epoch_of(offset)

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """The largest epoch up to this one and the offset its records end before; (-1, -1) where that is unknown (KIP-101)."""
        return self._epochs.epochs.end_offset_for(leader_epoch, self.log_end_offset)

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Where the first transaction begins that readers of committed records may not pass; None without one."""
        return self._producers.first_unstable_offset(high_watermark)

    def is_in_transaction(self, producer_id: int, epoch: int) -> bool:
        """Whether a producer's transaction, of this epoch, is open here."""
        return self._producers.is_in_transaction(producer_id, epoch)

    def markers_of(self, producer_id: int) -> int:
        """Another number after each marker of a producer."""
        return self._producers.markers_of(producer_id)

    def aborted_transactions(self, first_offset: int, end_offset: int) -> list[CompletedTransaction]:
        """The aborted transactions with records in [first_offset, end_offset)."""
        found = []
        for segment in self._segments.starting_at(first_offset):
            for entry in aborted_of(segment):
                if entry.last_offset >= first_offset and entry.first_offset < end_offset:
                    found.append(entry)
                if entry.last_stable_offset >= end_offset:
                    return found
        return found

    def producers(self) -> list[ProducerDescription]:
        """Everyone who wrote with a producer id and is not forgotten yet."""
        return self._producers.describe()

    def last_writes(self) -> dict[int, LastWrite]:
        """For each producer, what compaction must leave of it."""
        return self._producers.last_writes()

    def expire_producers(self, now_ms: int) -> int:
        """Forget producers that were silent for `producer_id_expiration_ms`; how many."""
        return self._producers.expire(now_ms, self.producer_id_expiration_ms)

    # Removing

    def delete_records_before(self, offset: int) -> None:
        """Move the log's start up to `offset`; whole segments below it go with the next `detach_below_start`.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE past the end.
        """
        if offset > self.log_end_offset or offset < 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if offset <= self.log_start_offset:
            return
        self.log_start_offset = offset
        self._epochs.epochs.truncate_from_start(offset)

    def apply_retention(self, now_ms: int, *, committed_end: int = MAX_OFFSET) -> int:
        """Move the log's start past the segments that `retention.ms` and `retention.bytes` no longer keep.

        An active segment of which all is too old is rolled and goes too, so that an idle topic empties.

        Args:
            committed_end: segments with records at or past it stay.

        Returns:
            How many segments lie below the start, for `detach_below_start`. Before that the start is to be written down and synced:
            the system may keep the removal of one segment and forget that of an older one, and only the start tells then that
            nothing is missing between them.
        """
        if self.is_swapping:
            return 0
        count = count_not_retained(self._segments, self.config, self.log_start_offset, now_ms, committed_end)
        if count == len(self._segments):
            try:
                self._roll(now_ms, self.log_end_offset)
            except StorageExhausted:
                count -= 1  # the sealed ones go, which makes room
        if count and self._segments.bases[count] > self.log_start_offset:
            self.log_start_offset = self._segments.bases[count]
            self._epochs.epochs.truncate_from_start(self.log_start_offset)
        return self._segments.count_below(self.log_start_offset)

    def detach_below_start(self, most: int = MAX_SEGMENTS) -> None:
        """Give up the segments that lie wholly below the log's start, the oldest `most` of them: their files are renamed now and removed
        later. A swap under way is not disturbed: they go the next time then."""
        count = min(most, self._segments.count_below(self.log_start_offset))
        if not count or self.is_swapping:
            return
        gone = self._segments.detach_first(count)
        try:
            for offset in snapshot_offsets(self._files, self.directory):
                if offset < self.first_offset:
                    self._files.unlink(self.directory / file_name(offset, SNAPSHOT_SUFFIX))
            self._garbage.append(retire(self._files, gone))
        except OSError as error:
            self._garbage.append(Garbage(self._files, [], [segment.close for segment in gone]))
            raise LogDirFailed(str(self.directory.parent), str(error)) from error
        log.info("segments deleted directory=%s count=%d log_start_offset=%d", self.directory, count, self.log_start_offset)

    # Compaction, which `compaction.replacing` leads through these

    @property
    def segments(self) -> Segments:
        """For looking at; what changes them are the methods of this class."""
        return self._segments

    @property
    def files(self) -> Files:
        return self._files

    @property
    def is_swapping(self) -> bool:
        """Whether files are being renamed in a thread: which segment a name is of is uncertain until that is done.

        It takes a few syncs; retention, truncations and moves wait until it is over.
        """
        return self._swapping is not None

    def begin_swap(self, replaced: Sequence[int], cleaned: Segment) -> list[Segment]:
        """Put `cleaned` in the place of the sealed neighbours that begin at `replaced`; they are answered, their files untouched.

        Until `end_swap` the log lets go of no other segments.

        Raises:
            SegmentsGone: they are not neighbours of this log any more.
        """
        segments = self._segments
        start = bisect_left(segments.bases, replaced[0])
        old = segments.sealed[start : start + len(replaced)]
        is_here = cleaned.directory == self.directory  # not so if the log has moved to another log directory meanwhile
        if self._closed or self.is_swapping or not is_here or [segment.base_offset for segment in old] != list(replaced):
            raise SegmentsGone(self.directory.name)
        segments.replace(old, [cleaned])
        cleaned.created_ms = old[-1].created_ms
        self._swapping = cleaned
        return old

    def end_swap(self, garbage: Garbage) -> None:
        """The swap is done; `garbage` is what was replaced."""
        self._swapping = None
        self._garbage.append(garbage)

    def take_garbage(self) -> list[Garbage]:
        """What was detached since the last time; the caller removes it in a thread after `file.delete.delay.ms`."""
        garbage, self._garbage = self._garbage, []
        return garbage

    def truncate_to(self, offset: int) -> None:
        """Drop the records at and past `offset`; a batch that holds it goes as a whole. Not while it reaches segments that are swapped.

        An epoch that began at the end, and got no records before another leader was chosen, is forgotten as well.
        """
        assert self._swapping is None or offset >= self._swapping.next_offset, "who truncates waits for the swap"
        if offset >= self.log_end_offset:
            self._epochs.epochs.truncate_from_end(offset)
            return
        if offset < self.first_offset:
            self.truncate_fully_and_start_at(offset)
            return
        self._flusher.truncating()
        for segment in self._segments.detach_behind(offset):  # removed after they left the list that a flush goes by
            remove_segment_files(self._files, segment)
        segment = self._segments.active
        if segment.index.sealed:
            segment.activate()
        found = segment.find(offset)
        if found is not None:
            segment.truncate(found.position)
        self._truncated()

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; the next record gets `offset`. Not while segments are swapped."""
        assert not self.is_swapping, "who truncates waits for the swap"
        self._flusher.truncating()
        created_ms = self._segments.active.created_ms
        for segment in self._segments:
            remove_segment_files(self._files, segment)
        self.log_start_offset = offset
        first = Segment.create(self._files, self.directory, offset, created_ms, self.config.preallocated_bytes)
        self._segments.start_over(first)
        for stale in snapshot_offsets(self._files, self.directory):
            self._files.unlink(self.directory / file_name(stale, SNAPSHOT_SUFFIX))
        self._truncated()
        self._flusher.start_over(offset)

    def _truncated(self) -> None:
        """Bring everything else back to the log's new end."""
        self._torn = False
        end = self.log_end_offset = self._segments.active.next_offset
        self.lowest_truncation = min(self.lowest_truncation, end)
        self._plan_roll()
        self._flusher.truncated(end)
        self.log_start_offset = min(self.log_start_offset, end)
        self._epochs.epochs.truncate_from_end(end)
        for segment in self._segments:
            aborted_of(segment).truncate(end)
        self._producers = load_producers(
            self._files, self.directory, list(self._segments), snapshot_offsets(self._files, self.directory)
        )

    # Keeping

    def plan_flush(self, up_to_offset: int | None = None, *, everything: bool = True) -> FlushPlan | None:
        """A plan that makes the records below `up_to_offset` (all, if None) durable; None if they are.

        Run it in a thread and hand it to `finish_flush` on the loop, whatever came of it.

        Args:
            everything: indexes, epochs and snapshots too, which moves the recovery point; else `durable_end` alone moves.

        Raises:
            LogDirFailed: the disk failed before.
        """
        end = self.log_end_offset if up_to_offset is None else min(up_to_offset, self.log_end_offset)
        return self._flusher.plan(self._segments, self._epochs, end, everything=everything)

    def finish_flush(self, plan: FlushPlan) -> None:
        """Take over what a plan did.

        Raises:
            LogDirFailed: the disk does not work; nothing that was not durable before can become it.
            StorageExhausted: no room for the indexes; nothing moved.
        """
        self._flusher.finish(plan, self._segments)

    def flush(self, up_to_offset: int | None = None) -> None:
        """Plan, run and finish at once: for where blocking does no harm.

        Raises:
            LogDirFailed, StorageExhausted: as `finish_flush`.
        """
        plan = self.plan_flush(up_to_offset)
        if plan is not None:
            plan.run()
            self.finish_flush(plan)

    def fail(self, error: LogDirFailed) -> None:
        """The log directory is out of use: nothing more is written or called durable; `close` lets go as a crash would."""
        self._flusher.fail(error)

    def update_config(self, config: TopicConfig) -> None:
        self.config = config
        self._roll_size = self._roll_time = self._roll_offset = -1

    @property
    def needs_work_to_close(self) -> bool:
        """Whether `close` has something to write or sync."""
        return not self._closed and self._flusher.failed is None and (self._as_on_disk != self._extent or self._torn)

    def close(self) -> None:
        """Flush, write down what opening again needs, and let go of the files; a log that did not change costs nothing."""
        if self._closed:
            return
        if not self.needs_work_to_close:
            self.abandon()
            return
        try:
            self._cut_torn()
            active = self._segments.active
            active.add_time_entry()
            with self._flusher.lock:  # a flush may still run in a thread
                for index in (active.index, active.time_index):
                    index.write(exact=True)
                self.snapshot()
                self._epochs.write()
            self.flush()
            if not active.synced:  # it is empty, so nothing was flushed; its name has to be there when it is appended to
                active.sync_records()
            active.sync_indexes()
        except OSError as error:
            raise storage_error(self.directory.parent, error) from error
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Let go of the files as they are, as a crash would; the next `open` recovers."""
        self._closed = self._flusher.closed = True
        self._close_files()

    def detach_all(self) -> Garbage:
        """Stop using the folder, which is about to be renamed; its descriptors stay open for reads under way."""
        self._closed = self._flusher.closed = True
        garbage, self._garbage = self._garbage, []
        return Garbage(self._files, [], [segment.close for segment in self._segments.leave_all()], garbage)

    def put_on(self, directory: Path, segments: Sequence[Segment]) -> Garbage:
        """Go on in `directory`, where `segments` lie that hold the same bytes; what is to be closed and removed of the old folder.

        Flushes under way come to nothing, for they concern the old files. Not while segments are swapped.
        """
        assert not self._swapping, "a copy is not up to date while segments are swapped"
        old = self._flusher
        flusher = Flusher(self._files, directory, durable_end=old.durable_end, is_folder_durable=False)
        flusher.recovery_point, flusher.truncations, flusher.failed = old.recovery_point, old.truncations + 1, old.failed
        garbage, self._garbage = self._garbage, []
        gone = self._segments.leave_all()
        self._segments = Segments(segments, self._open_files)
        self._epochs = EpochFile(self._files, directory, self._epochs.epochs, is_written=True)
        self._flusher, self.directory = flusher, directory
        self._torn = False
        return Garbage(self._files, [], [segment.close for segment in gone], garbage)

    def check_open(self) -> None:
        if self._closed:
            raise Closed(f"log {self.directory.name}")

    def _close_files(self) -> None:
        for garbage in self.take_garbage():
            garbage.remove()
        for segment in self._segments:
            segment.close()

    def _cut_torn(self) -> None:
        if self._torn or self._segments.active.reserved:
            self._segments.active.give_back()
            self._torn = False

    def _load_topic_id(self, *, clean_shutdown: bool) -> None:
        path = self.directory / checkpoints.PARTITION_METADATA
        try:
            known = checkpoints.read_partition_metadata(self._files, path)
        except CorruptLog as error:
            if clean_shutdown:
                raise
            # Written without waiting for the disk when the partition was made: after a loss of power it may be there and empty.
            log.warning("topic id lost, it is taken from the metadata file=%s reason=%r", error.path, error.reason)
            known = None
            self._files.unlink(path)  # nobody may know it any more, and a clean stop must not leave the file like that
        if known is not None:
            self.topic_id = known
        elif self.topic_id is not None:
            checkpoints.write_partition_metadata(self._files, path, self.topic_id)

    def adopt_topic_id(self, topic_id: UUID) -> None:
        """The log belongs to the topic of this id; for a log whose folder does not say whose it is.

        Raises:
            StorageError: it cannot be written down.
        """
        assert self.topic_id is None, "a log does not change its topic"
        try:
            checkpoints.write_partition_metadata(self._files, self.directory / checkpoints.PARTITION_METADATA, topic_id)
        except OSError as error:
            raise storage_error(self.directory.parent, error) from error
        self.topic_id = topic_id


def _too_large_for_segment(size: int, config: TopicConfig) -> KafkaError:
    return KafkaError(
        ErrorCode.RECORD_LIST_TOO_LARGE,
        f"Message batch size is {size} bytes, which exceeds the maximum configured segment size of {config.segment_bytes}.",
    )
