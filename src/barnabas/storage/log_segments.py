"""The segments of one log in order: finds the segment of an offset, and removes or replaces segments.

Owns the list and the names of the files of segments that leave it.

Rules
  1. There is at least one segment. The last one, `active`, is the only one that grows; `sealed_bytes` counts all the others.
  2. The list changes in one step, on the loop. A thread that iterates over the segments takes a copy (`list(segments)`), and
     checks by `in` whether a failed segment is still part of the log.
  3. Files of segments that leave are renamed at once and removed later by `Garbage.remove`, which also closes their descriptors: a read
     that has its region already can finish.
  4. `OpenFiles` counts the open files of the segments in the list, and of no others.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from barnabas.storage.files import Files
from barnabas.storage.garbage import Garbage
from barnabas.storage.open_files import OpenFiles
from barnabas.storage.segment import DELETED_SUFFIX, SNAPSHOT_SUFFIX, SUFFIXES, Segment, file_name


class LogSegments:
    """The segments of a log, at least one, in the order of their base offsets.

    `bases[i]` is the base offset of segment i; the base offsets grow.
    """

    __slots__ = ("_open_files", "_segments", "active", "bases", "sealed_bytes")

    def __init__(self, segments: Sequence[Segment], open_files: OpenFiles | None = None) -> None:
        self._open_files = open_files
        self._use(list(segments))
        self._join(segments)

    def _join(self, segments: Sequence[Segment]) -> None:
        for segment in segments:
            segment.join(self._open_files)

    def _use(self, segments: list[Segment]) -> None:
        self._segments = segments
        self.bases = [segment.base_offset for segment in segments]
        self.active = segments[-1]
        self.sealed_bytes = sum(segment.size for segment in segments[:-1])

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __getitem__(self, index: int) -> Segment:
        return self._segments[index]

    def behind(self, index: int) -> Iterator[Segment]:
        """The segments from the one at `index` on."""
        return islice(self._segments, index, None)

    def __contains__(self, segment: object) -> bool:
        return segment in self._segments

    @property
    def sealed(self) -> list[Segment]:
        """All but the active one."""
        return self._segments[:-1]

    @property
    def size_bytes(self) -> int:
        return self.sealed_bytes + self.active.size

    def index_of(self, offset: int) -> int:
        """Index of the segment that contains `offset`; -1 before the first."""
        return bisect_right(self.bases, offset) - 1

    def holding(self, offset: int) -> Segment | None:
        """The segment that contains `offset`; None before the first."""
        if offset >= self.active.base_offset:
            return self.active
        slot = self.index_of(offset)
        return self._segments[slot] if slot >= 0 else None

    def starting_at(self, offset: int) -> list[Segment]:
        """The segments from the one that contains `offset` on."""
        return self._segments[max(0, self.index_of(offset)) :]

    def ending_from(self, offset: int) -> list[Segment]:
        """The segments that end at or after `offset`."""
        return self.starting_at(offset - 1)

    def count_below(self, offset: int) -> int:
        """How many segments end at or before `offset`; the active one never counts."""
        return max(0, self.index_of(offset))

    # Changes. They return the segments that leave the list; `retire` or `remove_segment_files` handles their files.

    def append(self, segment: Segment) -> None:
        """Add `segment`, the new active one."""
        segment.join(self._open_files)
        self.sealed_bytes += self.active.size
        self._segments.append(segment)
        self.bases.append(segment.base_offset)
        self.active = segment

    def replace_active(self, segment: Segment) -> None:
        """Replace an empty active segment by `segment`."""
        self.active.leave()
        segment.join(self._open_files)
        self._segments[-1], self.bases[-1], self.active = segment, segment.base_offset, segment

    def replace(self, old: Sequence[Segment], new: Sequence[Segment]) -> None:
        """Replace `old`, sealed neighbours in the list, by `new`.

        Then `new` covers the offsets of `old`: the last of `new` gets the `next_offset` that leads to the following segment.
        """
        start = self._segments.index(old[0])
        end = start + len(old)
        assert self._segments[start:end] == list(old), "neighbours are replaced"
        assert end < len(self._segments), "the active segment stays"
        if new:
            new[-1].next_offset = self._segments[end].base_offset
        self._use([*self._segments[:start], *new, *self._segments[end:]])
        self._join(new)
        _leave(old)

    def detach_first(self, count: int) -> list[Segment]:
        """Remove the oldest `count` segments from the list, never all."""
        gone = self._segments[:count]
        self._use(self._segments[count:])
        return _leave(gone)

    def detach_behind(self, offset: int) -> list[Segment]:
        """Remove the segments that begin after `offset` from the list; the segment that contains it becomes the active one."""
        keep = self.index_of(offset) + 1
        gone = self._segments[keep:]
        self._use(self._segments[:keep])
        return _leave(gone)

    def start_over(self, segment: Segment) -> list[Segment]:
        """Replace all segments by `segment`."""
        gone = self._segments
        self._use([segment])
        self._join([segment])
        return _leave(gone)

    def leave_all(self) -> list[Segment]:
        """All segments, which the caller closes from now on; the list stays readable."""
        self._open_files = None
        return _leave(list(self._segments))


def _leave(segments: Sequence[Segment]) -> list[Segment]:
    for segment in segments:
        segment.leave()
    return list(segments)


def retire(files: Files, gone: Sequence[Segment]) -> Garbage:
    """Rename the files of segments that left a log; `Garbage.remove` removes the files and closes their descriptors."""
    doomed = [path for segment in gone for path in _rename(files, segment)]
    return Garbage(files, doomed, [segment.close for segment in gone])


def _rename(files: Files, segment: Segment) -> list[Path]:
    renamed = []
    for suffix in SUFFIXES:
        path = segment.directory / file_name(segment.base_offset, suffix)
        if files.exists(path):
            target = path.with_name(path.name + DELETED_SUFFIX)
            files.rename(path, target)
            renamed.append(target)
    return renamed


def remove_segment_files(files: Files, segment: Segment) -> None:
    """Remove a segment's files at once."""
    segment.discard()
    files.unlink(segment.directory / file_name(segment.base_offset, SNAPSHOT_SUFFIX))
