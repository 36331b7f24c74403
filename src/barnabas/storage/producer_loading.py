"""Loads the producers at the end of a log: from the newest valid snapshot and the batches after it."""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from barnabas.errors import CorruptLog
from barnabas.protocol.records.batch_header import (
    NO_PRODUCER_ID,
)
from barnabas.protocol.records.record import iterate_records
from barnabas.storage.files import Files
from barnabas.storage.markers import ending_of
from barnabas.storage.producer_state import CompletedTransaction, ProducerStates
from barnabas.storage.segment import (
    SNAPSHOT_SUFFIX,
    Position,
    Segment,
    file_name,
)
from barnabas.storage.snapshot import decode_snapshot
from barnabas.storage.transaction_index import add_aborted

logger = logging.getLogger(__name__)


def snapshot_offsets(files: Files, directory: Path) -> list[int]:
    """Offsets of the snapshots of a folder, in ascending order."""
    return snapshots_in(files.list_directory(directory))


def snapshots_in(names: Iterable[str]) -> list[int]:
    """Offsets of the snapshots among the names of a folder, which are sorted."""
    return [int(name.removesuffix(SNAPSHOT_SUFFIX)) for name in names if name.endswith(SNAPSHOT_SUFFIX)]


def load_producers(files: Files, directory: Path, segments: list[Segment], snapshots: Sequence[int]) -> ProducerStates:
    """The producers at the end of `segments`; removes those of `snapshots` that are after it, broken or superseded."""
    end_offset = segments[-1].next_offset
    producers, start = ProducerStates(), segments[0].base_offset
    for offset in reversed(snapshots):
        path = directory / file_name(offset, SNAPSHOT_SUFFIX)
        if offset <= end_offset:
            try:
                producers, start = ProducerStates(decode_snapshot(files.read_file(path), path)), offset
                _remove_superseded(files, directory, segments, [each for each in snapshots if each <= offset])
                break
            except CorruptLog as error:
                logger.warning("event=producer-snapshot-dropped file=%s reason=%r", path, error.reason)
        files.unlink(path)
    for segment in segments:
        if segment.next_offset > start:
            _replay(segment, producers, start)
    return producers


def _remove_superseded(files: Files, directory: Path, segments: Sequence[Segment], snapshots: Sequence[int]) -> None:
    """Remove the snapshots that flushes and stops left in the middle of segments, except the last one of each segment. If a log is cut,
    the producers are found from the start of a segment on."""
    bases = [segment.base_offset for segment in segments]
    for offset, following in pairwise(snapshots):
        if bisect_left(bases, offset) == bisect_left(bases, following):
            files.unlink(directory / file_name(offset, SNAPSHOT_SUFFIX))


def _replay(segment: Segment, producers: ProducerStates, start: int) -> None:
    try:
        found = segment.lookup.find(max(start, segment.base_offset))
    except CorruptLog:
        found = Position(0, segment.base_offset)
    if found is not None:
        for aborted in replay(segment, producers, found.position, start):
            add_aborted(segment, aborted)


def replay(segment: Segment, producers: ProducerStates, position: int, start: int) -> list[CompletedTransaction]:
    """Apply the batches of producers with offsets from `start` on, reading from `position` on; returns the transactions aborted there."""
    aborted = []
    for at, header in segment.scan.walk_around(position):
        if header.producer_id == NO_PRODUCER_ID or header.base_offset < start:
            continue
        if not header.is_control:
            producers.update(header, header.base_offset)
            continue
        try:
            marker = next(iterate_records(segment.scan.read_batch(at, header)), None)
        except CorruptLog as error:
            logger.error(
                "event=transaction-marker-unreadable file=%s position=%d reason=%r", error.path, error.position, error.reason
            )
            continue
        ending = ending_of(marker)
        completed = producers.update_marker(header, ending, marker.offset) if marker is not None and ending is not None else None
        if completed is not None and completed.aborted:
            aborted.append(completed)
    return aborted
