"""A token bucket: tokens arrive at a rate and accumulate up to a bound. Every quota of clients uses it.

A client may take more tokens than there are; then all clients of the quota wait until the debt is paid back. So over any period
the use is at most the sum of three parts: the rate, the accumulated tokens, and the requests of each client before its first
throttling.

Kafka uses tokens for changes of metadata (KIP-599), and a rate over windows elsewhere. A window forgets an excess when it ends.
In a simulation of Kafka's own arithmetic, 100 clients that share a quota get up to 1.4 times the quota over ten windows. A
single client gets between 0.1 and 1.1 times the quota, in waves. A token bucket does not forget the debt (decision 12).

No clock: `now_ms` is an argument.
"""

from __future__ import annotations

MAX_THROTTLE_MS = 2**31 - 1  # the largest throttle time that a response can carry


class TokenBucket:
    """Args:
    saved_s: seconds of the rate that may accumulate.
    first_s: seconds of the rate at the start.
    """

    __slots__ = ("_at_ms", "_first_s", "_saved_s", "_tokens")

    def __init__(self, saved_s: float, first_s: float) -> None:
        self._saved_s = saved_s
        self._first_s = first_s
        self._tokens = 0.0
        self._at_ms: float | None = None  # time of the last update of `_tokens`; None before the first use

    def most(self, rate: float) -> float:
        """The maximum number of tokens that may accumulate."""
        return rate * self._saved_s

    def tokens(self, rate: float, now_ms: float) -> float:
        """The available tokens; negative while there is a debt."""
        if self._at_ms is None:
            self._tokens, self._at_ms = rate * self._first_s, now_ms
        saved = self._tokens + rate * (now_ms - self._at_ms) / 1000
        self._tokens, self._at_ms = min(saved, self.most(rate)), now_ms
        return self._tokens

    def take(self, count: float, rate: float, now_ms: float) -> None:
        """Take `count` tokens, even if they are not available; a negative count returns tokens."""
        self.tokens(rate, now_ms)
        self._tokens -= count

    def throttle_ms(self, rate: float, now_ms: float) -> int:
        """The time in milliseconds until the debt is paid."""
        tokens = self.tokens(rate, now_ms)
        return round(min(-tokens / rate * 1000, MAX_THROTTLE_MS)) if tokens < 0 else 0
