"""Tracks which bytes of a segment may be sent unchecked, and which are known to be damaged.

Owns, for one segment, the bytes that this process wrote, those that it has verified since, and the damaged stretches that it
has found.

Rules
  1. Bytes that this process wrote are correct while they are in memory; bytes from the disk are verified by their CRC before
     they are served.
  2. Verified bytes stay trusted until they are seen to have left memory: then they, and the bytes that the kernel reads ahead
     after them, are read and verified again.
  3. Only the loop uses it; a thread that verifies passes its result to the loop.

How it works: readers go through a log in order, so the bytes that they verified are one stretch that grows. Stretches that touch become
one. If there are many, the oldest are forgotten; their bytes are then verified again. The hot path (the end of the active segment) is
one comparison with `tail`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from barnabas.storage.files import Files

MAX_STRETCHES = 64  # remembered per segment; more mean that a reader jumps around in it
READ_AHEAD_BYTES = 2 * 1024 * 1024  # upper bound of the kernel's read-ahead after a cold read
READ_ENDS = 16  # remembered per segment; so many readers find their next batch without a search
MAX_DAMAGES = 1000  # remembered per segment; further ones are found again when they are read


NOTHING_FOLLOWS = 2**63 - 1  # the next offset after damage that reaches the end of the file


class Damage(NamedTuple):
    """Bytes [position, end) of a segment that differ from the written ones; they had offsets [first_offset, next_offset)."""

    position: int
    end: int
    first_offset: int
    next_offset: int
    reason: str


class SegmentIntegrity:
    """The state of the bytes of one segment.

    `tail`: from this byte on, this process wrote the segment. `end_offset`: no batch of the segment reaches past it; the CRC does not
    cover offsets. `cuts`: number of truncations of the segment; results that a thread found before the last one are void.
    """

    __slots__ = ("_ends", "_stretches", "cuts", "damages", "end_offset", "files", "tail")

    def __init__(self, files: Files, tail: int, end_offset: Callable[[], int] = lambda: NOTHING_FOLLOWS) -> None:
        self.files = files
        self.tail = tail
        self.end_offset = end_offset
        self.cuts = 0
        self.damages: dict[int, Damage] | None = None  # by position; None: no damage found
        self._stretches: list[tuple[int, int]] = []
        # Offset that a reader asks for next -> position of the batch where its last read ended.
        self._ends: dict[int, int] | None = None

    def covers(self, start: int, end: int) -> bool:
        """Whether the bytes [start, end) may be sent unchecked."""
        if start >= self.tail:
            return True
        for first, last in self._stretches:  # noqa: SIM110 - a generator takes longer, and every fetch runs this
            if first <= start and (end <= last or last >= self.tail):
                return True
        return False

    def add(self, start: int, end: int) -> None:
        """Record that the bytes [start, end) were verified."""
        apart = []
        for first, last in self._stretches:
            if last < start or first > end:
                apart.append((first, last))
            else:
                start, end = min(start, first), max(end, last)
        self._stretches = [*apart, (start, end)][-MAX_STRETCHES:]

    def forget_behind(self, position: int, size: int, read_end: int = 0) -> None:
        """Record a read from the disk that was verified up to `position`: the bytes after it may come from the disk too. That concerns
        bytes up to `read_end` at least. The segment has `size` bytes."""
        end = min(max(position + READ_AHEAD_BYTES, read_end), size)
        if end <= position:
            return
        if self.tail < end:
            if self.tail < position:
                self.add(self.tail, position)
            self.tail = end
        kept = []
        for first, last in self._stretches:
            kept += [(a, b) for a, b in ((first, min(last, position)), (max(first, end), last)) if a < b]
        self._stretches = kept[-MAX_STRETCHES:]

    def note_end(self, offset: int, position: int) -> None:
        """Record that a read ended at byte `position`, where a batch begins; no earlier batch reaches `offset`, which its reader asks
        for next."""
        if self._ends is None:
            self._ends = {}
        elif len(self._ends) >= READ_ENDS:
            del self._ends[next(iter(self._ends))]
        self._ends[offset] = position

    def end_of_read(self, offset: int) -> int | None:
        """The byte where the read ended whose reader now asks for `offset`; None if it is not remembered."""
        return None if self._ends is None else self._ends.get(offset)

    def asked_behind(self, position: int) -> int | None:
        """The offset that a reader asks for after its read ended at byte `position`; None if it is not remembered."""
        for offset, end in reversed((self._ends or {}).items()):
            if end == position:
                return offset
        return None

    def note(self, damage: Damage) -> bool:
        """Remember a damaged stretch; returns whether it was unknown."""
        if self.damages is None:
            self.damages = {}
        known = damage.position in self.damages
        if known or len(self.damages) < MAX_DAMAGES:
            self.damages[damage.position] = damage
        return not known

    def damage_at(self, offset: int) -> Damage | None:
        """The damaged stretch that held the record at `offset`."""
        for damage in (self.damages or {}).values():
            if damage.first_offset <= offset < damage.next_offset:
                return damage
        return None

    def cut(self, position: int) -> None:
        """Record that the segment was cut at `position`, and grows from there."""
        self.cuts += 1
        self.tail = min(self.tail, position)
        self._ends = None
        if self.damages:
            self.damages = {at: damage for at, damage in self.damages.items() if at < position}
