"""Brokers that take connections and answer nothing: who is silent for too long to be waited for.

A process that stands still, or that cannot be reached, refuses nothing, so nobody is told of it. But it does not answer either. Every
broker asks every other one for a sign of life again and again; here is decided whom to ask, and who has been silent for too long. Whoever
is found silent is found dead (`controller/dead_brokers.py`). That is a hint, and safety does not rest on it: what is decided here is how
soon a broker loses its leaderships, and how often a living one does for nothing.

Rules
  1. Time is this broker's own: what passes between two looks counts as one interval at most. Who stood still himself knows nothing.
  2. Nobody is found silent but by who hears a majority, himself included: who is cut off hears nobody. So of two brokers never.
  3. Patience is what a broker needs: a few intervals, a share for each of its replicas, since all may change roles at once, and a
     multiple of how late this broker itself comes to look, since the others may share its machine; or a multiple of what its answers
     took of late, so that a busy cluster does not fall upon itself; and some more at the beginning of each registration and when
     brokers came or went, for then there is work to do.
  4. Who was found silent and is heard within a session's time was not dead, but slow: it is given much more for a long time.
  5. With as much patience as a session lasts nobody is found silent: the end of the session says the same.

How it works
  Times are in milliseconds. Slowness is remembered as the longest time of late: it halves again and again, until a longer one comes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct

Registered = tuple[int, int]  # broker, epoch of its registration
PATIENCE_INTERVALS = 3  # without an answer
PATIENCE_PER_REPLICA_MS = 0.05  # about what it takes to change the role of one
TIMES_AS_SLOW = 6  # as it was of late
TIMES_AS_LATE = 10  # as this broker was of late
AT_FIRST_INTERVALS = 10  # without an answer, when there is work to do
HALF_LIFE_INTERVALS, FIRST_HALF_LIFE_INTERVALS = 50, 20  # of what is remembered of how slow a broker was, and of that
DOUBT_HALF_LIFE_MS = 600_000.0  # and of having found it silent for nothing
LEAST_INTERVAL_MS = 10.0  # whatever is asked for
MAX_ASKED_PER_S = 100  # signs of life, of all others together: more brokers are asked less often


class DetectorReport(NamedTuple):
    """What is to be done after some time has passed."""

    ask: list[Registered]
    silent: list[Registered]


class _Slowness(Struct):
    """The longest time of late."""

    longest_ms: float
    at_ms: float
    half_life_ms: float

    def now(self, now_ms: float) -> float:
        return self.longest_ms * math.exp2((self.at_ms - now_ms) / self.half_life_ms)

    def seen(self, took_ms: float, now_ms: float) -> None:
        self.longest_ms, self.at_ms = max(took_ms, self.now(now_ms)), now_ms


class _Other(Struct):
    slowness: _Slowness  # of its answers
    at_first: _Slowness  # the patience that it needs since there was work to do
    asked_ms: float | None = None  # since when an answer is waited for
    asked_clock_ms: float = 0.0
    is_silent: bool = False


class FailureDetector:
    """See the module.

    Args:
        interval_ms: between two signs of life that one broker is asked for, while there are few.
        session_timeout_ms: after which a broker is given up without any of this.
    """

    def __init__(self, interval_ms: float, session_timeout_ms: float) -> None:
        interval_ms = max(interval_ms, LEAST_INTERVAL_MS)
        self._least_interval_ms = interval_ms
        self._session_timeout_ms = session_timeout_ms
        self._now_ms = 0.0  # of this broker's own time
        self._looked_ms: float | None = None  # by the clock
        self._lateness = _Slowness(0.0, 0.0, HALF_LIFE_INTERVALS * interval_ms)  # of this broker, by the clock
        self._others: dict[Registered, _Other] = {}  # who can be asked
        self._found_ms: dict[int, float] = {}  # brokers that were found silent and not heard since
        self._doubts: dict[int, _Slowness] = {}  # about brokers that were found silent for nothing
        self._brokers = 1
        self._replicas = 0

    @property
    def interval_ms(self) -> float:
        """Until the next look."""
        return max(self._least_interval_ms, (self._brokers - 1) * 1000 / MAX_ASKED_PER_S)

    def changed(self, brokers: int, replicas: int) -> None:
        """Brokers came or went: so many are active, this one included, and each has so many replicas."""
        self._brokers, self._replicas = brokers, replicas
        for other in self._others.values():
            other.at_first.seen(self._at_first_ms, self._now_ms)

    def reached(self, registered: Registered) -> None:
        """There is a connection; from now on it can be asked."""
        self._heard(registered[0])
        slowness = _Slowness(0.0, self._now_ms, HALF_LIFE_INTERVALS * self.interval_ms)
        at_first = _Slowness(self._at_first_ms, self._now_ms, FIRST_HALF_LIFE_INTERVALS * self.interval_ms)
        self._others[registered] = _Other(slowness, at_first)

    def lost(self, registered: Registered) -> None:
        """There is none any more."""
        self._others.pop(registered, None)

    def answered(self, registered: Registered, clock_ms: float) -> None:
        other = self._others.get(registered)
        if other is None or other.asked_ms is None:
            return
        if not other.is_silent:
            other.slowness.seen(clock_ms - other.asked_clock_ms, self._now_ms)
        other.asked_ms, other.is_silent = None, False
        self._heard(registered[0])

    def look(self, clock_ms: float) -> DetectorReport:
        """What follows now, by a clock that goes on evenly."""
        interval_ms = self.interval_ms
        passed_ms = 0.0 if self._looked_ms is None else min(clock_ms - self._looked_ms, interval_ms)
        if self._looked_ms is not None:
            late_ms = clock_ms - self._looked_ms - interval_ms
            self._lateness.seen(min(max(0.0, late_ms), interval_ms), self._now_ms)  # more says that this process stood still
        self._looked_ms = clock_ms
        self._now_ms += passed_ms
        silent = list(self._found_silent())
        ask = [registered for registered, other in self._others.items() if other.asked_ms is None]
        for registered in ask:
            self._others[registered].asked_ms = self._now_ms
            self._others[registered].asked_clock_ms = clock_ms
        return DetectorReport(ask, silent)

    @property
    def _at_first_ms(self) -> float:
        return AT_FIRST_INTERVALS * self.interval_ms

    def _found_silent(self) -> Iterable[Registered]:
        if not self._hears_majority():
            return
        for registered, other in self._others.items():
            if other.asked_ms is None or other.is_silent:
                continue
            patience_ms = self._patience_ms(registered[0], other)
            if patience_ms < self._session_timeout_ms and self._now_ms - other.asked_ms >= patience_ms:
                other.is_silent = True
                self._found_ms[registered[0]] = self._now_ms
                yield registered

    def _hears_majority(self) -> bool:
        late_ms = self.interval_ms
        heard = sum(other.asked_ms is None or self._now_ms - other.asked_ms <= late_ms for other in self._others.values())
        return 2 * (heard + 1) > self._brokers

    def _patience_ms(self, broker_id: int, other: _Other) -> float:
        least_ms = PATIENCE_INTERVALS * self.interval_ms + PATIENCE_PER_REPLICA_MS * self._replicas
        least_ms += TIMES_AS_LATE * self._lateness.now(self._now_ms)
        doubt = self._doubts.get(broker_id)
        doubt_ms = 0.0 if doubt is None else doubt.now(self._now_ms)
        return max(least_ms, TIMES_AS_SLOW * other.slowness.now(self._now_ms), other.at_first.now(self._now_ms), doubt_ms)

    def _heard(self, broker_id: int) -> None:
        """Where it was found silent not long ago, that was for nothing."""
        found_ms = self._found_ms.pop(broker_id, None)
        if found_ms is None or self._now_ms - found_ms >= self._session_timeout_ms:
            return
        doubt = self._doubts.setdefault(broker_id, _Slowness(0.0, self._now_ms, DOUBT_HALF_LIFE_MS))
        doubt.seen(2 * max(self._now_ms - found_ms, doubt.now(self._now_ms), self._at_first_ms), self._now_ms)
