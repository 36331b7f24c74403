"""How long failed log-ins delay their answers, and the log-ins that come from the same address after them.

Owns a count of failures for each address, and the users who logged in from an address.

Rules
  1. The answer to each of the first `FREE_FAILURES` waits `base_ms` (`connection.failed.authentication.delay.ms`), as with Kafka; after
     that each one waits twice as long as the one before, up to `MAX_DELAY_MS`.
  2. From the eleventh failure on the delay outlives the connection: until the answer to the last failure is due, no password or token
     from the address is looked at. At most `max_waiting` log-ins of an address wait for that; more are refused unseen.
  3. A user who logged in from an address before is known there and has a count of their own, so a guesser does not delay the known users
     of an address. Failures of a known user delay that user at that address alone.
  4. A count without a failure for `FORGET_MS` begins anew. A log-in that went well changes no count: a guesser may have a password of
     their own.
  5. With a `base_ms` of 0 nothing waits.
  6. At most `max_hosts` counts are kept, and as many users; the one that failed, or logged in, longest ago goes first.
"""

from __future__ import annotations

from collections import OrderedDict

from msgspec import Struct

FREE_FAILURES = 10
MAX_DELAY_MS = 10_000
MOST_DOUBLINGS = 14  # from 1 ms to over MAX_DELAY_MS
FORGET_MS = 60_000
Source = tuple[str, str | None]  # an address, and a user who is known there


class _Count(Struct):
    failures: int = 0
    last_ms: float = 0.0
    until_ms: float = 0.0  # nothing is looked at before
    waiting: int = 0


class Penalties:
    """See the module.

    Args:
        max_waiting: log-ins of one address.
    """

    def __init__(self, base_ms: int, *, max_hosts: int, max_waiting: int) -> None:
        self._base_ms = base_ms
        self._max_hosts = max_hosts
        self._max_waiting = max_waiting
        self._counts: OrderedDict[Source, _Count] = OrderedDict()  # the one that failed last is the last
        self._known: OrderedDict[Source, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._counts)

    def source(self, host: str, user: str | None) -> Source:
        """What is counted together with a log-in from `host` that claims to be `user`, as far as it says so."""
        return (host, user) if (host, user) in self._known else (host, None)

    def delay_ms(self, source: Source, now_ms: float) -> int:
        """Count a failure, and say how long its answer waits."""
        count = self._counts.pop(source, None)
        if count is None or now_ms - count.last_ms > FORGET_MS:
            count = _Count(waiting=0 if count is None else count.waiting)
        self._counts[source] = count
        count.failures += 1
        count.last_ms = now_ms
        if len(self._counts) > self._max_hosts:
            self._counts.popitem(last=False)
        grown = self._base_ms << min(max(0, count.failures - FREE_FAILURES), MOST_DOUBLINGS)
        delay_ms = max(self._base_ms, min(grown, MAX_DELAY_MS))
        if count.failures > FREE_FAILURES:
            count.until_ms = max(count.until_ms, now_ms + min(delay_ms, MAX_DELAY_MS))
        return delay_ms

    def wait_ms(self, source: Source, now_ms: float) -> float:
        """How long until a log-in of `source` may be looked at."""
        count = self._counts.get(source)
        return 0.0 if count is None else max(count.until_ms - now_ms, 0.0)

    def begin_wait(self, source: Source) -> bool:
        """Count one in that has to wait; False where it is to be refused."""
        count = self._counts.get(source)
        if count is None or count.waiting >= self._max_waiting:
            return False
        count.waiting += 1
        return True

    def end_wait(self, source: Source) -> None:
        count = self._counts.get(source)
        if count is not None and count.waiting:
            count.waiting -= 1

    def logged_in(self, host: str, user: str) -> None:
        """Know the user at that address from now on."""
        self._known[host, user] = None
        self._known.move_to_end((host, user))
        if len(self._known) > self._max_hosts:
            self._known.popitem(last=False)
