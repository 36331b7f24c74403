"""Checks a partition's folder: its segments in order, and all other files.

Owns the order of the checks. One pass over the batches feeds the checks of the indexes, the epochs and the producers, so a
folder is read only once.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from barnabas.errors import CorruptLog
from barnabas.storage import checkpoints
from barnabas.storage.check.batches import Progress
from barnabas.storage.check.finding import Finding, Repair
from barnabas.storage.check.index_check import SegmentFiles
from barnabas.storage.check.segment_check import SEGMENT_FILE, PartitionContext, PartitionReport, SegmentsCheck
from barnabas.storage.compaction.swap import CLEANED_SUFFIX, SWAP_SUFFIX, UnfinishedSwaps, find_unfinished
from barnabas.storage.compaction.swap import OWN_NAME as OF_SWAP
from barnabas.storage.files import TEMPORARY_SUFFIX, Files
from barnabas.storage.loader import LEFTOVER
from barnabas.storage.log_move import MARKER
from barnabas.storage.segment import (
    ABORTED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    SUFFIXES,
    file_name,
)

__all__ = ["PartitionContext", "PartitionReport", "check_partition"]

KNOWN_FILES = {checkpoints.LEADER_EPOCHS, checkpoints.PARTITION_METADATA}
LEFTOVER_SUFFIXES = {
    DELETED_SUFFIX: "a deleted file that is not removed yet",
    CLEANED_SUFFIX: "an unfinished file of a compaction",
    TEMPORARY_SUFFIX: "an unfinished replacement of a small file",
}
NOTHING_LOST = "nothing is lost: the next start removes it"
STILL_NEEDED = "by it the next start knows which of the two folders is the log's"
FINISHES_FIRST = "the next start, or a repair, finishes the compaction first: check again then"


def check_partition(
    files: Files, folder: Path, context: PartitionContext, progress: Progress = lambda _: None
) -> PartitionReport:
    """Read all files in the folder and return the findings.

    Raises:
        OSError: the disk fails, except for unreadable stretches of a segment.
    """
    names = files.list_directory(folder)
    report = PartitionReport(folder)
    swaps, broken = _unfinished_swaps(files, folder, names)
    report.findings += broken
    report.findings += _leftovers(files, folder, names, swaps)
    segments = _segments(folder, names, swaps)
    if not segments:
        report.findings.append(
            Finding(
                folder,
                "there is no segment",
                "the next start begins an empty log",
                why_not="nothing is left",
                mended=not (context.was_clean or context.recovery_point),  # the stop came while the partition was being created
            )
        )
    bases = {segment.base_offset for segment in segments}
    report.findings += _orphans(folder, names, bases | (swaps.replaced if swaps else set()), was_clean=context.was_clean)
    report.findings += _topic_id(files, folder, context, report)
    found = len(report.findings)
    SegmentsCheck(files, folder, names, context, report, progress).run(segments)
    for number, finding in enumerate(report.findings[found:], found):
        if finding.repair is not None and finding.path.suffix == SWAP_SUFFIX:
            report.findings[number] = finding.without_repair(FINISHES_FIRST)
    return report


def _unfinished_swaps(files: Files, folder: Path, names: list[str]) -> tuple[UnfinishedSwaps | None, list[Finding]]:
    """The unfinished swap of a compaction; None with a finding if it cannot be determined."""
    try:
        return find_unfinished(files, folder, names), []
    except CorruptLog as error:
        loss = "the broker does not start with it; the segments that it is to replace are still there, unless they are `.deleted`"
        return None, [Finding(Path(error.path), error.reason, loss, error.position, why_not="only you can tell which to keep")]


def _segments(folder: Path, names: list[str], swaps: UnfinishedSwaps | None) -> list[SegmentFiles]:
    """The segments in order, as they will be after a start has finished an interrupted compaction."""
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


def _leftovers(files: Files, folder: Path, names: list[str], swaps: UnfinishedSwaps | None) -> Iterator[Finding]:
    for name in names:
        path = folder / name
        suffix = path.suffix
        is_of_swap = OF_SWAP.fullmatch(name) is not None
        if name == MARKER:
            what = "the log was moved here from another data folder, where it may still lie"
            yield Finding(
                path, what, "nothing is lost: the next start removes what is left there", why_not=STILL_NEEDED, mended=True
            )
        elif is_of_swap and (suffix == CLEANED_SUFFIX or (swaps is not None and name in swaps.unwanted)):
            what = LEFTOVER_SUFFIXES[CLEANED_SUFFIX]
            yield Finding(path, what, NOTHING_LOST, repair=Repair.FINISH_COMPACTION, mended=True)
        elif is_of_swap:
            if swaps is not None:
                what = "a compacted segment that has not taken its place yet"
                loss = "nothing is lost: the next start finishes that"
                yield Finding(path, what, loss, repair=Repair.FINISH_COMPACTION, mended=True)
        elif LEFTOVER.fullmatch(name) and not files.is_directory(path):
            yield Finding(path, LEFTOVER_SUFFIXES[suffix], NOTHING_LOST, repair=Repair.REMOVE_FILE, mended=True)
        elif name not in KNOWN_FILES and not SEGMENT_FILE.fullmatch(name):
            yield Finding(path, "not a file of a log", "nothing reads it", why_not="whoever put it there may want it")


def _orphans(folder: Path, names: list[str], bases: set[int], *, was_clean: bool) -> Iterator[Finding]:
    """Findings about indexes of missing segments."""
    what = "it belongs to a segment that is not there"
    for name in names:
        if not (SEGMENT_FILE.fullmatch(name) and name.endswith(SUFFIXES) and int(name[:20]) not in bases):
            continue
        if not was_clean:
            loss = "nothing reads it, and the next start removes it: a removal that was cut off leaves this"
            yield Finding(folder / name, what, loss, repair=Repair.REMOVE_FILE, mended=True)
            continue
        loss = "nothing reads it" if name.endswith(ABORTED_SUFFIX) else "nothing reads it; the records of the segment are gone"
        yield Finding(folder / name, what, loss, why_not="it is all that is left of the segment")


def _topic_id(files: Files, folder: Path, context: PartitionContext, report: PartitionReport) -> Iterator[Finding]:
    path = folder / checkpoints.PARTITION_METADATA
    try:
        report.topic_id = checkpoints.read_partition_metadata(files, path)
        what = "the file is missing" if report.topic_id is None else ""
    except CorruptLog as error:
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
