"""How much of one log is on the disk, and bringing the rest there.

Owns the recovery point (everything below it is durable), when a flush is due, and the flush itself.

Rules
  1. `flush` blocks and runs in a thread while the loop appends; everything else is called on the loop. It works on a copy of the list
     of segments and moves the recovery point last.
  2. A truncation that comes while a flush runs takes its result away: `truncations` is raised when one begins and when it ends, and the
     recovery point moves, under the lock, only if it is what it was.
  3. A file that was removed while the flush worked is no failure.
"""

from __future__ import annotations

from threading import Lock

from barnabas.config.topic import TopicConfig
from barnabas.errors import LogDirFailed
from barnabas.storage.epoch_file import EpochFile
from barnabas.storage.loader import aborted_of
from barnabas.storage.segment import Segment
from barnabas.storage.segments import Segments


class Flusher:
    """The flushing of one log."""

    __slots__ = ("_lock", "_seen", "closed", "recovery_point", "truncations")

    def __init__(self, recovery_point: int, now_ms: int) -> None:
        self.recovery_point = recovery_point
        self.truncations = 0
        self.closed = False  # the log's files may be gone
        self._lock = Lock()
        self._seen = recovery_point, now_ms  # the recovery point, and when `is_due` first saw it

    def is_due(self, log_end_offset: int, config: TopicConfig, now_ms: int) -> bool:
        """Whether `flush.messages` or `flush.ms` ask for a flush before more is acknowledged."""
        waiting = log_end_offset - self.recovery_point
        seen, seen_ms = self._seen
        if not waiting or seen != self.recovery_point:
            self._seen, seen_ms = (self.recovery_point, now_ms), now_ms
        return waiting > 0 and (waiting >= config.flush_messages or now_ms - seen_ms >= config.flush_ms)

    def flush(self, segments: Segments, epochs: EpochFile, end: int) -> None:
        """Block until the records below `end` are on the disk.

        Raises:
            LogDirFailed: the disk does not work; the recovery point stays.
        """
        truncations, start = self.truncations, self.recovery_point
        if end <= start:
            return
        for segment in list(segments):
            if segment.next_offset > start and segment.base_offset < end:
                self._sync(segment, segments, truncations)
        epochs.sync(is_gone=lambda: self.closed)
        with self._lock:
            if self.truncations == truncations:
                self.recovery_point = max(self.recovery_point, end)

    def _sync(self, segment: Segment, segments: Segments, truncations: int) -> None:
        try:
            segment.sync()
            aborted_of(segment).sync()
        except OSError as error:
            removed = self.closed or segment not in segments or self.truncations != truncations
            if not removed:
                raise LogDirFailed(str(segment.directory.parent), str(error)) from error

    def truncating(self) -> None:
        """A truncation begins."""
        with self._lock:
            self.truncations += 1

    def truncated(self, log_end_offset: int) -> None:
        """A truncation ended."""
        with self._lock:
            self.truncations += 1
            self.recovery_point = min(self.recovery_point, log_end_offset)
