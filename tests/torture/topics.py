"""The topics under load, one for every promise that is checked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

# A roll every few hundred records, so that many kills meet one.
SMALL_SEGMENTS = {"internal.segment.bytes": "65536", "index.interval.bytes": "512"}
FOR_EVER = {"retention.ms": "-1"}


class Promise(Enum):
    """The acknowledged records that a topic keeps."""

    ALL_ONCE = "every record once"
    ALL = "every record at least once"
    FROM_START = "every record from the log's start on, once"
    LAST_OF_KEY = "the last record of every key"


@dataclass(frozen=True, slots=True)
class TortureTopic:
    """A topic and how it is written to."""

    name: str
    promise: Promise
    settings: dict[str, str]
    partitions: int = 3
    idempotent: bool = True
    compression: str = "none"


TRIMMED = "trimmed"
TOPICS = (
    TortureTopic("synced", Promise.ALL_ONCE, {**SMALL_SEGMENTS, **FOR_EVER, "flush.messages": "1"}),
    TortureTopic("synced-plain", Promise.ALL, {**SMALL_SEGMENTS, **FOR_EVER, "flush.messages": "1"}, idempotent=False),
    TortureTopic("cached", Promise.ALL_ONCE, {**SMALL_SEGMENTS, **FOR_EVER}, compression="lz4"),
    TortureTopic("short", Promise.FROM_START, {**SMALL_SEGMENTS, **FOR_EVER, "retention.bytes": "400000"}, partitions=2),
    TortureTopic(TRIMMED, Promise.FROM_START, {**SMALL_SEGMENTS, **FOR_EVER}, partitions=2),
    TortureTopic(
        "compacted",
        Promise.LAST_OF_KEY,
        {
            **SMALL_SEGMENTS,
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "0.01",
            "delete.retention.ms": "500",
            "flush.messages": "1",
        },
        partitions=2,
        compression="zstd",
    ),
)

# Short intervals, so that kills meet the periodic work.
BROKER_SETTINGS: dict[str, str | int | bool] = {
    "auto.create.topics.enable": False,
    "log.cleaner.backoff.ms": 100,
    "log.flush.offset.checkpoint.interval.ms": 200,
    "log.flush.start.offset.checkpoint.interval.ms": 200,
    "log.retention.check.interval.ms": 100,
    "log.segment.delete.delay.ms": 100,
    "replica.high.watermark.checkpoint.interval.ms": 200,
}
