"""The interfaces on both sides of the coordinators' shell: the log that it writes to, and the core of one partition.

`runtime.py` drives any `Shard` over any `CoordinatorLog`: shards hold groups or transactions; a log is a broker's partitions,
or a list in tests.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import AsyncGenerator, Iterable
from typing import NamedTuple, Protocol

from barnabas.coordination.result import NO_PRODUCER, CoordinatorResult, Now, Producer, Written
from barnabas.coordination.version_prefix import Record
from barnabas.errors import ErrorCode


class EndMarker(NamedTuple):
    """The end of a producer's transaction, as its coordinator decided it in `coordinator_epoch`.

    `transaction_version` is that of the client. From 2 on, the marker's epoch is higher than the transaction's (KIP-1228).
    """

    producer: Producer
    commit: bool
    coordinator_epoch: int
    transaction_version: int = 0


class LogEntry(NamedTuple):
    """A record, or (without one) the end of a transaction."""

    record: Record | None
    producer_id: int = NO_PRODUCER  # the producer of the record's transaction, or of the transaction that ended
    commit: bool = False


class CoordinatorLog(Protocol):
    """The log of an internal topic for its coordinators; the server implements it with partitions."""

    @property
    def partition_count(self) -> int:
        """The number of partitions that the topic has, or will have once it is created."""
        ...

    def append(self, partition: int, records: list[Record], now_ms: int, producer: Producer | None = None) -> Future[None] | None:
        """Append `records` as one batch, of the transaction of `producer` if there is one.

        Returns:
            None if the records are committed already. Otherwise a future: it is done when they are committed, or has a
            KafkaError if they may be lost.

        Raises:
            KafkaError: the log refused the records and wrote nothing.
        """
        ...

    def append_marker(self, partition: int, marker: EndMarker, now_ms: int) -> Future[None] | None:
        """Append the end of a transaction; like `append`."""
        ...

    def read_all(self, partition: int) -> AsyncGenerator[Iterable[LogEntry], None]:
        """All entries of `partition`, oldest first, in parts."""
        ...


class Shard(Protocol):
    """The core of one partition."""

    @property
    def story(self) -> tuple[str, ...]:
        """The last events, for the report of a broken invariant."""
        ...

    def __len__(self) -> int:
        """The number of groups or transactional ids."""
        ...

    def replay(self, record: Record, producer_id: int = NO_PRODUCER) -> None:
        """Replay one record of the log, possibly of a producer's transaction; raises MalformedMessage if it does not parse."""
        ...

    def is_overwritten_by_next(self, record: Record) -> bool:
        """Whether a later overwritable record of the same key replaces this record, if there are only overwritable records
        between them. Called while loading, for records outside of transactions."""
        ...

    def replay_end(self, producer_id: int, *, commit: bool) -> None:
        """The transaction of a producer ended."""
        ...

    def receive_loaded(self, now: Now) -> Iterable[CoordinatorResult]:
        """Everything in the log has been replayed."""
        ...

    def receive_written(self, event: Written, error: ErrorCode | None, now: Now) -> CoordinatorResult | None:
        """The records of the outcome with `event` are committed, or were refused; None without a further outcome."""
        ...

    def unload(self, now: Now) -> CoordinatorResult:
        """The shard was moved away: waiting requests get NOT_COORDINATOR."""
        ...

    def next_deadline_ms(self) -> int:
        """A time of the monotonic clock, not later than the next work of `expire`."""
        ...

    def expire(self, now: Now) -> Iterable[CoordinatorResult]:
        """The outcomes of expired deadlines; the caller executes each one before it takes the next."""
        ...
