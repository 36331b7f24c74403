"""Tokens that come at a rate and are saved up to a bound: what every quota of clients is paid with.

A client may take more tokens than there are; then it, and whoever shares the quota, waits until that is paid back. So over any stretch of
time no more passes than the rate allows for it, what may be saved up, and what each client sent before it was first told to wait.

Kafka pays with tokens where it counts changes of metadata (KIP-599), and measures a rate over windows elsewhere. That forgets what was too
much when its window is over: by Kafka's own arithmetic in virtual time, 100 clients that share a quota get up to 1.4 times of it over ten
windows, and a single one between a tenth and 1.1 times, in waves. What is owed here is not forgotten (decision 12).

No clock: `now_ms` is an argument.
"""

from __future__ import annotations

MAX_THROTTLE_MS = 2**31 - 1  # what an answer can say


class TokenBucket:
    """Args:
    saved_s: seconds of the rate that may be saved up.
    first_s: seconds of the rate that are there at first.
    """

    __slots__ = ("_at_ms", "_first_s", "_saved_s", "_tokens")

    def __init__(self, saved_s: float, first_s: float) -> None:
        self._saved_s = saved_s
        self._first_s = first_s
        self._tokens = 0.0
        self._at_ms: float | None = None  # when that was true; None before the first look

    def most(self, rate: float) -> float:
        """The tokens that may be saved up."""
        return rate * self._saved_s

    def tokens(self, rate: float, now_ms: float) -> float:
        """Those that are there; fewer than none while some are owed."""
        if self._at_ms is None:
            self._tokens, self._at_ms = rate * self._first_s, now_ms
        saved = self._tokens + rate * (now_ms - self._at_ms) / 1000
        self._tokens, self._at_ms = min(saved, self.most(rate)), now_ms
        return self._tokens

    def take(self, count: float, rate: float, now_ms: float) -> None:
        """Take `count`, be they there or not; a negative count gives back."""
        self.tokens(rate, now_ms)
        self._tokens -= count

    def throttle_ms(self, rate: float, now_ms: float) -> int:
        """How long to wait until nothing is owed."""
        tokens = self.tokens(rate, now_ms)
        return round(min(-tokens / rate * 1000, MAX_THROTTLE_MS)) if tokens < 0 else 0
