"""The requests and answers of transactional clients, and the errors that are visible at once: one half of the checker
(`verdict.py` is the other).

Owns a list of transactions and, for each partition, the value at each offset. It is independent of the code under test.

Rules (breaking one is a `Violation`; the names are those of Adya and of Jepsen's tests of Kafka)
  1. An offset always has the same value, and a value is at one offset only. In a partition without compaction, an acknowledged
     record stays, and so does a record that was read below the high watermark.
  2. Pre-committed read: a reader of committed records gets a record only after the record's client has requested the commit.
  3. Aborted read (G1a): a reader of committed records never gets records of an aborted transaction.
  4. A zombie is fenced: when a client knows a newer epoch of a transactional id, no request that is sent later with an older
     epoch is acknowledged. A commit that is requested so late makes nothing visible. No two clients get the same epoch.
  5. The last stable offset is between the log start offset and the high watermark.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from msgspec import Struct, field

from barnabas.testing.simulation.history import TopicPartition, Violation


class Owner(NamedTuple):
    """The owner of a transactional id in a client's requests."""

    producer_id: int
    epoch: int


class Outcome(Enum):
    """The end of a transaction, as far as its client knows it."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"  # the client requested the end, but got no response that shows the result


class Transaction(Struct, eq=False):
    """One transaction of one client.

    Args:
        writer: its transactional id.
        number: its number among the transactions of this id, in the order in which they began.
    """

    writer: str
    number: int
    owner: Owner
    began_s: float
    sent: dict[bytes, TopicPartition] = field(default_factory=dict)  # value -> partition, in the order of sending
    acknowledged: set[bytes] = field(default_factory=set)
    offsets: dict[TopicPartition, int] = field(default_factory=dict)  # offsets of the group that the transaction commits
    read_from: set[Transaction] = field(default_factory=set)  # transactions whose records this one has read
    commit_asked_s: float | None = None
    outcome: Outcome = Outcome.OPEN
    ended_s: float | None = None  # time at which the client learned of the end

    def __str__(self) -> str:
        return f"{self.writer}#{self.number}"


class Value(NamedTuple):
    """The transaction and the place of a value.

    Args:
        source: for a record of a copier, the value that it was copied from.
    """

    transaction: Transaction
    place: TopicPartition
    key: bytes | None
    source: bytes | None


class Seen(NamedTuple):
    """A data record that was read."""

    offset: int
    value: bytes
    key: bytes | None


class Partition(Struct):
    """The observations of one partition."""

    name: str
    compacted: bool = False
    values: dict[int, bytes] = field(default_factory=dict)  # offset -> value
    offsets: dict[bytes, int] = field(default_factory=dict)  # value -> offset
    high_watermark: int = 0


class Ledger:
    """The observations of a whole run.

    Args:
        compacted: the topics in which compaction may remove older records of a key.
    """

    def __init__(self, places: Iterable[TopicPartition], compacted: Iterable[str] = ()) -> None:
        kept = frozenset(compacted)
        self.partitions = {place: Partition(f"{place[0]}-{place[1]}", place[0] in kept) for place in places}
        self.transactions: list[Transaction] = []
        self.values: dict[bytes, Value] = {}
        # transactional id -> owner -> the client that became this owner, and when
        self._owners: dict[str, dict[Owner, tuple[str, float]]] = {}

    # --- observations of clients

    def owns(self, writer: str, client: str, owner: Owner, now_s: float) -> None:
        """A client received the answer that it is `owner` of the transactional id `writer` from now on."""
        other, _ = self._owners.setdefault(writer, {}).setdefault(owner, (client, now_s))
        if other != client:
            raise Violation(f"{other} and {client} were both told to be {owner} of {writer}")

    def began(self, writer: str, owner: Owner, now_s: float) -> Transaction:
        """A client begins a transaction, and has sent nothing yet."""
        transaction = Transaction(writer, len(self.transactions), owner, now_s)
        self.transactions.append(transaction)
        return transaction

    def sending(
        self,
        transaction: Transaction,
        place: TopicPartition,
        value: bytes,
        *,
        key: bytes | None = None,
        source: bytes | None = None,
    ) -> None:
        transaction.sent[value] = place
        self.values[value] = Value(transaction, place, key, source)

    def acknowledged(
        self, transaction: Transaction, place: TopicPartition, first_offset: int, values: list[bytes], sent_s: float
    ) -> None:
        """A batch is at `first_offset`; the client sent it first at `sent_s`."""
        self._check_owner(transaction, sent_s, "a batch")
        for offset, value in enumerate(values, first_offset):
            self._lies(place, offset, value, "acknowledged")
        transaction.acknowledged.update(values)

    def offsets_acknowledged(self, transaction: Transaction, sent_s: float) -> None:
        self._check_owner(transaction, sent_s, "offsets")

    def asking_commit(self, transaction: Transaction, now_s: float) -> None:
        if transaction.commit_asked_s is None:
            transaction.commit_asked_s = now_s

    def ended(self, transaction: Transaction, outcome: Outcome, now_s: float) -> None:
        """The client knows the end of its transaction, or has given up waiting for it."""
        if outcome is Outcome.COMMITTED:
            assert transaction.commit_asked_s is not None, "the client has asked for it"
            self._check_owner(transaction, transaction.commit_asked_s, "a commit")
        transaction.outcome, transaction.ended_s = outcome, now_s

    # --- observations of readers

    def read_any(self, place: TopicPartition, records: Iterable[Seen], high_watermark: int) -> None:
        """An answer to a reader of all records."""
        partition = self.partitions[place]
        partition.high_watermark = max(partition.high_watermark, high_watermark)
        for offset, value, key in records:
            self._check_read(partition, place, offset, value, key, high_watermark)

    def read_committed(
        self,
        place: TopicPartition,
        records: Iterable[Seen],
        *,
        high_watermark: int,
        stable: int,
        log_start: int,
        by: Transaction | None = None,
    ) -> None:
        """An answer to a reader of committed records.

        Args:
            stable: the last stable offset.
            by: the transaction that reads them, if there is one.
        """
        partition = self.partitions[place]
        partition.high_watermark = max(partition.high_watermark, high_watermark)
        if not log_start <= stable <= high_watermark:
            raise Violation(f"{partition.name}: the last stable offset {stable} is not in [{log_start}, {high_watermark}]")
        for offset, value, key in records:
            self._check_read(partition, place, offset, value, key, stable)
            transaction = self.values[value].transaction
            if transaction.outcome is Outcome.ABORTED:
                raise Violation(f"{partition.name}: aborted read: {transaction} was aborted, and its record at {offset} was read")
            if transaction.commit_asked_s is None:
                raise Violation(
                    f"{partition.name}: pre-committed read: the record at {offset} was read, and nobody has asked to commit {transaction}"
                )
            if not self.may_commit(transaction):
                raise Violation(
                    f"{partition.name}: zombie: the record at {offset} was read, {transaction} had lost its transactional id"
                )
            if by is not None:
                by.read_from.add(transaction)

    def ends_at(self, place: TopicPartition, end: int) -> None:
        """An answer says that the log of a partition ends at `end`; it came when no other request was open."""
        partition = self.partitions[place]
        last = max(partition.values, default=-1)
        if last >= end:
            raise Violation(f"{partition.name}: offset {last} was acknowledged or read, and the log ends at {end}")

    def may_commit(self, transaction: Transaction) -> bool:
        """Whether a client that could still own the id requested the commit of this transaction."""
        asked_s = transaction.commit_asked_s
        return asked_s is not None and self._fenced_s(transaction) >= asked_s

    # --- internal

    def _fenced_s(self, transaction: Transaction) -> float:
        """The time (s) at which a client first knew a newer epoch than that of this transaction; infinity if none did."""
        mine = transaction.owner
        known = self._owners.get(transaction.writer, {}).items()
        return min(
            (told_s for (producer_id, epoch), (_, told_s) in known if producer_id == mine.producer_id and epoch > mine.epoch),
            default=float("inf"),
        )

    def _check_owner(self, transaction: Transaction, sent_s: float, what: str) -> None:
        if self._fenced_s(transaction) < sent_s:
            raise Violation(
                f"zombie: {what} of {transaction} was acknowledged, {transaction.writer} had a newer owner before it was sent"
            )

    def _check_read(
        self, partition: Partition, place: TopicPartition, offset: int, value: bytes, key: bytes | None, limit: int
    ) -> None:
        if offset >= limit:
            raise Violation(f"{partition.name}: offset {offset} was read, and nothing from {limit} on is to be seen")
        self._lies(place, offset, value, "read")
        if key != self.values[value].key:
            raise Violation(f"{partition.name}: offset {offset} was read with the key {key!r}, not {self.values[value].key!r}")

    def _lies(self, place: TopicPartition, offset: int, value: bytes, how: str) -> None:
        partition = self.partitions[place]
        known = self.values.get(value)
        if known is None or known.place != place:
            raise Violation(f"{partition.name}: {value[:40]!r} was {how} at offset {offset}, and nobody sent it there")
        before = partition.values.setdefault(offset, value)
        if before != value:
            raise Violation(f"{partition.name}: offset {offset} holds {before[:24]!r}, and {value[:24]!r} was {how} there")
        first = partition.offsets.setdefault(value, offset)
        if first != offset:
            raise Violation(f"{partition.name}: {value[:24]!r} lies at offset {first}, and was {how} at {offset} too")
