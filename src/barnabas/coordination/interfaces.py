"""What stands on both sides of the shell of coordinators: the log that they write to, and the core of one partition.

`runtime.py` drives any `Shard` over any `CoordinatorLog`: groups and transactions are two kinds of the one, a broker's partitions and a
list in the tests two of the other.
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

    `transaction_version` is that of the client: from 2 on the epoch is past that of the transaction (KIP-1228).
    """

    producer: Producer
    commit: bool
    coordinator_epoch: int
    transaction_version: int = 0


class LogEntry(NamedTuple):
    """A record, or (without one) the end of a transaction."""

    record: Record | None
    producer_id: int = NO_PRODUCER  # of the transaction that the record belongs to, or that ends
    commit: bool = False


class CoordinatorLog(Protocol):
    """An internal topic as its coordinators see it; the server makes it of partitions."""

    @property
    def partition_count(self) -> int:
        """How many partitions the topic has, or will have once it is made."""
        ...

    def append(self, partition: int, records: list[Record], now_ms: int, producer: Producer | None = None) -> Future[None] | None:
        """Append `records` as one batch, of the transaction of `producer` if there is one.

        Returns:
            None where they are committed already; else what is done when they are, or has the KafkaError by which they may be lost.

        Raises:
            KafkaError: they were refused, and nothing was written.
        """
        ...

    def append_marker(self, partition: int, marker: EndMarker, now_ms: int) -> Future[None] | None:
        """Append the end of a transaction; as `append`."""
        ...

    def read_all(self, partition: int) -> AsyncGenerator[Iterable[LogEntry], None]:
        """All that is in `partition`, oldest first, in parts."""
        ...


class Shard(Protocol):
    """The core of one partition."""

    @property
    def story(self) -> tuple[str, ...]:
        """What happened last, for when an invariant breaks."""
        ...

    def __len__(self) -> int:
        """How many groups, or transactional ids, there are."""
        ...

    def replay(self, record: Record, producer_id: int = NO_PRODUCER) -> None:
        """Take one record of the log, of a producer's transaction if it has one; raises MalformedMessage if it cannot be read."""
        ...

    def is_overwritten_by_next(self, record: Record) -> bool:
        """Whether a later record of the same key of which this is true as well says all that this one does, where nothing comes between
        them but records of which it is true. Asked while loading, of records that belong to no transaction."""
        ...

    def replay_end(self, producer_id: int, *, commit: bool) -> None:
        """The transaction of a producer ended."""
        ...

    def receive_loaded(self, now: Now) -> Iterable[CoordinatorResult]:
        """Everything in the log has been replayed."""
        ...

    def receive_written(self, event: Written, error: ErrorCode | None, now: Now) -> CoordinatorResult | None:
        """The records of the outcome that named `event` are committed, or were refused; None where nothing follows."""
        ...

    def unload(self, now: Now) -> CoordinatorResult:
        """The shard is no longer here: whoever waits is sent away."""
        ...

    def next_deadline_ms(self) -> int:
        """On the steady clock, no later than when `expire` has something to do."""
        ...

    def expire(self, now: Now) -> Iterable[CoordinatorResult]:
        """What follows from the time that has passed; each outcome is carried out before the next is asked for."""
        ...
