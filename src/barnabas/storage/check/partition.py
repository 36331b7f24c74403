"""A partition's folder: its segments in order, and everything that lies beside them.

Owns the order of the checks. One pass over the batches feeds the judges of the indexes, the epochs and the producers, so a folder
is read once whatever is asked of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import UUID

from barnabas.errors import CorruptLog
from barnabas.storage import checkpoints
from barnabas.storage.aborted import encode_entries
from barnabas.storage.check.batches import Progress, SegmentWalk
from barnabas.storage.check.epochs import EpochCheck
from barnabas.storage.check.finding import Finding, Repair
from barnabas.storage.check.indexes import IndexCheck, SegmentFiles, check_aborted
from barnabas.storage.check.producers import ProducerCheck
from barnabas.storage.compaction.swap import CLEANED_SUFFIX, SWAP_SUFFIX, UnfinishedSwaps, find_unfinished
from barnabas.storage.files import TEMPORARY_SUFFIX, Files
from barnabas.storage.moving import MARKER
from barnabas.storage.segment import (
    ABORTED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    SUFFIXES,
    file_name,
)

SEGMENT_FILE = re.compile(r"\d{20}(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)")
KNOWN_FILES = {checkpoints.LEADER_EPOCHS, checkpoints.PARTITION_METADATA}
LEFTOVER_SUFFIXES = {
    DELETED_SUFFIX: "a deleted file that is not removed yet",
    CLEANED_SUFFIX: "an unfinished file of a compaction",
    TEMPORARY_SUFFIX: "an unfinished replacement of a small file",
}
NOTHING_LOST = "nothing is lost: the next start removes it"
STILL_NEEDED = "by it the next start knows which of the two folders is the log's"
FINISHES_FIRST = "the next start, or a repair, finishes the compaction first: check again then"
NEVER = 2**63 - 1  # as a recovery point: all of the log is on the disk


@dataclass(frozen=True, slots=True)
class PartitionContext:
    """What a log directory knows of a partition.

    Args:
        recovery_point: records below it are on the disk.
        was_clean: the last stop was clean, so `recovery_point` is where the log ends.
        topic_id: as the metadata has it, or None where it is not here (a cluster's), so that little is known of the topic.
        log_start_offset: records below it are deleted, whether they still lie there or not.
        is_compacted: its topic is compacted, or once was.
    """

    recovery_point: int = 0
    was_clean: bool = False
    topic_id: UUID | None = None
    log_start_offset: int = 0
    is_compacted: bool = False


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
    swaps, broken = _unfinished_swaps(files, folder, names)
    report.findings += broken
    report.findings += _leftovers(folder, names, swaps)
    segments = _segments(folder, names, swaps)
    if not segments:
        report.findings.append(
            Finding(
                folder,
                "there is no segment",
                "the next start begins an empty log",
                why_not="nothing is left",
                mended=not (context.was_clean or context.recovery_point),  # the stop came while the partition was made
            )
        )
    bases = {segment.base_offset for segment in segments}
    report.findings += _orphans(folder, names, bases | (swaps.replaced if swaps else set()))
    report.findings += _topic_id(files, folder, context, report)
    found = len(report.findings)
    _check_segments(files, folder, names, segments, context, report, progress)
    for number, finding in enumerate(report.findings[found:], found):
        if finding.repair is not None and finding.path.suffix == SWAP_SUFFIX:
            report.findings[number] = finding.without_repair(FINISHES_FIRST)
    return report


def _unfinished_swaps(files: Files, folder: Path, names: list[str]) -> tuple[UnfinishedSwaps | None, list[Finding]]:
    """What compaction left half done; None with a finding where that cannot be told."""
    try:
        return find_unfinished(files, folder, names), []
    except CorruptLog as error:
        loss = "the broker does not start with it; the segments that it is to replace are still there, unless they are `.deleted`"
        return None, [Finding(Path(error.path), error.reason, loss, error.position, why_not="only you can tell which to keep")]


def _segments(folder: Path, names: list[str], swaps: UnfinishedSwaps | None) -> list[SegmentFiles]:
    """The segments in order, as they are once a start has finished what compaction left half done."""
    known = set(names)
    bases = {int(name[:20]) for name in names if SEGMENT_FILE.fullmatch(name) and name.endswith(LOG_SUFFIX)}
    if swaps is not None:
        bases = (bases - swaps.replaced) | {base for base in swaps.complete if _swap_name(base) in known}
    found = []
    for base in sorted(bases):
        is_swap = _swap_name(base) in known and swaps is not None and base in swaps.complete
        has_old = file_name(base, LOG_SUFFIX) in known
        paths = []
        for suffix in SUFFIXES:
            name = file_name(base, suffix)
            waits = is_swap and (has_old or name + SWAP_SUFFIX in known)
            paths.append(folder / (name + SWAP_SUFFIX if waits else name))
        found.append(SegmentFiles(base, *paths))
    return found


def _swap_name(base: int) -> str:
    return file_name(base, LOG_SUFFIX) + SWAP_SUFFIX


def _check_segments(
    files: Files,
    folder: Path,
    names: list[str],
    segments: list[SegmentFiles],
    context: PartitionContext,
    report: PartitionReport,
    progress: Progress,
) -> None:
    first = segments[0].base_offset if segments else 0
    snapshots = [int(n.removesuffix(SNAPSHOT_SUFFIX)) for n in names if n.endswith(SNAPSHOT_SUFFIX) and SEGMENT_FILE.fullmatch(n)]
    producers, epochs = ProducerCheck(files, folder, snapshots, first), EpochCheck(files, folder)
    report.start_offset = report.end_offset = first
    report.segments = len(segments)
    log_end = context.recovery_point if context.was_clean and context.recovery_point else None
    recovery_point = NEVER if context.was_clean else context.recovery_point
    thinned = False
    holes: list[Finding] = []
    for segment, following in zip(segments, [*(s.base_offset for s in segments[1:]), None][: len(segments)], strict=True):
        is_active = following is None
        # The next start reads what lies past the recovery point, and makes what stands beside it anew.
        is_recovered = not context.was_clean and (is_active or (following or 0) > recovery_point)
        indexes = IndexCheck(files, segment, is_active=is_active, is_recovered=is_recovered)
        walk = SegmentWalk(
            files, segment.log, segment.base_offset, log_end if is_active else following, recovery_point, progress,
            is_last=is_active, may_have_gaps=context.is_compacted or context.topic_id is None,
        )  # fmt: skip
        producers.begin_segment()
        for batch in walk:
            header = batch.header
            if not batch.whole:
                indexes.damaged(batch.position, batch.end)
                producers.is_exact = False
                continue
            indexes.batch(batch.position, header)
            epochs.batch(segment.log, batch.position, header)
            producers.batch(header, walk.records_of(batch) if header.is_control else ())
            thinned = thinned or header.records_count != header.last_offset_delta + 1
            report.batches += 1
            report.records += header.records_count
        indexes.end(walk.whole_end, walk.next_offset)
        thinned = thinned or walk.gaps > 0
        producers.is_exact = producers.is_exact and not thinned and not walk.findings
        report.findings += walk.findings + indexes.findings
        if following is not None and walk.next_offset < following and not walk.findings:
            holes.append(_hole(segment.log, walk.next_offset, following, recovery_point))
        exact = producers.is_exact
        for finding in check_aborted(files, segment, producers.markers if exact else None, producers.aborted if exact else []):
            found = replace(finding, mended=is_recovered)
            if producers.is_complete and exact:
                report.replacements[finding.path] = encode_entries(producers.aborted)
                report.findings.append(found)
            else:
                report.findings.append(found.without_repair("the batches that it would be made from are not all there"))
        report.size_bytes += walk.size
        report.end_offset = max(walk.next_offset, report.end_offset)
    if not thinned and not context.is_compacted:  # only compaction makes holes
        report.findings += holes
    producers.end(report.end_offset)
    report.findings += producers.findings
    report.replacements |= producers.replacements
    for finding in epochs.findings(context.log_start_offset, report.end_offset, recovery_point):
        report.findings.append(finding)
        if finding.repair is Repair.REBUILD_EPOCHS and epochs.rebuilt is not None:
            report.replacements[finding.path] = checkpoints.encode_leader_epochs(epochs.rebuilt)


def _hole(path: Path, end: int, following: int, recovery_point: int) -> Finding:
    what = f"it ends before offset {end}, and the next segment begins at {following}"
    loss = "these records are not there"
    if end >= recovery_point:
        loss += f"; the next start removes what follows, for nothing past the recovery point {recovery_point} was said to be on the disk"
    return Finding(path, what, loss, None, end, following - 1, why_not="nothing holds them")


def _leftovers(folder: Path, names: list[str], swaps: UnfinishedSwaps | None) -> Iterator[Finding]:
    for name in names:
        path = folder / name
        suffix = path.suffix
        if name == MARKER:
            what = "the log was moved here from another data folder, where it may still lie"
            yield Finding(
                path, what, "nothing is lost: the next start removes what is left there", why_not=STILL_NEEDED, mended=True
            )
        elif suffix == CLEANED_SUFFIX or (suffix == SWAP_SUFFIX and swaps is not None and name in swaps.unwanted):
            what = LEFTOVER_SUFFIXES[CLEANED_SUFFIX]
            yield Finding(path, what, NOTHING_LOST, repair=Repair.FINISH_COMPACTION, mended=True)
        elif suffix == SWAP_SUFFIX:
            if swaps is not None:
                what = "a compacted segment that has not taken its place yet"
                loss = "nothing is lost: the next start finishes that"
                yield Finding(path, what, loss, repair=Repair.FINISH_COMPACTION, mended=True)
        elif suffix in LEFTOVER_SUFFIXES:
            yield Finding(path, LEFTOVER_SUFFIXES[suffix], NOTHING_LOST, repair=Repair.REMOVE_FILE, mended=True)
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
        is_mended = report.topic_id is None and (not context.was_clean or not files.exists(path))
        yield Finding(path, what, loss, repair=Repair.RESTORE_TOPIC_ID, mended=is_mended)
