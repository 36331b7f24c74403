"""Delays of the answers to failed log-ins, and of later log-ins from the same address.

Owns a count of failures for each address, and the users who have logged in from an address.

Rules
  1. The answer to each of the first `FREE_FAILURES` waits `base_ms` (`connection.failed.authentication.delay.ms`), as in Kafka.
     After that the delay doubles with each failure, up to `MAX_DELAY_MS`.
  2. From the eleventh failure on, the delay also applies to other connections from the address: the broker checks no password
     or token before the answer to the last failure is due. At most `max_waiting` log-ins of an address wait for this time;
     further ones are refused without a check.
  3. A user that has logged in from an address is known there and has a separate count. So a guesser does not delay the known
     users of an address. Failures of a known user delay only this user at this address.
  4. A count starts again after `FORGET_MS` without a failure. A successful log-in does not change a count, because a guesser
     may also have an account.
  5. With a `base_ms` of 0 there are no delays.
  6. At most `max_hosts` counts and `max_hosts` users are kept; the oldest is dropped first.
"""

from __future__ import annotations

from collections import OrderedDict

from msgspec import Struct

FREE_FAILURES = 10
MAX_DELAY_MS = 10_000
MOST_DOUBLINGS = 14  # enough to get from 1 ms to above MAX_DELAY_MS
FORGET_MS = 60_000
Source = tuple[str, str | None]  # an address, and a user who has logged in from it, or None


class _Count(Struct):
    failures: int = 0
    last_ms: float = 0.0
    until_ms: float = 0.0  # log-ins are checked from this time on
    waiting: int = 0


class Penalties:
    """The counts of failures; see the module.

    Args:
        max_waiting: the maximum number of waiting log-ins of one address.
    """

    def __init__(self, base_ms: int, *, max_hosts: int, max_waiting: int) -> None:
        self._base_ms = base_ms
        self._max_hosts = max_hosts
        self._max_waiting = max_waiting
        self._counts: OrderedDict[Source, _Count] = OrderedDict()  # in the order of the last failure, the oldest first
        self._known: OrderedDict[Source, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._counts)

    def source(self, host: str, user: str | None) -> Source:
        """The source under which a log-in from `host` is counted; `user` is the claimed user, if known."""
        return (host, user) if (host, user) in self._known else (host, None)

    def delay_ms(self, source: Source, now_ms: float) -> int:
        """Count a failure; returns the delay of its answer in milliseconds."""
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
        """The time in milliseconds until a log-in of `source` may be checked."""
        count = self._counts.get(source)
        return 0.0 if count is None else max(count.until_ms - now_ms, 0.0)

    def begin_wait(self, source: Source) -> bool:
        """Count a waiting log-in; False if it must be refused."""
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
        """Record the user as known at the address."""
        self._known[host, user] = None
        self._known.move_to_end((host, user))
        if len(self._known) > self._max_hosts:
            self._known.popitem(last=False)
