"""One pass over the batches of a partition, segment by segment, which feeds the checks of all other files.

Owns the checks over several segments: gaps between them, producers, epochs, and counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from uuid import UUID

from msgspec import Struct, field
from msgspec.structs import replace

from barnabas.storage import checkpoints
from barnabas.storage.check.batches import Progress, SegmentWalk
from barnabas.storage.check.epochs import EpochCheck
from barnabas.storage.check.finding import Finding, Repair
from barnabas.storage.check.index_check import IndexCheck, SegmentFiles, check_aborted
from barnabas.storage.check.producers import ProducerCheck
from barnabas.storage.files import Files
from barnabas.storage.segment import SNAPSHOT_SUFFIX
from barnabas.storage.transaction_index import encode_entries

SEGMENT_FILE = re.compile(r"\d{20}(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)")
NEVER = 2**63 - 1  # the recovery point of a log that is flushed completely
NOT_ALL_THERE = "the batches that it would be made from are not all there"


class PartitionContext(Struct, frozen=True):
    """A log directory's facts about a partition.

    Args:
        recovery_point: records before it are flushed.
        was_clean: the last stop was clean, so `recovery_point` is the log end.
        topic_id: from the metadata; None if the metadata is not here (in a cluster), so little is known of the topic.
        log_start_offset: records before it are deleted, even if they are still in the files.
        is_compacted: its topic is compacted, or was at some time.
    """

    recovery_point: int = 0
    was_clean: bool = False
    topic_id: UUID | None = None
    log_start_offset: int = 0
    is_compacted: bool = False


class PartitionReport(Struct):
    """The report about a partition's folder; `replacements` are corrected small files."""

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


class SegmentsCheck:
    """Fills a report with the contents and the findings of the segments of one folder."""

    def __init__(
        self,
        files: Files,
        folder: Path,
        names: Sequence[str],
        context: PartitionContext,
        report: PartitionReport,
        progress: Progress,
    ) -> None:
        self._files = files
        self._folder = folder
        self._names = names
        self._context = context
        self._report = report
        self._progress = progress
        self._recovery_point = NEVER if context.was_clean else context.recovery_point
        self._is_thinned = False  # compaction removed records
        self._holes: list[Finding] = []
        self._producers: ProducerCheck
        self._epochs = EpochCheck(files, folder)

    def run(self, segments: Sequence[SegmentFiles]) -> None:
        """Check the segments, given in order."""
        first = segments[0].base_offset if segments else 0
        names = [name for name in self._names if name.endswith(SNAPSHOT_SUFFIX) and SEGMENT_FILE.fullmatch(name)]
        snapshots = [int(name.removesuffix(SNAPSHOT_SUFFIX)) for name in names]
        self._producers = ProducerCheck(self._files, self._folder, snapshots, first)
        self._report.start_offset = self._report.end_offset = first
        self._report.segments = len(segments)
        for segment, following in pairwise(segments):
            self._check(segment, following.base_offset)
        if segments:
            self._check(segments[-1], None)
        self._end()

    def _check(self, segment: SegmentFiles, following: int | None) -> None:
        """Check one segment; the next one begins at `following`, None for the last segment."""
        context, report = self._context, self._report
        is_active = following is None
        # The next start reads the log after the recovery point, and rebuilds its other files.
        is_recovered = not context.was_clean and (is_active or (following or 0) > self._recovery_point)
        log_end = context.recovery_point if context.was_clean and context.recovery_point else None
        indexes = IndexCheck(self._files, segment, is_active=is_active, is_recovered=is_recovered)
        walk = SegmentWalk(
            self._files,
            segment.log,
            segment.base_offset,
            log_end if is_active else following,
            self._recovery_point,
            self._progress,
            is_last=is_active,
            may_have_gaps=context.is_compacted or context.topic_id is None,
        )
        self._go_over(segment, walk, indexes)
        report.findings += walk.findings + indexes.findings
        if following is not None and walk.next_offset < following and not walk.findings:
            self._producers.is_exact = False
            self._holes.append(_hole(segment.log, walk.next_offset, following, self._recovery_point))
        self._check_aborted(segment, is_recovered=is_recovered)
        report.size_bytes += walk.size
        report.end_offset = max(walk.next_offset, report.end_offset)

    def _go_over(self, segment: SegmentFiles, walk: SegmentWalk, indexes: IndexCheck) -> None:
        """Pass every batch to all checks."""
        producers, report = self._producers, self._report
        producers.begin_segment()
        for batch in walk:
            header = batch.header
            if not batch.whole:
                indexes.damaged(batch.position, batch.end)
                producers.is_exact = False
                continue
            indexes.batch(batch.position, header)
            self._epochs.batch(segment.log, batch.position, header)
            self._note_thinned(walk.gaps > 0)  # before `producers.batch` checks the snapshots up to this batch
            producers.batch(header, walk.records_of(batch) if header.is_control else ())
            self._note_thinned(header.records_count != header.last_offset_delta + 1)
            report.batches += 1
            report.records += header.records_count
        indexes.end(walk.whole_end, walk.next_offset)
        self._note_thinned(walk.gaps > 0)
        producers.is_exact = producers.is_exact and not walk.findings

    def _note_thinned(self, is_thinned: bool) -> None:
        """Note whether compaction removed records; then it may lack batches of a producer that an older snapshot has."""
        if is_thinned:
            self._is_thinned, self._producers.is_exact = True, False

    def _check_aborted(self, segment: SegmentFiles, *, is_recovered: bool) -> None:
        producers, report, exact = self._producers, self._report, self._producers.is_exact
        markers, aborted = (producers.markers, producers.aborted) if exact else (None, [])
        for finding in check_aborted(self._files, segment, markers, aborted):
            found = replace(finding, mended=is_recovered)
            if producers.is_complete and exact:
                report.replacements[finding.path] = encode_entries(producers.aborted)
                report.findings.append(found)
            else:
                report.findings.append(found.without_repair(NOT_ALL_THERE))

    def _end(self) -> None:
        """Add the findings that follow from all segments."""
        context, report, producers, epochs = self._context, self._report, self._producers, self._epochs
        if not self._is_thinned and not context.is_compacted:  # only compaction creates gaps
            report.findings += self._holes
        producers.end(report.end_offset)
        report.findings += producers.findings
        report.replacements |= producers.replacements
        end, was_clean = report.end_offset, context.was_clean
        for finding in epochs.findings(context.log_start_offset, end, self._recovery_point, was_clean=was_clean):
            report.findings.append(finding)
            if finding.repair is Repair.REBUILD_EPOCHS and epochs.rebuilt is not None:
                report.replacements[finding.path] = checkpoints.encode_leader_epochs(epochs.rebuilt)


def _hole(path: Path, end: int, following: int, recovery_point: int) -> Finding:
    what = f"it ends before offset {end}, and the next segment begins at {following}"
    loss = "these records are not there"
    if end >= recovery_point:
        loss += f"; the next start removes what follows, for nothing past the recovery point {recovery_point} was said to be on the disk"
    return Finding(path, what, loss, None, end, following - 1, why_not="nothing holds them")
