"""Appending to a log: batches of a leader (one or many at once), batches of a follower, and the segments that they begin.

How it works: an append parses the header, checks the batch, makes one `pwrite` at the end of the active segment's file, and updates the
state. The code has few functions, because it runs for every request. A batch past a bound of `plan_roll` may begin another segment.

Rules
  1. A batch is checked, then written, then counted: if a step fails, readers see no change.
  2. The given buffer is not kept. If it is writable, base offset and leader epoch are set in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from barnabas.config.topic import TopicConfig
from barnabas.error_codes import ErrorCode
from barnabas.errors import (
    KafkaError,
    LogDirFailed,
    StorageError,
)
from barnabas.protocol.records.batch_header import (
    CONTROL_BIT,
    HEADER,
    LENGTH_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_TIMESTAMP,
    PLACE,
    BatchHeader,
    Buffer,
    only_batch,
)
from barnabas.protocol.records.record import OwnBatch
from barnabas.protocol.records.request_scan import Limits
from barnabas.protocol.records.rows import DESCRIBED, ROW, Run
from barnabas.protocol.records.scan import walker
from barnabas.protocol.records.validate import AppendOrigin, is_stored_as_it_comes, validate_batch
from barnabas.storage.files import write_all
from barnabas.storage.log.state import LogState
from barnabas.storage.log_segments import remove_segment_files
from barnabas.storage.markers import Ending, ending_in
from barnabas.storage.os_errors import storage_error
from barnabas.storage.producer_state import KEPT_BATCHES
from barnabas.storage.replicated_batches import good_batches, stretch_from
from barnabas.storage.rolling import MAX_RELATIVE_OFFSET, is_older_than_segment_ms, must_roll, roll_bounds
from barnabas.storage.segment import LARGE_BATCH_BYTES, Segment
from barnabas.storage.transaction_index import add_aborted
from barnabas.tuples import new_tuple

CLIENT = AppendOrigin.CLIENT
WRITTEN_AT_ONCE = 1000  # producers that a roll writes to a snapshot itself, in 1 ms; for more, the next full flush writes it
NEWEST_MS = 2**62  # no record has a later timestamp


class AppendResult(NamedTuple):
    """The offsets of an appended batch; with `duplicate` they are those of its first append. `log_append_time_ms` is -1 if the
    producer's times are kept."""

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    duplicate: bool


class LogAppender:
    """The part that makes a log longer."""

    __slots__ = ("_log",)

    def __init__(self, log: LogState) -> None:
        self._log = log

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
        log = self._log
        if len(records) < HEADER.size or records[16] != MAGIC:
            records = only_batch(records)
        header = new_tuple(BatchHeader, HEADER.unpack_from(records))
        size = header.batch_length + LENGTH_OVERHEAD
        if size != len(records):
            records = only_batch(records)
        config = log.config
        data: Buffer = records
        header, rewritten = validate_batch(records, header, config=config, now_ms=now_ms, origin=origin)
        if rewritten is not None:
            data, size = bytearray(rewritten), len(rewritten)
        if size > config.segment_bytes:
            raise _too_large_for_segment(size, config)
        log_append_time = NO_TIMESTAMP if config.message_timestamp_type == "CreateTime" else header.max_timestamp
        base_offset = log.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        ending: Ending | None = None
        if header.producer_id >= 0:
            duplicate = log.producer_states.check(header, from_client=origin is CLIENT)
            if duplicate is not None:
                time = NO_TIMESTAMP if log_append_time == NO_TIMESTAMP else duplicate.timestamp
                return AppendResult(duplicate.first_offset, duplicate.last_offset, time, log.log_start_offset, True)
            if header.attributes & CONTROL_BIT:
                ending = self._checked_ending(header, data)
        self._store(header, data, ending, leader_epoch, now_ms)
        return new_tuple(AppendResult, (base_offset, last_offset, log_append_time, log.log_start_offset, False))

    def append_own(self, batch: OwnBatch, ending: Ending | None, *, leader_epoch: int, now_ms: int) -> int:
        """Append a batch that this broker has made, like a coordinator's batch in `append_as_leader`; returns its last offset.

        Args:
            ending: the content of the marker, if the batch ends a transaction.

        Raises:
            KafkaError: as `append_as_leader`.
            LogDirFailed, StorageExhausted: as `append_as_leader`.
        """
        log = self._log
        data, header = batch
        config, size = log.config, len(data)
        if size > config.max_message_bytes or size > config.segment_bytes or not is_stored_as_it_comes(config):
            origin = AppendOrigin.COORDINATOR
            return self.append_as_leader(bytes(data), leader_epoch=leader_epoch, now_ms=now_ms, origin=origin).last_offset
        if header.producer_id >= 0:
            log.producer_states.check(header, from_client=False)
            if ending is not None:
                log.producer_states.check_marker(header, ending.coordinator_epoch)
        self._store(header, data, ending, leader_epoch, now_ms)
        return log.log_end_offset - 1

    def _store(self, header: BatchHeader, data: Buffer, ending: Ending | None, leader_epoch: int, now_ms: int) -> None:
        """Write and count a checked batch; with an `ending`, it is the marker of a transaction."""
        log = self._log
        size, base_offset = len(data), log.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        if leader_epoch > log.epoch_file.epochs.latest:
            log.epoch_file.epochs.assign(leader_epoch, base_offset)
        segment = log.segments.active
        end = segment.size + size
        if end > log.roll_size or header.max_timestamp > log.roll_time or last_offset > log.roll_offset:
            segment = self._segment_for(size, header._replace(base_offset=base_offset), now_ms)
        self._write(segment, (base_offset, header.batch_length, leader_epoch), data, size)
        segment.appended(last_offset, size, header.max_timestamp, log.config.index_interval_bytes)
        segment.written_ms = now_ms
        log.log_end_offset = last_offset + 1
        if ending is not None:
            self._count_ending(segment, header, last_offset, ending)
        elif header.producer_id >= 0 and not header.attributes & CONTROL_BIT:
            log.producer_states.update(header, base_offset)

    def bounds_of_run(self, now_ms: int, max_request: int, requests: int) -> Limits | None:
        """The limits of batches for `append_run`; None if the topic's settings change batches before they are stored.

        Args:
            max_request: the maximum size of a request in bytes.
            requests: the maximum number of requests.
        """
        log = self._log
        config = log.config
        if not is_stored_as_it_comes(config):
            return None
        return new_tuple(
            Limits,
            (
                max_request,
                min(config.max_message_bytes, config.segment_bytes),
                max(now_ms - config.message_timestamp_before_max_ms, 0),
                min(now_ms + config.message_timestamp_after_max_ms, log.roll_time, NEWEST_MS),
                log.roll_size - log.segments.active.size,
                log.roll_offset - log.log_end_offset + 1,
                requests,
                "compact" in config.cleanup_policy,
                config.compression_type == "producer",
            ),
        )

    def admits_run(self, run: Run, buffer: memoryview, *, leader_epoch: int) -> bool:
        """Whether `append_run` can take the batches of `run`: not if that takes more than a write, or if the log has the first one.

        Args:
            run: the batches in `buffer`, within the limits of `bounds_of_run`.

        Raises:
            KafkaError: as `append_as_leader`, for the producer of the batches.
        """
        log = self._log
        if leader_epoch > log.epoch_file.epochs.latest:
            return False
        if not run.has_producer:
            return True
        header = new_tuple(BatchHeader, HEADER.unpack_from(buffer, ROW.unpack_from(run.rows)[1]))
        return log.producer_states.check(header, from_client=True) is None

    def append_run(self, run: Run, buffer: memoryview, *, leader_epoch: int) -> int:
        """Append batches that `admits_run` has accepted, all or none, with one write; returns the first one's base offset.

        Raises:
            LogDirFailed, StorageExhausted: as `append_as_leader`.
        """
        log = self._log
        segment = log.segments.active
        first_offset, size = log.log_end_offset, run.size
        stored, described = walker.place_batches(buffer, run.rows, first_offset, leader_epoch)
        if size >= LARGE_BATCH_BYTES and segment.size + size > segment.reserved:
            segment.reserve(size)
        try:
            written = log.files.pwrite(segment.fileno, stored, segment.size)
            if written != size:
                write_all(log.files, segment.fileno, memoryview(stored)[written:], segment.size + written)
        except OSError as error:
            raise self._write_failed(error) from error
        log.log_end_offset = first_offset + run.records
        segment.appended_many(described, log.config.index_interval_bytes)
        if run.has_producer:
            rows = ROW.iter_unpack(run.rows[-KEPT_BATCHES * ROW.size :])
            for (_, start, _, count, _), (last, *_) in zip(
                rows, DESCRIBED.iter_unpack(described[-KEPT_BATCHES * DESCRIBED.size :]), strict=True
            ):
                log.producer_states.update(new_tuple(BatchHeader, HEADER.unpack_from(buffer, start)), last + 1 - count)
        return first_offset

    def _write(self, segment: Segment, place: tuple[int, int, int], data: Buffer, size: int) -> None:
        """Write a batch at the segment's end, with base offset, length and leader epoch as in `place`."""
        log = self._log
        if size >= LARGE_BATCH_BYTES and segment.size + size > segment.reserved:
            segment.reserve(size)
        try:
            if (type(data) is memoryview and data.readonly) or type(data) is bytes:
                head = PLACE.pack(*place)
                written = log.files.pwritev(segment.fileno, (head, memoryview(data)[PLACE.size :]), segment.size)
            else:
                PLACE.pack_into(data, 0, *place)
                written = log.files.pwrite(segment.fileno, data, segment.size)
            if written != size:  # a nearly full disk accepts a part of the bytes: try the rest
                whole = PLACE.pack(*place) + bytes(data[PLACE.size :])
                write_all(log.files, segment.fileno, memoryview(whole)[written:], segment.size + written)
        except OSError as error:
            if not memoryview(data).readonly:  # restore the producer's bytes: the code that reports the refusal reads them again
                PLACE.pack_into(data, 0, 0, place[1], NO_LEADER_EPOCH)
            raise self._write_failed(error) from error

    def _write_failed(self, error: OSError) -> StorageError:
        """Cut a part of a batch that may be after the end: now if possible, otherwise before the next roll or close. Returns the error
        to raise."""
        log = self._log
        log.is_torn = log.was_torn = True
        with suppress(OSError):
            log.cut_torn()
        active = log.segments.active
        if not active.size:  # the segment's age must not count from the refused batch
            active.first_timestamp = None
            self.plan_roll()
        return storage_error(log.directory.parent, error)

    def append_as_follower(self, records: Buffer, *, now_ms: int) -> AppendResult:
        """Append the leader's batches unchanged, without a cut last one.

        Raises:
            KafkaError: CORRUPT_MESSAGE, or OFFSET_OUT_OF_RANGE if they do not begin at or past the log's end.
            LogDirFailed: the write failed.
            StorageExhausted: the disk is full.
        """
        log = self._log
        view = memoryview(records)
        headers, fault = good_batches(view, log.log_end_offset)
        at = position = 0
        while at < len(headers):
            stop, size = self._append_stretch(headers, at, view[position:], now_ms)
            at, position = stop, position + size
        if fault is not None:
            raise fault
        first_offset = headers[0].base_offset if headers else -1
        return new_tuple(AppendResult, (first_offset, log.log_end_offset - 1, NO_TIMESTAMP, log.log_start_offset, False))

    def _append_stretch(self, headers: Sequence[BatchHeader], at: int, data: memoryview, now_ms: int) -> tuple[int, int]:
        """Write the leader's batches from number `at` on, with which `data` begins, as far as one write goes; see `stretch_from`."""
        log = self._log
        header = headers[at]
        if header.partition_leader_epoch > log.epoch_file.epochs.latest:
            log.epoch_file.epochs.assign(header.partition_leader_epoch, header.base_offset)
        segment = log.segments.active
        end, last_offset = segment.size + header.size, header.last_offset
        if end > log.roll_size or header.max_timestamp > log.roll_time or last_offset > log.roll_offset:
            segment = self._segment_for(header.size, header, now_ms)
        room = log.roll_size - segment.size
        stop, size = stretch_from(headers, at, room=room, time=log.roll_time, offset=log.roll_offset)
        if size >= LARGE_BATCH_BYTES and segment.size + size > segment.reserved:
            segment.reserve(size)
        try:
            write_all(log.files, segment.fileno, data[:size], segment.size)
        except OSError as error:
            raise self._write_failed(error) from error
        segment.written_ms = now_ms
        noted = bytearray()
        position = 0
        try:
            for header in headers[at:stop]:
                batch_size = header.batch_length + LENGTH_OVERHEAD
                noted += DESCRIBED.pack(header.base_offset + header.last_offset_delta, batch_size, header.max_timestamp)
                if header.producer_id >= 0:
                    self._count_producer(segment, header, header.base_offset, data[position : position + batch_size])
                position += batch_size
        finally:  # also after an error: batches past one whose producer state failed are not part of the log
            segment.appended_many(noted, log.config.index_interval_bytes)
            log.log_end_offset = segment.next_offset
        return stop, size

    def _checked_ending(self, header: BatchHeader, data: Buffer) -> Ending | None:
        ending = ending_in(data, header)
        if ending is not None:
            self._log.producer_states.check_marker(header, ending.coordinator_epoch)
        return ending

    def _count_producer(self, segment: Segment, header: BatchHeader, base_offset: int, data: Buffer) -> None:
        if not header.is_control:
            self._log.producer_states.update(header, base_offset)
            return
        ending = ending_in(data, header)
        if ending is not None:
            self._count_ending(segment, header, base_offset + header.last_offset_delta, ending)

    def _count_ending(self, segment: Segment, header: BatchHeader, offset: int, ending: Ending) -> None:
        log = self._log
        completed = log.producer_states.update_marker(header, ending, offset)
        if completed is not None and completed.aborted:
            try:
                add_aborted(segment, completed)
            except OSError as error:
                # The marker is in the log. Without this entry, readers of committed records must not pass the marker. So even a
                # full disk takes the log out of use; the next start creates the entry from the marker.
                raise LogDirFailed(str(log.directory.parent), str(error)) from error

    def begin_epoch(self, leader_epoch: int) -> None:
        """Use `leader_epoch` for all later appends."""
        log = self._log
        if leader_epoch > log.epoch_file.epochs.latest:
            log.epoch_file.epochs.assign(leader_epoch, log.log_end_offset)

    def plan_roll(self) -> None:
        log = self._log
        log.roll_size, log.roll_time, log.roll_offset = roll_bounds(log.segments.active, log.config)

    def _segment_for(self, size: int, header: BatchHeader, now_ms: int) -> Segment:
        """The segment for a batch of `size` bytes that is past one of the bounds: the active one, or a new one."""
        log = self._log
        segment = log.segments.active
        if must_roll(segment, log.config, size, header):
            # A follower of a compacted log stores a gap in the segment before it: a segment that ends early has lost its tail.
            within_reach = header.last_offset <= log.log_end_offset + MAX_RELATIVE_OFFSET
            segment = self.roll(now_ms, log.log_end_offset if within_reach and segment.size else header.base_offset)
        if not segment.size and header.max_timestamp >= 0:
            segment.first_timestamp = header.max_timestamp
        self.plan_roll()
        return segment

    def maybe_roll(self, now_ms: int) -> bool:
        """Begin a new segment if the active one is as old as `segment.ms` allows; returns whether it did."""
        log = self._log
        if not is_older_than_segment_ms(log.segments.active, log.config, now_ms):
            return False
        self.roll(now_ms, log.log_end_offset)
        return True

    def roll(self, now_ms: int, offset: int) -> Segment:
        """Seal the active segment and begin another at `offset`: the log's end or, on a follower, an offset after a gap that is too wide.

        Everything that needs disk space comes first, so a full disk leaves the active segment as it was, and no other one beside it.
        """
        log = self._log
        sealed = log.segments.active
        assert sealed.size or offset > sealed.base_offset, "a segment does not follow itself"
        try:
            log.cut_torn()
            if sealed.size:
                if len(log.producer_states) <= WRITTEN_AT_ONCE:
                    log.snapshot()
                else:
                    log.rolled_producers = log.log_end_offset, list(log.producer_states)
                sealed.write_indexes()
            segment = Segment.create(log.files, log.directory, offset, now_ms, log.config.preallocated_bytes)
            try:
                if sealed.size:
                    sealed.seal()
                else:
                    remove_segment_files(log.files, sealed)
            except OSError:
                segment.discard()
                raise
        except OSError as error:
            raise storage_error(log.directory.parent, error) from error
        sealed.next_offset = offset
        if sealed.size:
            log.segments.append(segment)
        else:
            log.segments.replace_active(segment)
        self.plan_roll()
        return segment


def _too_large_for_segment(size: int, config: TopicConfig) -> KafkaError:
    return KafkaError(
        ErrorCode.RECORD_LIST_TOO_LARGE,
        f"Message batch size is {size} bytes, which exceeds the maximum configured segment size of {config.segment_bytes}.",
    )
