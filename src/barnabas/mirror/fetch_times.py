"""The times of a fetcher in the last seconds, by what it waited for or did. Pure; the caller passes the time.

Each moment of a fetcher belongs to one of `Part`. The first byte of an answer needs a round trip, whose time is that of the line. The
shortest wait for a first byte of the last seconds counts as the round trip; a longer wait is the source's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from msgspec import Struct

from barnabas.mirror.status import LinkTimes

WINDOW_S = 30.0
BUCKET_S = 1.0


class Part(Enum):
    """The thing that a fetcher waited for, or did."""

    SOURCE = "source"  # for the first byte of an answer, longer than a round trip
    LINE = "line"  # a round trip, and bytes on their way
    TARGET = "target"  # appended, or could not append
    LIMIT = "limit"  # a quota of the source, or a limit of the link
    ERROR = "error"  # after a failure
    IDLE = "idle"  # for records: the copies had everything


class Bucket(Struct):
    """The seconds of a fetcher within about `BUCKET_S`."""

    began_s: float
    seconds: dict[Part, float]
    waits: int = 0
    waited_s: float = 0.0
    shortest_wait_s: float = float("inf")
    answers: int = 0
    bytes: int = 0


class Shares(NamedTuple):
    """The sums of the last seconds."""

    seconds: dict[Part, float]
    answers: int
    bytes: int
    round_trip_s: float  # infinite without an answer
    window_s: float


class Counters:
    """Sums since a start."""

    def __init__(self) -> None:
        self.answers = self.bytes = self.errors = 0
        self.seconds = dict.fromkeys(Part, 0.0)

    def add_all(self, other: Counters) -> None:
        self.answers += other.answers
        self.bytes += other.bytes
        self.errors += other.errors
        for part, seconds in other.seconds.items():
            self.seconds[part] += seconds


class FetchTimes:
    """The times of one fetcher, and its counters since its start."""

    def __init__(self, now_s: float) -> None:
        self._began_s = now_s
        self._buckets: deque[Bucket] = deque()
        self.counters = Counters()

    def _bucket(self, now_s: float) -> Bucket:
        while self._buckets and self._buckets[0].began_s < now_s - WINDOW_S:
            self._buckets.popleft()
        if not self._buckets or self._buckets[-1].began_s < now_s - BUCKET_S:
            self._buckets.append(Bucket(now_s, dict.fromkeys(Part, 0.0)))
        return self._buckets[-1]

    def add(self, part: Part, seconds: float, now_s: float) -> None:
        """These seconds went to a part."""
        self._bucket(now_s).seconds[part] += seconds
        self.counters.seconds[part] += seconds

    def waited(self, seconds: float, now_s: float) -> None:
        """The first byte of an answer took so long, although the source had records."""
        bucket = self._bucket(now_s)
        bucket.waits += 1
        bucket.waited_s += seconds
        bucket.shortest_wait_s = min(bucket.shortest_wait_s, seconds)
        round_trip_s = min(each.shortest_wait_s for each in self._buckets)
        self.counters.seconds[Part.LINE] += round_trip_s
        self.counters.seconds[Part.SOURCE] += seconds - round_trip_s

    def answered(self, size: int, now_s: float) -> None:
        """An answer with so many bytes of records was taken."""
        bucket = self._bucket(now_s)
        bucket.answers += 1
        bucket.bytes += size
        self.counters.answers += 1
        self.counters.bytes += size

    def failed(self) -> None:
        """A request failed, or the source refused a partition."""
        self.counters.errors += 1

    def shares(self, now_s: float) -> Shares:
        """The sums of the last `WINDOW_S`."""
        self._bucket(now_s)
        seconds = {part: sum(each.seconds[part] for each in self._buckets) for part in Part}
        round_trip_s = min(each.shortest_wait_s for each in self._buckets)
        waits = sum(each.waits for each in self._buckets)
        if waits:
            of_line = round_trip_s * waits
            seconds[Part.LINE] += of_line
            seconds[Part.SOURCE] += sum(each.waited_s for each in self._buckets) - of_line
        return Shares(
            seconds,
            sum(each.answers for each in self._buckets),
            sum(each.bytes for each in self._buckets),
            round_trip_s,
            min(now_s - self._began_s, WINDOW_S),
        )


def summed(all_times: Iterable[FetchTimes], now_s: float) -> LinkTimes:
    """The times of all fetchers of a link on one broker."""
    found = [times.shares(now_s) for times in all_times]
    round_trip_s = min((each.round_trip_s for each in found), default=float("inf"))
    return LinkTimes(
        seconds={part.value: sum(each.seconds[part] for each in found) for part in Part} if found else {},
        bytes=sum(each.bytes for each in found),
        fetchers=len(found),
        round_trip_ms=round_trip_s * 1000 if round_trip_s < float("inf") else -1.0,
        window_s=max((each.window_s for each in found), default=0.0),
    )
