"""`barnabas mirror migrate`: leave a cluster for good. It waits until the copies have everything, then until nobody writes to the source,
and promotes.

The source may be Apache Kafka, which cannot be told to refuse writers. So the operator stops them, and the command sees that the ends of
the source stand still before it promotes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from barnabas.cli.broker_connections import Brokers
from barnabas.cli.errors import Failure
from barnabas.cli.mirror_requests import GROUPS_LATE, LinkView, promote_copies, view
from barnabas.cli.output import counted
from barnabas.mirror.status import PartitionStatus

LOOK_S = 0.2
TELL_S = 2.0  # between two lines of progress
Ends = Mapping[tuple[str, int], int]


class Migrated(Struct):
    """The result: the promoted topics, and the seconds from the last record of the source to the open topics here."""

    topics: list[str]
    seconds: float


class Migration:
    """One migration.

    Args:
        wait_s: the longest wait for each step.
        tell: takes a line about progress.

    Raises, from all methods:
        Failure: a topic cannot be copied, the source is written to, or a step takes too long.
    """

    def __init__(self, brokers: Brokers, link: str, wait_s: float, tell: Callable[[str], None]) -> None:
        self._brokers = brokers
        self._link = link
        self._wait_s = wait_s
        self._tell = tell

    def catch_up(self, max_lag: int) -> LinkView:
        """Wait until all copies together lack at most `max_lag` records."""
        deadline = time.monotonic() + self._wait_s
        told_s, told_lag = time.monotonic(), -1
        while True:
            found = view(self._brokers, self._link)
            self._check(found)
            lag = _lag(found.partitions)
            if found.partitions and lag is not None and lag <= max_lag:
                self._tell(f"{_title(found)}: all but {lag} records of the source are copied")
                return found
            now_s = time.monotonic()
            if now_s >= deadline:
                why = "; ".join(found.errors) or "the copies are not complete"
                raise Failure(f"not caught up in time: {why}. The link goes on copying: repeat the command")
            if now_s - told_s >= TELL_S:
                self._tell(_progress(found, lag, told_lag, now_s - told_s))
                told_s, told_lag = now_s, -1 if lag is None else lag
            time.sleep(LOOK_S)

    def wait_quiet(self, quiet_s: float) -> float:
        """Wait until no record came to the source for `quiet_s`, and the copies have all; returns since when (monotonic, s)."""
        deadline = time.monotonic() + self._wait_s
        since_s, ends = time.monotonic(), self._ends()
        while True:
            time.sleep(LOOK_S)
            found = view(self._brokers, self._link)
            self._check(found)
            now_s, later = time.monotonic(), _ends_of(found.partitions)
            moving = sorted({topic for topic, index in later if later[topic, index] != ends.get((topic, index))})
            if moving:
                since_s, ends = now_s, later
            elif now_s - since_s >= quiet_s and _lag(found.partitions) == 0:
                return since_s
            if now_s >= deadline:
                which = ", ".join(moving) or "a copy"
                raise Failure(f"{which} of the source still gets records: stop its producers, or give --even-if-written")

    def promote(self, topics: Sequence[str], since_s: float) -> Migrated:
        """Open the topics for writers here; since `since_s` nobody has written to the source."""
        promoted = promote_copies(self._brokers, self._link, topics, now=False, wait_s=self._wait_s)
        if not promoted.has_groups:
            self._tell(GROUPS_LATE)
        return Migrated(list(topics), time.monotonic() - since_s)

    def _ends(self) -> Ends:
        return _ends_of(view(self._brokers, self._link).partitions)

    def _check(self, found: LinkView) -> None:
        """Fail for topics that will never be copied: they would be left behind."""
        if found.refused:
            reasons = "; ".join(f"{topic}: {reason}" for topic, reason in sorted(found.refused.items()))
            raise Failure(f"not all topics can be copied: {reasons}. Mend it, or exclude them by topics.exclude of the link")
        stopped = [each for each in found.partitions if each.state == "stopped"]
        if stopped:
            raise Failure(f"{stopped[0].topic}-{stopped[0].partition} has stopped: {stopped[0].reason}")


def _lag(partitions: Sequence[PartitionStatus]) -> int | None:
    """The records that all copies together lack; None while some of it is unknown."""
    return None if any(each.lag < 0 for each in partitions) else sum(each.lag for each in partitions)


def _ends_of(partitions: Sequence[PartitionStatus]) -> dict[tuple[str, int], int]:
    return {(each.topic, each.partition): each.source_end_offset for each in partitions}


def _title(found: LinkView) -> str:
    return f"{counted(len(found.topics), 'topic')} with {counted(len(found.partitions), 'partition')}"


def _progress(found: LinkView, lag: int | None, before: int, seconds: float) -> str:
    if lag is None:
        return f"{_title(found)}; the source has not told all its ends yet"
    line = f"{_title(found)}; {lag} records behind"
    rate = (before - lag) / seconds
    return f"{line}, about {lag / rate:.0f} s left" if before > lag > 0 and rate > 0 else line
