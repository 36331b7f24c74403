"""How long the answer to a failed log-in is held back, by the address it came from.

Owns a count for each address that failed lately.

Rules
  1. The first `FREE_FAILURES` of an address wait `base_ms` (`connection.failed.authentication.delay.ms`), as with Kafka; after that each
     one waits twice as long as the one before, up to `MAX_DELAY_MS`.
  2. An address that had no failure for `FORGET_MS` begins anew. A log-in that went well changes nothing: who guesses may have a password
     of their own.
  3. With a `base_ms` of 0 nothing waits.
  4. At most `max_hosts` are kept; the one that failed longest ago goes first.
"""

from __future__ import annotations

from collections import OrderedDict

FREE_FAILURES = 10
MAX_DELAY_MS = 10_000
MOST_DOUBLINGS = 14  # from 1 ms to over MAX_DELAY_MS
FORGET_MS = 60_000


class Penalties:
    """See the module."""

    def __init__(self, base_ms: int, *, max_hosts: int) -> None:
        self._base_ms = base_ms
        self._max_hosts = max_hosts
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()  # host -> count, time of the last

    def __len__(self) -> int:
        return len(self._failures)

    def delay_ms(self, host: str, now_ms: float) -> int:
        """Count a failure, and say how long its answer waits."""
        count, last_ms = self._failures.pop(host, (0, now_ms))
        count = 1 if now_ms - last_ms > FORGET_MS else count + 1
        self._failures[host] = count, now_ms
        if len(self._failures) > self._max_hosts:
            self._failures.popitem(last=False)
        grown = self._base_ms << min(max(0, count - FREE_FAILURES), MOST_DOUBLINGS)
        return max(self._base_ms, min(grown, MAX_DELAY_MS))
