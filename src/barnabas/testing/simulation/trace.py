"""The events of a run: as a checksum that equal runs share, and as lines to read."""

from __future__ import annotations

from collections import deque
from zlib import crc32

KEPT_LINES = 400


class Trace:
    """A running checksum of all events.

    Args:
        echo: print each line at once.
    """

    def __init__(self, *, echo: bool = False) -> None:
        self.checksum = 0
        self.count = 0
        self.last: deque[str] = deque(maxlen=KEPT_LINES)
        self._echo = echo

    def note(self, now_s: float, event: str) -> None:
        line = f"{now_s:.6f} {event}"
        self.checksum = crc32(line.encode(), self.checksum)
        self.count += 1
        self.last.append(line)
        if self._echo:
            print(line)
