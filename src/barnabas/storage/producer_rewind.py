"""Finds the producers at an offset inside a log, in a thread, before the log is truncated there.

Rules
  1. It changes nothing in the log and uses none of its descriptors, because the log may be closed, moved or compacted meanwhile.
  2. The result is valid only while the log is unchanged (`mark`); the truncation checks this.

How it works: it reads the newest snapshot up to the offset, and the batches between the two, at most as many as a segment holds.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from barnabas.errors import CorruptLog
from barnabas.storage.files import Files
from barnabas.storage.producer_loading import replay, snapshot_offsets
from barnabas.storage.producer_state import ProducerStates
from barnabas.storage.segment import SNAPSHOT_SUFFIX, Segment, file_name
from barnabas.storage.snapshot import decode_snapshot

logger = logging.getLogger(__name__)


class _Piece(NamedTuple):
    """The bytes [start, stop) of a segment's file."""

    segment: Segment
    start: int
    stop: int


class ProducerRewind:
    """See the module.

    Args:
        segments: of the log, up to the one that is cut.
        end_offset: the new end of the log.
        stop: the byte of the last segment where the log will end.
        mark: equal as long as the log is unchanged.
    """

    def __init__(
        self, files: Files, directory: Path, segments: Sequence[Segment], *, end_offset: int, stop: int, mark: object
    ) -> None:
        self.mark = mark
        self.producers: ProducerStates | None = None  # None: not found yet, or the search failed
        self._files, self._directory = files, directory
        self._snapshot = max((offset for offset in snapshot_offsets(files, directory) if offset <= end_offset), default=None)
        self._start = segments[0].base_offset if self._snapshot is None else self._snapshot
        self._pieces = [
            _Piece(segment, self._first_byte(segment), stop if segment is segments[-1] else segment.size)
            for segment in segments
            if segment.next_offset > self._start
        ]

    def _first_byte(self, segment: Segment) -> int:
        found = segment.lookup.find(self._start) if self._start > segment.base_offset else None
        return 0 if found is None else found.position

    @property
    def size_bytes(self) -> int:
        """The number of bytes to read."""
        return sum(max(0, piece.stop - piece.start) for piece in self._pieces)

    def run(self) -> None:
        """Find the producers; blocks. After a failure there is no result, and the truncation gets the error itself."""
        try:
            producers = ProducerStates() if self._snapshot is None else self._read_snapshot(self._snapshot)
            for piece in self._pieces:
                segment = Segment.existing(self._files, piece.segment.directory, piece.segment.base_offset, 0)
                segment.size = min(segment.size, piece.stop)
                try:
                    replay(segment, producers, piece.start, self._start)
                finally:
                    segment.close()
        except (CorruptLog, OSError) as error:
            logger.warning("event=producers-not-found-out directory=%s error=%r", self._directory, str(error))
        else:
            self.producers = producers

    def _read_snapshot(self, offset: int) -> ProducerStates:
        path = self._directory / file_name(offset, SNAPSHOT_SUFFIX)
        return ProducerStates(decode_snapshot(self._files.read_file(path), path))
