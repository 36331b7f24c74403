"""Stand-ins for what the coordinators need from the rest of the broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID, uuid4, uuid5

from barnabas.coordination.group_coordinator import GroupCoordinator
from barnabas.coordination.interfaces import EndMarker, LogEntry
from barnabas.coordination.result import NO_PRODUCER, Caller, Now, Producer
from barnabas.coordination.version_prefix import Record
from barnabas.errors import KafkaError

NAMESPACE = UUID(int=7)


@dataclass
class Config:
    """Broker settings with Kafka's defaults, except that groups do not wait for company."""

    group_initial_rebalance_delay_ms: int = 0
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int = 2_147_483_647
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")
    group_consumer_max_size: int = 2_147_483_647
    group_consumer_migration_policy: str = "bidirectional"
    group_coordinator_rebalance_protocols: tuple[str, ...] = ("classic", "consumer", "streams")
    group_consumer_regex_refresh_interval_ms: int = 600_000
    offset_metadata_max_bytes: int = 4_096
    offsets_commit_timeout_ms: int = 5_000
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000


@dataclass
class ManualClock:
    """Time stands still until a test moves it."""

    wall: int = 1_700_000_000_000
    steady: int = 0

    def now_ms(self) -> int:
        return self.wall

    def monotonic_ms(self) -> float:
        return self.steady

    def now(self) -> Now:
        return Now(self.wall, self.steady)

    def advance(self, passed_ms: int) -> Now:
        self.wall += passed_ms
        self.steady += passed_ms
        return self.now()


class MemoryLog:
    """`CoordinatorLog` in memory. With `hold` set, appends are taken but commit only when the test says so."""

    def __init__(self, partition_count: int = 4) -> None:
        self.partition_count = partition_count
        self.partitions: dict[int, list[LogEntry]] = {}
        self.batches: list[tuple[int, list[Record]]] = []
        self.hold = False
        self.pinned_files: list[asyncio.Future[None]] = []
        self.refusal: KafkaError | None = None

    def append(
        self, partition: int, records: list[Record], now_ms: int, producer: Producer | None = None
    ) -> asyncio.Future[None] | None:
        producer_id = NO_PRODUCER if producer is None else producer.producer_id
        commit = self._append(partition, [LogEntry(record, producer_id) for record in records])
        self.batches.append((partition, records))
        return commit

    def append_marker(self, partition: int, marker: EndMarker, now_ms: int) -> asyncio.Future[None] | None:
        return self._append(partition, [LogEntry(None, marker.producer.producer_id, marker.commit)])

    def _append(self, partition: int, entries: list[LogEntry]) -> asyncio.Future[None] | None:
        if self.refusal is not None:
            raise self.refusal
        self.partitions.setdefault(partition, []).extend(entries)
        if not self.hold:
            return None
        commit: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.pinned_files.append(commit)
        return commit

    async def read_all(self, partition: int) -> AsyncGenerator[list[LogEntry], None]:
        yield list(self.partitions.get(partition, ()))

    def commit_held(self) -> None:
        self.hold = False
        for commit in self.pinned_files:
            commit.set_result(None)
        self.pinned_files.clear()

    def lose_held(self, error: KafkaError) -> None:
        """Drop the appended records that are not committed."""
        self.hold = False
        for _, records in self.batches[-len(self.pinned_files) :]:
            for stored in self.partitions.values():
                stored[:] = [entry for entry in stored if entry.record not in records]
        for commit in self.pinned_files:
            commit.set_exception(error)
        self.pinned_files.clear()


@dataclass
class Topics:
    """The part of the metadata image that group requests look at."""

    counts: dict[str, int] = field(default_factory=dict)

    def topic_id(self, name: str) -> UUID | None:
        return uuid5(NAMESPACE, name) if name in self.counts else None

    def topic_name(self, topic_id: UUID) -> str | None:
        return next((name for name in self.counts if uuid5(NAMESPACE, name) == topic_id), None)

    def partition_count(self, name: str) -> int:
        return self.counts.get(name, 0)


@dataclass
class Context:
    api_version: int
    client_id: str | None = "client"
    client_host: str = "127.0.0.1"


@dataclass
class Broker:
    groups: GroupCoordinator
    metadata: Topics

    def new_id(self) -> UUID:
        return uuid4()

    async def find_coordinators(
        self, context: object, names: Sequence[str], *, of_transactions: bool
    ) -> Sequence[tuple[int, str, int] | None]:
        return [(1, "localhost", 9092)] * len(names)


def caller(version: int = 9, fresh_id: str = "0") -> Caller:
    return Caller(version, "client", "/127.0.0.1", fresh_id)


def subscription(topics: Iterable[str]) -> bytes:
    """Consumer protocol metadata, version 1, as clients send it."""
    names = [name.encode() for name in topics]
    body = b"".join(len(name).to_bytes(2, "big") + name for name in names)
    return b"\x00\x01" + len(names).to_bytes(4, "big") + body + b"\xff\xff\xff\xff" + b"\x00\x00\x00\x00"
