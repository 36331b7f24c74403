"""Detects brokers that accept connections but do not answer: decides when a silent broker counts as dead.

A paused or unreachable process refuses no connection, so no error reports it; but it does not answer. Every broker probes
every other broker regularly. This module decides which broker to probe, and which one has been silent for too long. Such a
broker counts as dead (`controller/dead_brokers.py`). The verdict is only a hint, and safety does not depend on it. It affects
how soon a dead broker loses its leaderships, and how often a live broker loses them by mistake.

Rules
  1. The time between two checks counts as at most one interval: a broker that was paused itself cannot judge others.
  2. A broker judges others only while it hears a majority of the brokers, itself included: an isolated broker hears none. So
     of two brokers, neither finds the other silent.
  3. The patience for a broker is a few intervals, plus a share for each of its replicas (all may change roles at once), plus a
     multiple of this broker's own recent delays (both may share a machine). A multiple of the broker's recent answer times
     replaces this sum if it is larger, so that a busy cluster does not declare its own brokers dead. The patience is longer
     after a registration and after brokers came or went, because both cause work.
  4. A broker that was found silent but answers within a session's time was slow, not dead: it gets much more patience for a
     long time.
  5. If the patience is as long as a session, no broker is found silent: the end of the session has the same effect.

How it works
  Times are in milliseconds. The slowness of a broker is its longest recent time; the value halves with every half-life until a
  longer time is measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct

Registered = tuple[int, int]  # broker id, epoch of its registration
PATIENCE_INTERVALS = 3  # shortest wait for an answer
PATIENCE_PER_REPLICA_MS = 0.05  # approximate time to change the role of one replica
TIMES_AS_SLOW = 6  # factor on the recent answer time of the broker
TIMES_AS_LATE = 10  # factor on the recent delay of this broker
AT_FIRST_INTERVALS = 10  # wait for an answer after a change that causes work
HALF_LIFE_INTERVALS, FIRST_HALF_LIFE_INTERVALS = 50, 20  # half-life of the recorded slowness
DOUBT_HALF_LIFE_MS = 600_000.0  # half-life of a recorded mistake
LEAST_INTERVAL_MS = 10.0  # lower bound of the interval
MAX_ASKED_PER_S = 100  # probes per second to all other brokers together; with more brokers, each gets fewer


class DetectorReport(NamedTuple):
    """The brokers to probe now, and the brokers that were found silent."""

    ask: list[Registered]
    silent: list[Registered]


class _Slowness(Struct):
    """The longest recent time, with decay."""

    longest_ms: float
    at_ms: float
    half_life_ms: float

    def now(self, now_ms: float) -> float:
        return self.longest_ms * math.exp2((self.at_ms - now_ms) / self.half_life_ms)

    def seen(self, took_ms: float, now_ms: float) -> None:
        self.longest_ms, self.at_ms = max(took_ms, self.now(now_ms)), now_ms


class _Other(Struct):
    slowness: _Slowness  # of the broker's answers
    at_first: _Slowness  # wait for its answers after a change that causes work
    asked_ms: float | None = None  # time of the unanswered probe
    asked_clock_ms: float = 0.0
    is_silent: bool = False


class FailureDetector:
    """See the module.

    Args:
        interval_ms: time between two probes of one broker, in a small cluster.
        session_timeout_ms: time after which a silent broker's session ends anyway.
    """

    def __init__(self, interval_ms: float, session_timeout_ms: float) -> None:
        interval_ms = max(interval_ms, LEAST_INTERVAL_MS)
        self._least_interval_ms = interval_ms
        self._session_timeout_ms = session_timeout_ms
        self._now_ms = 0.0  # time of this broker, which does not count pauses of the process
        self._looked_ms: float | None = None  # clock time of the last check
        self._lateness = _Slowness(0.0, 0.0, HALF_LIFE_INTERVALS * interval_ms)  # delays of this broker's checks, by the clock
        self._others: dict[Registered, _Other] = {}  # brokers that can be probed
        self._found_ms: dict[int, float] = {}  # brokers that were found silent and have not answered since
        self._doubts: dict[int, _Slowness] = {}  # brokers that were found silent by mistake
        self._brokers = 1
        self._replicas = 0

    @property
    def interval_ms(self) -> float:
        """Time until the next check."""
        return max(self._least_interval_ms, (self._brokers - 1) * 1000 / MAX_ASKED_PER_S)

    def changed(self, brokers: int, replicas: int) -> None:
        """Set the number of active brokers, including this one, and the number of replicas of each."""
        self._brokers, self._replicas = brokers, replicas
        for other in self._others.values():
            other.at_first.seen(self._at_first_ms, self._now_ms)

    def reached(self, registered: Registered) -> None:
        """A connection to the broker exists; from now on it can be probed."""
        self._heard(registered[0])
        slowness = _Slowness(0.0, self._now_ms, HALF_LIFE_INTERVALS * self.interval_ms)
        at_first = _Slowness(self._at_first_ms, self._now_ms, FIRST_HALF_LIFE_INTERVALS * self.interval_ms)
        self._others[registered] = _Other(slowness, at_first)

    def lost(self, registered: Registered) -> None:
        """The connection is lost."""
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
        """The brokers to probe and the brokers found silent, at this time of a monotonic clock."""
        interval_ms = self.interval_ms
        passed_ms = 0.0 if self._looked_ms is None else min(clock_ms - self._looked_ms, interval_ms)
        if self._looked_ms is not None:
            late_ms = clock_ms - self._looked_ms - interval_ms
            self._lateness.seen(min(max(0.0, late_ms), interval_ms), self._now_ms)  # a longer delay is a pause of this process
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
        """The broker answered; if it was found silent recently, that was a mistake."""
        found_ms = self._found_ms.pop(broker_id, None)
        if found_ms is None or self._now_ms - found_ms >= self._session_timeout_ms:
            return
        doubt = self._doubts.setdefault(broker_id, _Slowness(0.0, self._now_ms, DOUBT_HALF_LIFE_MS))
        doubt.seen(2 * max(self._now_ms - found_ms, doubt.now(self._now_ms), self._at_first_ms), self._now_ms)
