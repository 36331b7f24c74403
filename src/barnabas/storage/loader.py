"""Opening a log: from the files of a folder to the state that `Log` works on.

Owns what is believed of the files and what is checked.

    after a clean shutdown   indexes, snapshot and epochs are taken as they are; only the batches behind the last index entry of
                             the last segment are looked at (4 kB or one batch), to learn where the log ends
    after a crash            up to the recovery point everything was on the disk. From the last index entry before it, every
                             batch is read and its CRC checked; the log ends before the first that is not whole. What follows is
                             cut off, segments behind it (or behind a hole) are removed, indexes are written anew, and a warning
                             says how much was dropped
    in both cases            a segment without indexes gets new ones; one with indexes that cannot be, when they are first used

Rules
  1. Nothing below the recovery point is dropped: damage there is stepped over and stays, for it is no torn tail, and what follows
     it is whole.
  2. What is dropped is gone for good before anything is appended: else the next loss of power could bring it back beside records that
     have its offsets.
  3. The producers' state is that of the newest good snapshot plus the batches behind it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from crc32c import crc32c

from barnabas.config.topic import TopicConfig
from barnabas.errors import CorruptLog
from barnabas.protocol.records.header import (
    CRC_START,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    NO_PRODUCER_ID,
    BatchHeader,
)
from barnabas.protocol.records.record import iterate_records
from barnabas.storage import checkpoints
from barnabas.storage.aborted import AbortedTransactions
from barnabas.storage.compaction.swap import finish_swaps
from barnabas.storage.files import Files
from barnabas.storage.leader_epochs import LeaderEpochs
from barnabas.storage.producer_state import ProducerStates
from barnabas.storage.segment import (
    ABORTED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    SUFFIXES,
    Position,
    Segment,
    file_name,
)
from barnabas.storage.snapshot import decode_snapshot
from barnabas.storage.trust import NOTHING_FOLLOWS
from barnabas.storage.verify import measure

log = logging.getLogger(__name__)

SCAN_BYTES = 1024 * 1024  # read at once when checking batches
FOREIGN_NAMED = 5  # in the line that says so
OWN_NAME = re.compile(r"\d{20}\.(log|index|timeindex|txnindex|snapshot)|leader-epoch-checkpoint|partition\.metadata")
LEFTOVERS = (DELETED_SUFFIX, ".tmp")


@dataclass(slots=True)
class LoadedLog:
    """What `Log` starts from; the last segment is ready to grow."""

    segments: list[Segment]
    epochs: LeaderEpochs
    producers: ProducerStates
    log_start_offset: int


def load_log(
    directory: Path,
    *,
    files: Files,
    config: TopicConfig,
    now_ms: int,
    clean_shutdown: bool,
    recovery_point: int,
    log_start_offset: int,
    cleaned_offset: int = 0,
    sync_name: bool = True,
) -> LoadedLog:
    """Load the log in `directory`, which exists; an empty one gets its first segment.

    Args:
        cleaned_offset: below it compaction may have left gaps between segments; Kafka's does, ours does not.

    Raises:
        CorruptLog: a file that is neither right nor what a crash leaves behind.
        OSError: the disk does not work.
    """
    names = _without_leftovers(files, directory)
    bases = [int(name.removesuffix(LOG_SUFFIX)) for name in names if name.endswith(LOG_SUFFIX)]
    known = set(names)
    epochs = LeaderEpochs(checkpoints.read_leader_epochs(files, directory / checkpoints.LEADER_EPOCHS))
    doomed = [base for base, following in pairwise(bases) if following <= log_start_offset]
    for base in doomed:  # their removal had begun, or was to
        remove_segment_files(files, Segment(files, directory, base, now_ms))
    segments = [Segment.existing(files, directory, base, now_ms) for base in bases[len(doomed) :]]
    for segment, following in pairwise(segments):
        segment.next_offset = following.base_offset
    with_markers: set[Segment] = set()
    if segments:
        without_index = [s for s in segments if not {s.index_name, s.time_index_name} <= known]
        trusted = None if clean_shutdown else recovery_point
        segments = _recover(segments, without_index, epochs, config, trusted, recovery_point, cleaned_offset, with_markers)
        if segments[-1].next_offset < log_start_offset:
            log.warning(
                "log emptied directory=%s reason=%r",
                directory,
                f"it ends at {segments[-1].next_offset}, before its start {log_start_offset}",
            )
            for segment in segments:
                remove_segment_files(files, segment)
            segments = []
    if not segments:
        segments = [Segment.create(files, directory, log_start_offset, now_ms, config.preallocated_bytes)]
        if sync_name:
            files.sync_directory(directory)  # what a crash takes is always a tail: the first segment's name stays
    log_start_offset = max(log_start_offset, segments[0].base_offset)
    epochs.truncate_from_end(segments[-1].next_offset)
    epochs.truncate_from_start(log_start_offset)
    # With segments that were removed their snapshots went.
    snapshots = snapshots_in(names) if clean_shutdown and not doomed else snapshot_offsets(files, directory)
    if not clean_shutdown:
        _forget_transactions(segments, recovery_point)
        if not with_markers.isdisjoint(segments):
            snapshots = _forget_snapshots(files, directory, snapshots, max(recovery_point, segments[0].base_offset))
    producers = load_producers(files, directory, segments, snapshots)
    for segment in segments:
        segment.close()  # most logs of a broker wait for long for their next record
    return LoadedLog(segments, epochs, producers, log_start_offset)


def _forget_transactions(segments: list[Segment], recovery_point: int) -> None:
    """Drop what is known of transactions that were aborted past the recovery point: it may be torn, or of markers that are gone."""
    for segment in segments:
        if segment.next_offset > recovery_point or segment is segments[-1]:
            aborted_of(segment).truncate(recovery_point)


def _forget_snapshots(files: Files, directory: Path, snapshots: Sequence[int], end_offset: int) -> list[int]:
    """Drop the snapshots from behind `end_offset`, so that the producers are replayed from there, which finds aborted transactions
    again. Answers those that are left.
    """
    kept = [offset for offset in snapshots if offset <= end_offset]
    for offset in snapshots[len(kept) :]:
        files.unlink(directory / file_name(offset, SNAPSHOT_SUFFIX))
    return kept


def _without_leftovers(files: Files, directory: Path) -> list[str]:
    """Names of the folder, rid of what a crash left behind; what is none of a log's stays and is passed over."""
    names, foreign = [], []
    for name in finish_swaps(files, directory, files.list_directory(directory)):
        if name.endswith(LEFTOVERS):
            files.unlink(directory / name)
        elif OWN_NAME.fullmatch(name):
            names.append(name)
        else:
            foreign.append(name)
    if foreign:
        log.warning("files that are none of a log's are left alone directory=%s names=%s", directory, foreign[:FOREIGN_NAMED])
    return names


def _recover(
    segments: list[Segment],
    without_index: list[Segment],
    epochs: LeaderEpochs,
    config: TopicConfig,
    recovery_point: int | None,
    synced_offset: int,
    cleaned_offset: int,
    with_markers: set[Segment],
) -> list[Segment]:
    """The segments that hold good batches end to end, of which the last is ready to grow.

    Args:
        without_index: those of which an index file is missing.
        recovery_point: records below it are known to be whole, as are index entries for them; None: all are.
        synced_offset: records below it were on the disk, so damage there is no torn tail.
        cleaned_offset: there may be gaps below it.
        with_markers: gets those in which control batches were read.
    """
    last = segments[-1]
    for number, segment in enumerate(segments):
        trusted = segment.base_offset if segment in without_index else recovery_point
        if trusted is None and (segment is not last or _activate(segment, synced_offset)):
            continue
        if segment is not last and trusted is not None and segment.next_offset <= trusted:
            continue
        following = segment.next_offset
        synced = following if recovery_point is None and segment is not last else synced_offset
        start = segment.base_offset if trusted is None else trusted
        dropped, has_markers = recover_segment(segment, epochs, config, start, synced)
        if has_markers:
            with_markers.add(segment)
        if dropped or (segment is not last and _ends_early(segment, following, cleaned_offset, recovery_point)):
            later = segments[number + 1 :]
            _report(segment, dropped, later)
            for lost in later:
                remove_segment_files(segment.files, lost)
            segment.files.sync_directory(segment.directory)
            return segments[: number + 1]
        if segment is not last:
            segment.seal()
            segment.close()
            segment.next_offset = following
    return segments


def _ends_early(segment: Segment, following: int, cleaned_offset: int, recovery_point: int | None) -> bool:
    """Whether the power took the segment's tail without a trace, so that what follows (which was written later) would leave a hole.

    Only compaction leaves gaps between segments, and what it has cleaned is on the disk.
    """
    is_hole = segment.next_offset < following and following > cleaned_offset
    return is_hole and recovery_point is not None and following > recovery_point


def _activate(segment: Segment, end_offset: int) -> bool:
    """Take the last segment as it is; False where its end is not what a clean shutdown leaves, at `end_offset` unless that is 0."""
    try:
        segment.activate()
    except CorruptLog as error:
        log.warning("log not as it was closed file=%s position=%d reason=%r", error.path, error.position, error.reason)
        return False
    if 0 < segment.next_offset < end_offset:
        log.warning("log not as it was closed file=%s end_offset=%d closed_at=%d", segment.path, segment.next_offset, end_offset)
        return False
    return True


def recover_segment(
    segment: Segment, epochs: LeaderEpochs, config: TopicConfig, trusted_offset: int, synced_offset: int = 0
) -> tuple[int, bool]:
    """Check the batches from `trusted_offset` on, cut the file behind the last good one, make the indexes anew.

    Damage below `synced_offset` is not what a crash leaves: it is stepped over, and what follows stays.

    Returns:
        How many bytes were dropped, and whether there are control batches among those that were read.
    """
    size, has_markers = segment.size, False
    segment.files.forget_cached(segment.fileno)  # what a failed sync left in memory only must not pass for stored
    segment.doubt_all()
    segment.recount_from(_trusted_position(segment, trusted_offset))
    while segment.size < size:
        for position, header in scan_batches(segment, segment.size, size):
            segment.appended(header.last_offset, header.size, header.max_timestamp, config.index_interval_bytes)
            if header.partition_leader_epoch > epochs.latest:
                epochs.assign(header.partition_leader_epoch, header.base_offset)
            has_markers = has_markers or header.is_control
            assert segment.size == position + header.size
        if segment.size == size or max(segment.next_offset, segment.base_offset) >= synced_offset:
            break
        _step_over(segment, size, synced_offset)
    segment.give_back()  # also space that was set aside behind the end
    if segment.size < size:
        segment.files.sync(segment.fileno)
    segment.index.write(exact=True)
    segment.time_index.write(exact=True)
    return size - segment.size, has_markers


def _step_over(segment: Segment, size: int, synced_offset: int) -> None:
    """Go on behind the damage at the segment's end so far; where nothing follows it, records up to `synced_offset` are in it."""
    damage = measure(segment.files, segment.fileno, segment.size, segment.next_offset, "found damaged at the start", size)
    if damage.next_offset == NOTHING_FOLLOWS:
        damage = damage._replace(next_offset=synced_offset)
    segment.trust.note(damage)
    log.error(
        "corrupt data kept file=%s position=%d bytes=%d first_offset=%d last_offset=%d",
        segment.path,
        damage.position,
        damage.end - damage.position,
        damage.first_offset,
        damage.next_offset - 1,
    )
    segment.size, segment.next_offset = damage.end, damage.next_offset


def _trusted_position(segment: Segment, trusted_offset: int) -> int:
    """Where to begin checking: at the last index entry below `trusted_offset`, if the batch there is the one it names."""
    relative = trusted_offset - segment.base_offset
    segment.index, segment.time_index = segment.make_indexes()
    if relative > 0 and segment.has_index_files:
        segment.index.load_active()
        segment.time_index.load_active()
        segment.index.truncate_below(key=relative)
        last = segment.index.last()
        if last is not None:
            segment.time_index.truncate_below(value=last[0] + 1)
            first = next(scan_batches(segment, last[1], segment.size), None)
            if first is not None and first[1].last_offset == segment.base_offset + last[0]:
                return last[1]
    segment.index.start_empty()
    segment.time_index.start_empty()
    return 0


def scan_batches(segment: Segment, start: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of every whole batch between two bytes of a segment, up to the first that is not whole and right."""
    data, data_start = memoryview(b""), start
    position, next_offset = start, segment.base_offset
    while position + HEADER_SIZE <= end:
        at = position - data_start
        if at + HEADER_SIZE > len(data):
            data, data_start, at = memoryview(segment.files.pread(segment.fileno, SCAN_BYTES, position)), position, 0
            if len(data) < HEADER_SIZE:
                return
        header = BatchHeader._make(HEADER.unpack_from(data, at))
        size = header.batch_length + LENGTH_OVERHEAD
        if header.magic != MAGIC or size < HEADER_SIZE or position + size > end:
            return
        if header.base_offset < next_offset or header.last_offset_delta < 0:
            return
        if at + size > len(data):
            data = memoryview(segment.files.pread(segment.fileno, max(SCAN_BYTES, size), position))
            data_start, at = position, 0
        if len(data) < size or crc32c(data[at + CRC_START : at + size]) != header.crc:
            return
        yield position, header
        position, next_offset = position + size, header.next_offset


def _report(segment: Segment, dropped: int, later: list[Segment]) -> None:
    log.warning(
        "log tail dropped file=%s end_offset=%d position=%d dropped_bytes=%d dropped_segments=%d dropped_segment_bytes=%d",
        segment.path,
        segment.next_offset,
        segment.size,
        dropped,
        len(later),
        sum(lost.size for lost in later),
    )


def remove_segment_files(files: Files, segment: Segment) -> None:
    """Remove a segment's files at once."""
    segment.close()
    for suffix in (*SUFFIXES, SNAPSHOT_SUFFIX):
        files.unlink(segment.directory / file_name(segment.base_offset, suffix))


def snapshot_offsets(files: Files, directory: Path) -> list[int]:
    """Offsets of the snapshots of a folder, rising."""
    return snapshots_in(files.list_directory(directory))


def snapshots_in(names: Iterable[str]) -> list[int]:
    """Offsets of the snapshots among the names of a folder, which are in order."""
    return [int(name.removesuffix(SNAPSHOT_SUFFIX)) for name in names if name.endswith(SNAPSHOT_SUFFIX)]


def load_producers(files: Files, directory: Path, segments: list[Segment], snapshots: Sequence[int]) -> ProducerStates:
    """The producers at the end of `segments`; of the `snapshots` those from behind it, and broken ones, are removed."""
    end_offset = segments[-1].next_offset
    producers, start = ProducerStates(), segments[0].base_offset
    for offset in reversed(snapshots):
        path = directory / file_name(offset, SNAPSHOT_SUFFIX)
        if offset <= end_offset:
            try:
                producers, start = ProducerStates(decode_snapshot(files.read_file(path), path)), offset
                break
            except CorruptLog as error:
                log.warning("snapshot dropped file=%s reason=%r", path, error.reason)
        files.unlink(path)
    for segment in segments:
        if segment.next_offset > start:
            _replay(segment, producers, start)
    return producers


def _replay(segment: Segment, producers: ProducerStates, start: int) -> None:
    try:
        found = segment.find(max(start, segment.base_offset))
    except CorruptLog:
        found = Position(0, segment.base_offset)
    if found is None:
        return
    for position, header in segment.walk_around(found.position):
        if header.producer_id == NO_PRODUCER_ID or header.base_offset < start:
            continue
        if not header.is_control:
            producers.update(header, header.base_offset)
            continue
        try:
            marker = next(iterate_records(segment.read_batch(position, header)), None)
        except CorruptLog as error:
            log.error("transaction marker unreadable file=%s position=%d reason=%r", error.path, error.position, error.reason)
            continue
        completed = producers.update_marker(header, marker) if marker is not None else None
        if completed is not None and completed.aborted:
            aborted_of(segment).append(completed)


def aborted_of(segment: Segment) -> AbortedTransactions:
    return AbortedTransactions(segment.files, segment.directory / segment.name_of(ABORTED_SUFFIX), segment.base_offset)
