"""A partition's folder: its segments in order, and everything that lies beside them.

Owns the order of the checks. One pass over the batches feeds the judges of the indexes, the epochs and the producers, so a folder
is read once whatever is asked of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from barnabas.errors import CorruptLog
from barnabas.storage import checkpoints
from barnabas.storage.aborted import encode_entries
from barnabas.storage.check.batches import Progress, SegmentWalk
from barnabas.storage.check.epochs import EpochCheck
from barnabas.storage.check.finding import Finding, Repair
from barnabas.storage.check.indexes import IndexCheck, check_aborted
from barnabas.storage.check.producers import ProducerCheck
from barnabas.storage.files import TEMPORARY_SUFFIX, Files
from barnabas.storage.segment import ABORTED_SUFFIX, DELETED_SUFFIX, LOG_SUFFIX, SNAPSHOT_SUFFIX, SUFFIXES

SEGMENT_FILE = re.compile(r"\d{20}(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)")
KNOWN_FILES = {checkpoints.LEADER_EPOCHS, checkpoints.PARTITION_METADATA}
LEFTOVER_SUFFIXES = {
    DELETED_SUFFIX: "a deleted file that is not removed yet",
    ".cleaned": "an unfinished file of a compaction",
    TEMPORARY_SUFFIX: "an unfinished replacement of a small file",
}
SWAP_SUFFIX = ".swap"
NOTHING_LOST = "nothing is lost: the next start removes it"
NEVER = 2**63 - 1  # as a recovery point: all of the log is on the disk


@dataclass(frozen=True, slots=True)
class PartitionContext:
    """What a log directory knows of a partition.

    Args:
        recovery_point: records below it are on the disk.
        was_clean: the last stop was clean, so `recovery_point` is where the log ends.
        topic_id: as the metadata has it, or None.
    """

    recovery_point: int = 0
    was_clean: bool = False
    topic_id: UUID | None = None


@dataclass(slots=True)
class PartitionReport:
    """What was found in a partition's folder; `replacements` are small files as they should be."""

    folder: Path
    start_offset: int = 0
    end_offset: int = 0
    segments: int = 0
    batches: int = 0
    records: int = 0
    size_bytes: int = 0
    topic_id: UUID | None = None
    findings: list[Finding] = field(default_factory=list)
    replacements: dict[Path, bytes] = field(default_factory=dict)


def check_partition(
    files: Files, folder: Path, context: PartitionContext, progress: Progress = lambda _: None
) -> PartitionReport:
    """Read everything in the folder and say what is wrong.

    Raises:
        OSError: the disk does not work, other than for single stretches of a segment.
    """
    names = files.list_directory(folder)
    report = PartitionReport(folder)
    report.findings += _leftovers(folder, names)
    bases = sorted(
        int(name.removesuffix(LOG_SUFFIX)) for name in names if name.endswith(LOG_SUFFIX) and SEGMENT_FILE.fullmatch(name)
    )
    if not bases:
        report.findings.append(
            Finding(folder, "there is no segment", "the next start begins an empty log", why_not="nothing is left")
        )
    report.findings += _orphans(folder, names, set(bases))
    report.findings += _topic_id(files, folder, context, report)
    _check_segments(files, folder, names, bases, context, report, progress)
    return report


def _check_segments(
    files: Files,
    folder: Path,
    names: list[str],
    bases: list[int],
    context: PartitionContext,
    report: PartitionReport,
    progress: Progress,
) -> None:
    first = bases[0] if bases else 0
    snapshots = [int(n.removesuffix(SNAPSHOT_SUFFIX)) for n in names if n.endswith(SNAPSHOT_SUFFIX) and SEGMENT_FILE.fullmatch(n)]
    producers, epochs = ProducerCheck(files, folder, snapshots, first), EpochCheck(files, folder)
    report.start_offset = report.end_offset = first
    report.segments = len(bases)
    log_end = context.recovery_point if context.was_clean and context.recovery_point else None
    thinned = False
    for base, following in zip(bases, [*bases[1:], None][: len(bases)], strict=True):
        path = folder / f"{base:020d}{LOG_SUFFIX}"
        is_active = following is None
        indexes = IndexCheck(files, path, base, is_active=is_active)
        recovery_point = NEVER if context.was_clean or not is_active else context.recovery_point
        walk = SegmentWalk(files, path, base, log_end if is_active else following, recovery_point, progress)
        producers.begin_segment()
        for batch in walk:
            header = batch.header
            if not batch.whole:
                indexes.damaged(batch.position, batch.end)
                producers.is_exact = False
                continue
            indexes.batch(batch.position, header)
            epochs.batch(path, batch.position, header)
            producers.batch(header, walk.records_of(batch) if header.is_control else ())
            thinned = thinned or header.records_count != header.last_offset_delta + 1
            report.batches += 1
            report.records += header.records_count
        indexes.end(walk.whole_end, walk.next_offset)
        thinned = thinned or walk.gaps > 0
        producers.is_exact = producers.is_exact and not thinned and not walk.findings
        report.findings += walk.findings + indexes.findings
        exact = producers.is_exact
        for finding in check_aborted(files, path, producers.markers if exact else None, producers.aborted if exact else []):
            if producers.is_complete and exact:
                report.replacements[finding.path] = encode_entries(producers.aborted)
                report.findings.append(finding)
            else:
                report.findings.append(_without_repair(finding, "the batches that it would be made from are not all there"))
        report.size_bytes += walk.size
        report.end_offset = max(walk.next_offset, report.end_offset)
    producers.end(report.end_offset)
    report.findings += producers.findings
    report.replacements |= producers.replacements
    for finding in epochs.findings(report.end_offset):
        report.findings.append(finding)
        if finding.repair is Repair.REBUILD_EPOCHS and epochs.rebuilt is not None:
            report.replacements[finding.path] = checkpoints.encode_leader_epochs(epochs.rebuilt)


def _without_repair(finding: Finding, reason: str) -> Finding:
    return Finding(
        finding.path, finding.what, finding.loss, finding.position, finding.first_offset, finding.last_offset, None, reason
    )


def _leftovers(folder: Path, names: list[str]) -> Iterator[Finding]:
    for name in names:
        path = folder / name
        suffix = path.suffix
        if suffix in LEFTOVER_SUFFIXES:
            yield Finding(path, LEFTOVER_SUFFIXES[suffix], NOTHING_LOST, repair=Repair.REMOVE_FILE)
        elif suffix == SWAP_SUFFIX:
            what = "a compacted segment that has not taken its place yet"
            yield Finding(path, what, "nothing is lost", why_not="the next start finishes or drops it")
        elif name not in KNOWN_FILES and not SEGMENT_FILE.fullmatch(name):
            yield Finding(path, "not a file of a log", "nothing reads it", why_not="whoever put it there may want it")


def _orphans(folder: Path, names: list[str], bases: set[int]) -> Iterator[Finding]:
    """Indexes of segments that are not there."""
    for name in names:
        if SEGMENT_FILE.fullmatch(name) and name.endswith(SUFFIXES) and int(name[:20]) not in bases:
            what = "it belongs to a segment that is not there"
            loss = (
                "nothing reads it" if name.endswith(ABORTED_SUFFIX) else "nothing reads it; the records of the segment are gone"
            )
            yield Finding(folder / name, what, loss, why_not="it is all that is left of the segment")


def _topic_id(files: Files, folder: Path, context: PartitionContext, report: PartitionReport) -> Iterator[Finding]:
    path = folder / checkpoints.PARTITION_METADATA
    try:
        report.topic_id = checkpoints.read_partition_metadata(files, path)
        what = "the file is missing" if report.topic_id is None else ""
    except (CorruptLog, UnicodeDecodeError) as error:
        what = f"it cannot be read: {error.reason}"
    if not what:
        return
    loss = "the records are there, but nothing says of which topic's id they are"
    if context.topic_id is None:
        yield Finding(path, what, loss, why_not="the metadata does not know the topic's id")
    else:
        report.replacements[path] = checkpoints.encode_partition_metadata(context.topic_id)
        yield Finding(path, what, loss, repair=Repair.RESTORE_TOPIC_ID)
