"""The plan of a run: topics, settings of the broker, and the records."""

from __future__ import annotations

from dataclasses import dataclass

PARTITIONS = 2
BROKER_SETTINGS: dict[str, str | int | bool] = {
    "log.cleaner.backoff.ms": 20,
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.cleaner.delete.retention.ms": 0,
    "log.initial.task.delay.ms": 100,
    "log.retention.check.interval.ms": 100,
    "log.flush.scheduler.interval.ms": 200,
    "transaction.state.log.num.partitions": 2,
}
SEGMENTS = {"internal.segment.bytes": "40000", "index.interval.bytes": "400", "file.delete.delay.ms": "0"}
KEPT, SHORT, COMPACTED = "kept", "short", "compacted"
TOPICS = {
    KEPT: SEGMENTS,
    SHORT: {**SEGMENTS, "retention.bytes": "150000"},
    COMPACTED: {**SEGMENTS, "cleanup.policy": "compact"},
}
KEYS = 40
ABORTED = b"aborted "  # the values of transactions that their writer aborts begin with it


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a run."""

    rounds: int = 20
    seed: int = 1
    seconds: float = 2.0  # of scans in a round before the kill


def name_of(kind: str, number: int) -> str:
    """The topic of a kind in a round."""
    return f"{kind}-{number}"


def kind_of(topic: str) -> str:
    """KEPT, SHORT or COMPACTED."""
    return topic.partition("-")[0]
