"""Reads the change events of a capture: how many there are, and how long each took from its commit."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from confluent_kafka import Consumer

COMMITTED_AT = re.compile(
    rb'"ts_us":(\d+)'
)  # the first one of an event is that of its source: when the transaction was committed
AT_ONCE, WAIT_S = 5_000, 0.05
REFRESH_MS = 200  # of the topics that fit to the pattern


class Changes:
    """A consumer of committed records.

    Args:
        topics: a regular expression of their names.
    """

    def __init__(self, bootstrap: str, topics: str) -> None:
        self.taken = 0
        self._consumer = Consumer({
            "bootstrap.servers": bootstrap, "group.id": "changes", "auto.offset.reset": "earliest", "isolation.level": "read_committed",
            "topic.metadata.refresh.interval.ms": REFRESH_MS, "fetch.wait.max.ms": 10, "enable.auto.commit": False,
        })  # fmt: skip
        self._consumer.subscribe([f"^{topics}"])

    def follow(self, goes_on: Callable[[], bool]) -> list[float]:
        """The delays of the events that come while a condition holds, in milliseconds."""
        delays_ms = list[float]()
        while goes_on():
            delays_ms += self._some()
        self.taken = len(delays_ms)
        return delays_ms

    def take(self, count: int, within_s: float) -> list[float]:
        """The delays of so many events. Raises TimeoutError if they do not come."""
        deadline_s, delays_ms = time.monotonic() + within_s, list[float]()
        while len(delays_ms) < count:
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"{len(delays_ms)} of {count} events came within {within_s} s")
            delays_ms += self._some()
        self.taken = len(delays_ms)
        return delays_ms

    def _some(self) -> list[float]:
        found = self._consumer.consume(AT_ONCE, WAIT_S)
        now_us = time.time() * 1_000_000
        return [(now_us - int(match[1])) / 1000 for each in found if (match := COMMITTED_AT.search(each.value() or b""))]

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()
