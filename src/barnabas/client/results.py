"""The results of operations."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from barnabas.protocol.base_message import Buffer

# Special values of the timestamp in ListOffsets.
LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3  # the record with the largest timestamp (KIP-734)

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Fetched:
    """The fetch response of one partition.

    `records` are whole batches and perhaps the beginning of one more; the first batch may begin below the requested offset. The
    batches are not checked. Offsets: `log_start_offset` <= `last_stable_offset` <= `high_watermark`, all -1 if the response has
    none.
    """

    records: Buffer
    high_watermark: int
    last_stable_offset: int = -1
    log_start_offset: int = -1
    aborted: tuple[tuple[int, int], ...] = ()  # producer id and first offset of each aborted transaction


@dataclass(frozen=True, slots=True)
class ListedOffset:
    """The result of an offset look-up; -1 if no record is that new. `timestamp_ms` is that of the record, or -1."""

    offset: int
    timestamp_ms: int = -1
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class Produced:
    """The offset of an appended batch; `log_append_time_ms` is -1 if the topic keeps the producer's time."""

    base_offset: int
    log_append_time_ms: int = -1
    log_start_offset: int = -1


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """A created topic."""

    name: str
    topic_id: UUID
    partitions: int
    replication_factor: int


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create; for a number of -1 the broker decides."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """A group's offset of a partition; -1 if it has none."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1
