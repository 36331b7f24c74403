"""A limited rate of bytes, as a bucket: an unused rate accumulates for some seconds, and an excess is paid back by waiting.

No clock: `now_ms` is monotonic.

Rules
  1. While there is room, one use may be larger than the room (a response cannot be cut). Then there is no room until the excess
     is paid back.
  2. Over any period the bytes are at most the rate, plus `saved_s` seconds of it, plus one response.
  3. After the bucket is empty, there is no room until a twentieth of the maximum has accumulated, so that callers do not wait
     for single bytes.
  4. An unlimited rate costs one comparison.
"""

from __future__ import annotations

UNLIMITED = 2**63 - 1
LEAST_PART = 20  # a response that has no room waits until the room is the maximum divided by this


class RateLimit:
    """Args:
    saved_s: seconds of the rate that may accumulate.
    """

    __slots__ = ("_at_ms", "_rate", "_room", "_saved_s", "passed")

    def __init__(self, saved_s: float) -> None:
        self._saved_s = saved_s
        self._rate = UNLIMITED  # bytes per second
        self._room = 0.0
        self._at_ms = 0.0  # time of the last update of `_room`
        self.passed = 0  # bytes recorded so far

    @property
    def is_unlimited(self) -> bool:
        return self._rate == UNLIMITED

    def set_rate(self, bytes_per_s: int, now_ms: float) -> None:
        """Change the rate, with an empty bucket and no debt."""
        if bytes_per_s != self._rate:
            self._rate, self._room, self._at_ms = bytes_per_s, 0.0, now_ms

    def room(self, now_ms: float) -> int:
        """The bytes that may pass now; zero or negative until an excess is paid back."""
        if self._rate == UNLIMITED:
            return UNLIMITED
        saved = self._room + self._rate * (now_ms - self._at_ms) / 1000
        self._room, self._at_ms = min(saved, self._rate * self._saved_s), now_ms
        return int(self._room) if self._room >= self._least else min(int(self._room), 0)

    def record(self, size: int, now_ms: float) -> None:
        """`size` bytes have passed."""
        self.passed += size
        if self._rate != UNLIMITED:
            self.room(now_ms)
            self._room -= size

    def wait_ms(self, now_ms: float) -> float:
        """The time until there is room; infinite if the rate is 0."""
        if self.room(now_ms) > 0:
            return 0.0
        return (self._least - self._room) * 1000 / self._rate if self._rate else float("inf")

    @property
    def _least(self) -> float:
        return max(1.0, self._rate * self._saved_s / LEAST_PART)
