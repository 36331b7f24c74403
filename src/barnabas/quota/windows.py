"""A rate measured over the last windows of time, like Apache Kafka's `Rate`; operators see these numbers.

It does not throttle: `bucket.py` explains why. No clock: `now_ms` is monotonic.

Rules
  1. Time is cut into windows of `window_ms`, of which `windows` count. A window begins with the first event after the end of
     the last window.
  2. A window is forgotten when its last event is `windows * window_ms` old. A window that only overlaps this span counts
     completely.
  3. The rate is the sum of the counting windows, divided by the time since the oldest one began, but at least by `windows - 1`
     whole windows.
"""

from __future__ import annotations

from collections import deque


class _Window:
    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, now_ms: float) -> None:
        self.start_ms = self.last_ms = now_ms
        self.value = 0.0


class WindowedRate:
    """Args:
    windows: the number of windows that count, `quota.window.num`.
    window_ms: the length of a window in milliseconds, from `quota.window.size.seconds`.
    """

    __slots__ = ("_kept", "_sum", "_window_ms", "_windows")

    def __init__(self, windows: int, window_ms: float) -> None:
        self._windows = windows
        self._window_ms = window_ms
        self._kept: deque[_Window] = deque()  # the oldest window first
        self._sum = 0.0

    def record(self, value: float, now_ms: float) -> None:
        """Record `value`; a negative value takes back an earlier record."""
        kept = self._kept
        if not kept or now_ms - kept[-1].start_ms >= self._window_ms:
            self._forget(now_ms)
            kept.append(_Window(now_ms))
        last = kept[-1]
        last.value += value
        last.last_ms = now_ms
        self._sum += value

    def per_second(self, now_ms: float) -> float:
        self._forget(now_ms)
        elapsed = now_ms - self._kept[0].start_ms if self._kept else 0.0
        missing = self._windows - 1 - int(elapsed // self._window_ms)
        return self._sum * 1000 / max(elapsed + max(missing, 0) * self._window_ms, 1.0)

    def _forget(self, now_ms: float) -> None:
        kept = self._kept
        while kept and now_ms - kept[0].last_ms >= self._windows * self._window_ms:
            self._sum -= kept.popleft().value
        if not kept:
            self._sum = 0.0  # removes the rounding error
