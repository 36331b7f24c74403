"""The clock of views: the times of the topic `_barnabas_clock`.

A view whose conditions call `now()` reads this topic as it reads its tables, and `now()` is the latest time in it. So the state of a view
depends on records alone, and a step that is repeated after a kill has the same time. The active engine writes the time each second while
such a view runs. A session writes it when it creates such a view, and with FLUSH.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import NewTopic
from barnabas.engine.jobs import STREAMING, Desired, InsertWork, Job, ViewWork
from barnabas.protocol.records.record import build_batch

CLOCK = "_barnabas_clock"
COLUMN = "now"
TICK_S = 1.0
_CONFIGS = {"cleanup.policy": "delete", "retention.ms": "600000", "segment.ms": "600000"}


def reads_clock(job: Job) -> bool:
    """Whether a job that should run reads the clock."""
    return job.desired is Desired.RUNNING and isinstance(job.work, STREAMING) and has_clock(job.work)


def has_clock(work: ViewWork | InsertWork) -> bool:
    """Whether the clock is among the topics that a work reads."""
    return any(each.topic == CLOCK for each in work.tables.values())


def make_topic(client: BlockingClient) -> None:
    """Create the topic if there is none. Raises KafkaError, ClientError."""
    client.ensure_topic(NewTopic(CLOCK, 1, configs=_CONFIGS))


def record(now: dt.datetime) -> bytes:
    """The value of a record, with a time of UTC."""
    return f'{{"{COLUMN}":"{now:%Y-%m-%d %H:%M:%S.%f}"}}'.encode()


class Ticking:
    """Decides when the next time is due. No I/O."""

    def __init__(self) -> None:
        self._told_s: float | None = None

    def is_due(self, jobs: Iterable[Job], now_s: float) -> bool:
        """Whether to write the time now.

        Args:
            now_s: of a clock that never goes back.
        """
        if self._told_s is not None and now_s - self._told_s < TICK_S:
            return False
        if not any(map(reads_clock, jobs)):
            return False
        self._told_s = now_s
        return True


def tick(client: BlockingClient) -> None:
    """Write the time. Raises KafkaError, ClientError."""
    make_topic(client)
    now = dt.datetime.now(dt.UTC)
    client.produce(CLOCK, 0, bytearray(build_batch([(None, record(now))], timestamp_ms=int(now.timestamp() * 1000))))
