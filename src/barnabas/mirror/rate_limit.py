"""The limit of a link on one broker: how many bytes its fetchers may ask for, and how long they wait.

All fetchers of the link share it. Others, also other links, do not wait.

Rules
  1. The bytes of an answer are known when it is there. So a fetcher takes what it got, and all of them wait until the debt is paid.
  2. One answer has at most the bytes of `PIECE_S`, unless one batch is larger. So a low limit comes in small pieces, not in waves.
"""

from __future__ import annotations

from barnabas.quota.bucket import TokenBucket

SAVED_S = 0.1  # of the rate, saved up by an idle link; over ten seconds this is 1 %
PIECE_S = 0.1  # of the rate in one answer
LEAST_BYTES = 16 * 1024  # of an answer: a request has its price too


class RateLimit:
    """Args:
    bytes_per_second: 2**63 - 1 for no limit.
    """

    def __init__(self, bytes_per_second: int) -> None:
        self._rate = bytes_per_second
        self._bucket = TokenBucket(SAVED_S, 0.0)

    def most(self, fetch_bytes: int) -> int:
        """The bytes to ask for, at most `fetch_bytes`."""
        return min(fetch_bytes, max(int(self._rate * PIECE_S), LEAST_BYTES))

    def took(self, count: int, now_s: float) -> None:
        """An answer had `count` bytes."""
        self._bucket.take(count, self._rate, now_s * 1000)

    def wait_s(self, now_s: float) -> float:
        """The time until the next request may be sent."""
        return self._bucket.throttle_ms(self._rate, now_s * 1000) / 1000
