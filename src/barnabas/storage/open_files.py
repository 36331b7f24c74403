"""Bounds over all logs: the number of segments with an open file, and with a part of their index in memory.

Owns the list of segments with an open descriptor, the one opened longest ago first, and that of segments whose index keeps windows, the one
that got its last window longest ago first.

Rules
  1. A region that a log handed out must stay readable until the loop runs again, so nothing is closed at the moment when one more is
     opened: `trim` runs in a later turn of the loop. Until then there may be more than `limit`, by what one turn can open;
     `is_crowded` tells readers when to leave the rest for the next.
  2. A segment that was used since the last look at it is passed over once (second chance), one that a flush works on always.
  3. Segments that leave their log are no longer counted: `Garbage` closes them.
  4. A segment that is closed, or leaves its log, lets go of its windows.
  5. Threads that open or close whole logs call `opened` and `forget` while the loop trims: each step is one call of the dict.

How it works: a read or an append sets a flag on its segment and no more; the order is looked at only when there are too many.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sized
from typing import Protocol

from barnabas import limits
from barnabas.storage.index import SparseIndex


class OpenSegment(Protocol):
    """The interface of a segment for this module."""

    used: bool  # since `trim` last looked at the segment
    pins: int  # flushes that need the open file
    index: SparseIndex

    def close(self) -> None: ...


class OpenFiles:
    """The open segments of one broker.

    Args:
        limit: how many may stay open.
        later: calls what it is given in a later turn of the loop; also from threads, which open the first segments of logs.
        held: files that somebody else has open, which count as well; of the limit one half at most.
    """

    __slots__ = ("_held", "_is_trimming", "_later", "_segments", "_with_windows", "limit")

    def __init__(self, limit: int, later: Callable[[Callable[[], None]], object], held: Sized = ()) -> None:
        self.limit = limit
        self._held = held
        self._later = later
        self._segments: OrderedDict[OpenSegment, None] = OrderedDict()
        self._with_windows: OrderedDict[OpenSegment, bool] = OrderedDict()
        self._is_trimming = False

    def __len__(self) -> int:
        return len(self._segments)

    @property
    def _most(self) -> int:
        """How many may stay open now."""
        return self.limit - min(len(self._held), self.limit // 2)

    @property
    def is_crowded(self) -> bool:
        """Whether so many are open beyond the limit that nobody should open another before `trim` has run."""
        return len(self._segments) >= self.limit + self.limit // 2

    def opened(self, segment: OpenSegment) -> None:
        self._segments[segment] = None
        self.check()

    def check(self) -> None:
        """Ensure the limit of open files, after segments were opened or other code holds more files."""
        if len(self._segments) > self._most and not self._is_trimming:
            self._is_trimming = True
            self._later(self.trim)

    def forget(self, segment: OpenSegment) -> None:
        """It was closed, or somebody else closes it."""
        self._segments.pop(segment, None)
        if self._with_windows.pop(segment, False):
            segment.index.forget_windows()

    def keep_windows(self, segment: OpenSegment) -> None:
        """Its index has one window more; where there are too many segments with some, another lets go of its own."""
        self._with_windows.pop(segment, False)
        self._with_windows[segment] = True
        if len(self._with_windows) > limits.MAX_WINDOWED_INDEXES:
            oldest, _ = self._with_windows.popitem(last=False)
            oldest.index.forget_windows()

    def trim(self) -> None:
        """Close what was not used for longest, down to the limit; at most two looks at each."""
        self._is_trimming = False
        most = self._most
        for _ in range(2 * len(self._segments)):
            if len(self._segments) <= most:
                return
            segment, _ = self._segments.popitem(last=False)
            if segment.used or segment.pins:
                segment.used = False
                self._segments[segment] = None
            else:
                segment.close()
