"""Chooses the faster way for pieces of files to a socket: read into memory and write, or `sendfile`.

The way that takes the loop less time depends on the machine. If a kernel keeps files in memory in pieces of many pages, `sendfile` takes a
quarter of the time of copying. If it works page by page, `sendfile` takes longer than copying through the processor's cache. So both ways
are measured during use, and the slower one is tried again now and then.

The time that matters is the loop's. But data that was read is in the processor's cache when the other side copies it, so `sendfile` must
be better by a margin.
"""

from __future__ import annotations

import threading

MEASURED_BYTES = 128 * 1024  # measure only pieces this large: the fixed cost of a system call does not matter for them
TRIED_EVERY = 64  # after so many measured pieces, the slower way is tried once
MARGIN = 0.8  # `sendfile` is better if it takes less than this share of the time of reading
# a longer time changes the estimate by 1/16 of the difference, so that one delay of the process does not count
FORGETTING = 16
LONGEST = 2.0  # a longer time counts as at most this many times the estimate


class SendStrategy(threading.local):
    """The measured times of the two ways on one loop."""

    def __init__(self) -> None:
        self.by_sendfile = False
        self._ns_per_byte: list[float | None] = [None, None]  # by reading, by `sendfile`
        self._measured = 0

    def took(self, size: int, ns: int, *, by_sendfile: bool) -> None:
        """Note that `size` bytes went to a socket in `ns` nanoseconds: a whole piece, or the sent part of a piece."""
        known, now = self._ns_per_byte[by_sendfile], ns / size
        if known is not None and now > known:
            now = known + (min(now, LONGEST * known) - known) / FORGETTING
        self._ns_per_byte[by_sendfile] = now
        self._measured += 1
        reading, sending = self._ns_per_byte
        if reading is None or sending is None:
            self.by_sendfile = sending is None
            return
        is_better = sending < MARGIN * reading
        self.by_sendfile = is_better if self._measured % TRIED_EVERY else not is_better
