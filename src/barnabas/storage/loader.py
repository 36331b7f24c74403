"""Opening a log: from the files of a folder to the state that `Log` works on.

Owns the decision which files are trusted and which are checked.

    after a clean shutdown   indexes, snapshot and epochs are trusted. Only the batches after the last index entry of the last
                             segment are read (4 kB or one batch), to find the log end
    after a crash            everything before the recovery point was on the disk. From the last index entry before it, every
                             batch is read and its CRC checked; the log ends before the first incomplete batch. The rest is
                             cut off, segments after it (or after a gap) are removed, indexes are rebuilt, and a warning gives
                             the dropped bytes. Indexes without their segment are removed. The epochs of batches before the
                             first entry of the epoch file come from the batches
    in both cases            missing indexes are rebuilt; impossible ones are rebuilt at their first use. A missing or damaged
                             epoch file is rebuilt from the batches, and so is a truncated file of aborted transactions

`recovery` recovers the segments, and `producer_loading` finds the producers' state.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from msgspec import Struct

from barnabas.config.topic import TopicConfig
from barnabas.errors import CorruptLog
from barnabas.protocol.records.batch_header import NO_LEADER_EPOCH
from barnabas.storage import checkpoints
from barnabas.storage.compaction.swap import finish_swaps
from barnabas.storage.files import Files
from barnabas.storage.leader_epochs import LeaderEpochs
from barnabas.storage.log_segments import remove_segment_files
from barnabas.storage.producer_loading import load_producers, snapshot_offsets, snapshots_in
from barnabas.storage.producer_state import ProducerStates
from barnabas.storage.recovery import recover_segments
from barnabas.storage.segment import (
    ABORTED_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    SUFFIXES,
    Segment,
    file_name,
)
from barnabas.storage.transaction_index import aborted_of

logger = logging.getLogger(__name__)

FOREIGN_NAMED = 5  # names in the log line
OWN_NAME = re.compile(r"\d{20}\.(log|index|timeindex|txnindex|snapshot)|leader-epoch-checkpoint|partition\.metadata")
# Files that a crash of barnabas or Kafka leaves, by full name: files of other programs may lie beside them.
LEFTOVER = re.compile(
    r"\d{20}\.(log|index|timeindex|txnindex|snapshot)(\.(cleaned|swap|\d+\.flushing))?\.(deleted|tmp)"
    r"|(leader-epoch-checkpoint|partition\.metadata|moved\.tmp)\.tmp|moved\.tmp"
)


class LoadedLog(Struct):
    """The initial state of a `Log`; the last segment is ready to grow."""

    segments: list[Segment]
    epochs: LeaderEpochs
    producers: ProducerStates
    log_start_offset: int
    has_epochs_written: bool  # the epoch file holds exactly these epochs


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
        cleaned_offset: below it, compaction may have left gaps between segments; Kafka's compaction leaves them, ours does not.

    Raises:
        CorruptLog: a file is neither correct nor in a state that a crash leaves.
        OSError: the disk does not work.
    """
    names = _without_leftovers(files, directory)
    if not clean_shutdown:
        names = _without_orphans(files, directory, names)
    found, has_doomed = _existing(files, directory, names, log_start_offset, now_ms)
    epochs, has_epochs = _read_epochs(files, directory)
    segments, with_markers = found, set[Segment]()
    if found:
        known = set(names)
        without_index = [s for s in found if not {s.index_name, s.time_index_name} <= known]
        segments = recover_segments(
            found,
            epochs,
            config,
            without_index=without_index,
            recovery_point=None if clean_shutdown else recovery_point,
            synced_offset=recovery_point,
            cleaned_offset=cleaned_offset,
            with_markers=with_markers,
        )
        if segments[-1].next_offset < log_start_offset:
            _empty(segments, directory, log_start_offset)
            segments = []
    if not segments:
        segments = [Segment.create(files, directory, log_start_offset, now_ms, config.preallocated_bytes)]
        if sync_name:
            files.sync_directory(directory)  # so a crash can only remove the tail: the first segment's name stays
    log_start_offset = max(log_start_offset, segments[0].base_offset)
    end = segments[-1].next_offset
    if not has_epochs:
        epochs = _epochs_of_batches(segments)
    elif not clean_shutdown:
        _learn_first_epochs(segments, epochs, log_start_offset)
    # Where all records were removed, the last entry is the epoch of the last record (`truncate_from_start`).
    epochs.truncate_from_end(end + (0 < log_start_offset == end))
    epochs.truncate_from_start(log_start_offset)
    if not has_epochs:
        _write_epochs(files, directory, epochs)
    # Removing a segment also removes its snapshots, so `names` may be out of date.
    snapshots = snapshots_in(names) if clean_shutdown and not has_doomed else snapshot_offsets(files, directory)
    snapshots = _forget_broken_transactions(files, directory, segments, names, snapshots)
    if not clean_shutdown:
        _forget_transactions(segments, recovery_point)
        if not with_markers.isdisjoint(segments):
            snapshots = _forget_snapshots(files, directory, snapshots, max(recovery_point, segments[0].base_offset))
    producers = load_producers(files, directory, segments, snapshots)
    for segment in segments:
        segment.close()  # most logs get no record for a long time
    return LoadedLog(segments, epochs, producers, log_start_offset, clean_shutdown or not has_epochs)


def _without_orphans(files: Files, directory: Path, names: Sequence[str]) -> list[str]:
    """Remove the files that an interrupted removal of a segment left; returns the other names. The removal of a segment begins with its
    records, so nothing reads the files that are left."""
    known = set(names)
    kept = []
    for name in names:
        if name.endswith(SUFFIXES) and Path(name).stem + LOG_SUFFIX not in known:
            logger.info("event=orphaned-index-removed file=%s", directory / name)
            files.unlink(directory / name)
        else:
            kept.append(name)
    return kept


def _existing(
    files: Files, directory: Path, names: Sequence[str], log_start_offset: int, now_ms: int
) -> tuple[list[Segment], bool]:
    """The segments of a folder, not read yet, and whether there were others below the log start offset.

    The others are removed: their removal had begun, or was due.
    """
    bases = [int(name.removesuffix(LOG_SUFFIX)) for name in names if name.endswith(LOG_SUFFIX)]
    doomed = [base for base, following in pairwise(bases) if following <= log_start_offset]
    for base in doomed:
        remove_segment_files(files, Segment(files, directory, base, now_ms))
    segments = [Segment.existing(files, directory, base, now_ms) for base in bases[len(doomed) :]]
    for segment, following in pairwise(segments):
        segment.next_offset = following.base_offset
    return segments, bool(doomed)


def _empty(segments: Sequence[Segment], directory: Path, log_start_offset: int) -> None:
    reason = f"it ends at {segments[-1].next_offset}, before its start {log_start_offset}"
    logger.warning("event=log-emptied directory=%s reason=%r", directory, reason)
    for segment in segments:
        remove_segment_files(segment.files, segment)


def _read_epochs(files: Files, directory: Path) -> tuple[LeaderEpochs, bool]:
    """The epochs in the file, and whether it exists and can be read; a power failure may leave it empty or cut off."""
    path = directory / checkpoints.LEADER_EPOCHS
    try:
        return LeaderEpochs(checkpoints.read_leader_epochs(files, path)), files.exists(path)
    except CorruptLog as error:
        logger.warning(
            "event=leader-epochs-rebuilt file=%s reason=%r consequence='nothing is lost: the batches tell them'",
            path,
            error.reason,
        )
        return LeaderEpochs(), False


def _write_epochs(files: Files, directory: Path, epochs: LeaderEpochs) -> None:
    if epochs.entries:
        checkpoints.write_leader_epochs(files, directory / checkpoints.LEADER_EPOCHS, epochs.entries)


def _epochs_of_batches(segments: Sequence[Segment]) -> LeaderEpochs:
    """The epochs according to the batches.

    Compaction may have removed the first batches of an epoch. Then the epoch begins where the batch before ended. A follower may fetch
    too much again, but keeps no records that the leader does not have.
    """
    entries: list[tuple[int, int]] = []
    next_offset = segments[0].base_offset
    for segment in segments:
        for _, header in segment.scan.walk_around():
            epoch = header.partition_leader_epoch
            if epoch > (entries[-1][0] if entries else NO_LEADER_EPOCH):
                entries.append((epoch, next_offset))
            next_offset = header.next_offset
    return LeaderEpochs(entries)


def _learn_first_epochs(segments: Sequence[Segment], epochs: LeaderEpochs, log_start_offset: int) -> None:
    """Take the epochs before the first one in the file from the batches.

    The file may have advanced with a log start offset that was not written before the crash. The CRC does not cover epochs, so an epoch
    that does not fit is skipped.
    """
    latest, until = next(iter(epochs.entries), (0, 0))
    earliest = 0
    for segment in segments:
        if max(segment.base_offset, log_start_offset) >= until:
            return
        for _, header in segment.scan.walk_around():
            if header.base_offset >= until:
                return
            if earliest <= header.partition_leader_epoch <= latest:
                earliest = header.partition_leader_epoch
                epochs.found(earliest, header.base_offset)


def _forget_transactions(segments: list[Segment], recovery_point: int) -> None:
    """Drop the transactions that were aborted past the recovery point: the file may be torn there, or name markers that are gone."""
    for segment in segments:
        if segment.next_offset > recovery_point or segment is segments[-1]:
            aborted_of(segment).truncate(recovery_point)


def _forget_broken_transactions(
    files: Files, directory: Path, segments: Sequence[Segment], names: Sequence[str], snapshots: list[int]
) -> list[int]:
    """Remove the files of aborted transactions that a power failure cut off, and the snapshots after the first such segment.

    Then the producers are replayed from there, which finds those transactions again. Returns the remaining snapshots.
    """
    known = set(names)
    for segment in segments:
        aborted = aborted_of(segment)
        if segment.name_of(ABORTED_SUFFIX) not in known or aborted.is_whole(segment.next_offset):
            continue
        logger.warning(
            "event=aborted-transactions-rebuilt file=%s consequence='nothing is lost: the batches tell them'", aborted.path
        )
        aborted.remove()
        snapshots = _forget_snapshots(files, directory, snapshots, segment.base_offset)
    return snapshots


def _forget_snapshots(files: Files, directory: Path, snapshots: Sequence[int], end_offset: int) -> list[int]:
    """Drop the snapshots after `end_offset`; returns the others.

    Then the producers are replayed from there, which finds aborted transactions again.
    """
    kept = [offset for offset in snapshots if offset <= end_offset]
    for offset in snapshots[len(kept) :]:
        files.unlink(directory / file_name(offset, SNAPSHOT_SUFFIX))
    return kept


def _without_leftovers(files: Files, directory: Path) -> list[str]:
    """The names of the log's files, after removing what a crash left; other files stay and are ignored."""
    names, foreign = [], []
    for name in finish_swaps(files, directory, files.list_directory(directory)):
        if LEFTOVER.fullmatch(name) and not files.is_directory(directory / name):
            files.unlink(directory / name)
        elif OWN_NAME.fullmatch(name):
            names.append(name)
        else:
            foreign.append(name)
    if foreign:
        logger.warning("event=foreign-files-left-alone directory=%s names=%r", directory, ", ".join(foreign[:FOREIGN_NAMED]))
    return names
