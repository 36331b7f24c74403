"""One transactional id: its owner, and the open or last transaction.

Owns the values and the transitions: a transition takes a `Transaction` and returns the next one, or raises the KafkaError of
the request. Only this value survives a failover, so it contains everything that matters.

States

                     add                      commit, abort                  all markers are written
    EMPTY ─────────────────────► ONGOING ─────────────────────► PREPARE_* ─────────────────────────► COMPLETE_*
      ▲                             ▲                                                                  │   │
      │ init                        └──────────────────────────── add ────────────────────────────────┘   │
      └────────────────────────────────────────────── init ───────────────────────────────────────────────┘

Rules
  1. One transactional id has one owner: (producer id, epoch). Each `init` creates another owner and so fences the former one.
  2. Once a transaction is PREPARE_COMMIT or PREPARE_ABORT its end is decided: the only next state is the matching COMPLETE.
  3. With transactions of version 2 (KIP-890) each end also raises the epoch. The marker has the raised epoch, so that the
     partition fences a late request of the ended transaction.
  4. A retry of a completed request gets the same response: the previous owner is kept for that.
  5. An epoch never overflows: after the last but one epoch the id gets another producer id. The last epoch is reserved for
     fencing.
  6. A prepared transaction (KIP-939) stays ONGOING under the owner that wrote it. The producer that ends it is the next owner,
     and the value has both owners until the end.

Source: KIP-98, KIP-360 (retries of init), KIP-890 (version 2), KIP-939 (two-phase commit).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from barnabas.errors import ErrorCode, InvariantViolated, KafkaError
from barnabas.tuples import new_tuple

NO_PRODUCER_ID, NO_EPOCH, NO_TIME = -1, -1, -1
LAST_EPOCH = 2**15 - 1
NEVER_TIMES_OUT_MS = 2**31 - 1  # the timeout of transactions with an external coordinator (two-phase commit)

TopicPartition = tuple[str, int]
TakeId = Callable[[], int]  # returns an unused producer id


class State(IntEnum):
    """Numbers as in the records; `title` is the name in tools."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6

    @property
    def title(self) -> str:
        return "".join(word.capitalize() for word in self.name.split("_"))


class Owner(NamedTuple):
    producer_id: int
    epoch: int


NOBODY = Owner(NO_PRODUCER_ID, NO_EPOCH)
# tuples: a set would call the hash of the enum members, which is Python code
PREPARED = (State.PREPARE_COMMIT, State.PREPARE_ABORT)
COMPLETED = (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
ENDED_AS = {State.PREPARE_COMMIT: State.COMPLETE_COMMIT, State.PREPARE_ABORT: State.COMPLETE_ABORT}


class Transaction(Struct, frozen=True):
    """The stored state of a transactional id. Times are of the wall clock, in milliseconds since 1970-01-01 UTC."""

    transactional_id: str
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH
    last_producer_epoch: int = NO_EPOCH  # epoch before the last init or end, to recognise retries; in memory only, as in Kafka
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    next_producer_epoch: int = NO_EPOCH
    timeout_ms: int = 0
    state: State = State.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIME
    last_update_ms: int = NO_TIME
    client_version: int = 0  # 2 if the client uses transactions of version 2 (KIP-890)

    @property
    def owner(self) -> Owner:
        """The owner that may use this id."""
        if self.next_producer_epoch != NO_EPOCH:
            return new_tuple(Owner, (self.next_producer_id, self.next_producer_epoch))
        return new_tuple(Owner, (self.producer_id, self.producer_epoch))

    @property
    def is_of_two_phases(self) -> bool:
        """Whether an external coordinator decides the end of this transaction, so that it never times out."""
        return self.timeout_ms == NEVER_TIMES_OUT_MS

    @property
    def deadline_ms(self) -> int | None:
        """The time at which it is aborted; None for never."""
        if self.state is not State.ONGOING or self.is_of_two_phases:
            return None
        return self.start_ms + self.timeout_ms


def is_exhausted(epoch: int) -> bool:
    """Whether the only epoch after this one is reserved for fencing."""
    return epoch >= LAST_EPOCH - 1


# -- init -------------------------------------------------------------------------------------------------------------------


def init(before: Transaction, expected: Owner, timeout_ms: int, now_ms: int, take_id: TakeId, least_id: int = 0) -> Transaction:
    """Give the id to another owner. An open transaction must be ended before (`fence`).

    Args:
        expected: the requesting producer, if it had the id (KIP-360); else NOBODY.
        least_id: an owner that did not have the id before gets no lower producer id.

    Raises:
        KafkaError: CONCURRENT_TRANSACTIONS while a transaction is being ended; PRODUCER_FENCED if another producer has got the
            id.
    """
    check_expected(before, expected)
    if before.state in PREPARED:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if before.state is State.ONGOING:
        raise InvariantViolated(f"init of {before.transactional_id} while its transaction is open")
    is_known = expected != NOBODY
    if before.producer_id == NO_PRODUCER_ID:
        return _emptied(before, Owner(take_id(), 0), NO_EPOCH, NO_PRODUCER_ID, timeout_ms, now_ms)
    if is_known and expected != before.owner:
        if expected.epoch != before.last_producer_epoch:
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        # The client lost the response to an init or an end, and repeats the request.
        return _emptied(before, before.owner, before.last_producer_epoch, before.previous_producer_id, timeout_ms, now_ms)
    last = before.producer_epoch if is_known else NO_EPOCH
    if is_exhausted(before.producer_epoch) or (not is_known and before.producer_id < least_id):
        return _emptied(before, Owner(take_id(), 0), last, before.producer_id, timeout_ms, now_ms)
    following = Owner(before.producer_id, before.producer_epoch + 1)
    return _emptied(before, following, last, NO_PRODUCER_ID, timeout_ms, now_ms)


def check_expected(before: Transaction, expected: Owner) -> None:
    """Check that a producer that names its owner may still have the id.

    Raises:
        KafkaError: PRODUCER_FENCED.
    """
    if expected == NOBODY or before.producer_epoch == NO_EPOCH or expected.producer_id == before.owner.producer_id:
        return
    if expected.producer_id == before.previous_producer_id and is_exhausted(expected.epoch):
        return  # the client does not know yet that its producer id was replaced
    raise KafkaError(ErrorCode.PRODUCER_FENCED)


def _emptied(before: Transaction, owner: Owner, last: int, previous_id: int, timeout_ms: int, now_ms: int) -> Transaction:
    return replace(
        before,
        producer_id=owner.producer_id,
        producer_epoch=owner.epoch,
        last_producer_epoch=last,
        previous_producer_id=previous_id,
        next_producer_id=NO_PRODUCER_ID,
        next_producer_epoch=NO_EPOCH,
        timeout_ms=timeout_ms,
        state=State.EMPTY,
        partitions=frozenset(),
        start_ms=NO_TIME,
        last_update_ms=now_ms,
    )


def take_over(before: Transaction, expected: Owner, timeout_ms: int, now_ms: int, take_id: TakeId) -> Transaction:
    """Give the id to another owner and keep its open transaction, which that owner will end (KIP-939).

    A transaction without a timeout gets none, even if the next owner requests one for its own transactions: the kept
    transaction may be prepared.

    Raises:
        KafkaError: PRODUCER_FENCED.
    """
    check_expected(before, expected)
    owner = before.owner
    following = Owner(take_id(), 0) if is_exhausted(owner.epoch) else Owner(owner.producer_id, owner.epoch + 1)
    return replace(
        before,
        next_producer_id=following.producer_id,
        next_producer_epoch=following.epoch,
        timeout_ms=NEVER_TIMES_OUT_MS if before.is_of_two_phases else timeout_ms,
        last_update_ms=now_ms,
    )


# -- a transaction and its end ----------------------------------------------------------------------------------------------


def check_owner(before: Transaction, asking: Owner) -> None:
    """Raises KafkaError INVALID_PRODUCER_ID_MAPPING or PRODUCER_FENCED unless `asking` owns the id; CONCURRENT_TRANSACTIONS
    while an end is written."""
    owner = before.owner
    if asking.producer_id != owner.producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if asking.epoch != owner.epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if before.state in PREPARED:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)


def add(
    before: Transaction, asking: Owner, partitions: frozenset[TopicPartition], client_version: int, now_ms: int
) -> Transaction:
    """Add partitions to the transaction; returns `before` itself if it has all of them.

    Raises:
        KafkaError: as `check_owner`; INVALID_TXN_STATE if another owner took over the id to end this transaction.
    """
    check_owner(before, asking)
    if before.state is State.ONGOING:
        if before.next_producer_epoch != NO_EPOCH:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE)
        if partitions <= before.partitions:
            return before
        held, start_ms = before.partitions, before.start_ms
    else:
        held, start_ms = frozenset(), now_ms
    return replace(
        before,
        state=State.ONGOING,
        partitions=held | partitions,
        start_ms=start_ms,
        last_update_ms=now_ms,
        client_version=client_version,
    )


def end(
    before: Transaction, asking: Owner, *, commit: bool, client_version: int, now_ms: int, take_id: TakeId
) -> Transaction | None:
    """Decide the end that the owner requests; None if it has already ended this way (a retry).

    Raises:
        KafkaError: PRODUCER_FENCED, INVALID_PRODUCER_ID_MAPPING: another producer has the id; CONCURRENT_TRANSACTIONS: the
            transaction is being ended; INVALID_TXN_STATE: there is no transaction, or it ended the other way.
    """
    is_retry = client_version >= 2 and _is_retried_end(before, asking)
    if not is_retry:
        if asking.producer_id != before.owner.producer_id:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if asking.epoch != before.owner.epoch:
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
    wanted = State.PREPARE_COMMIT if commit else State.PREPARE_ABORT
    if before.state is State.ONGOING:
        if is_retry:
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        return _decided(before, wanted, client_version, now_ms, take_id)
    if before.state in PREPARED:
        # This applies to an abort too: it may be for the next transaction, before any other request of it arrives.
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    is_same_end = before.state is ENDED_AS[wanted]
    if is_same_end and (is_retry or client_version < 2):
        return None
    if client_version >= 2 and not commit and not is_retry:
        # A client of version 2 cannot know whether a request of its transaction has arrived. The raised epoch fences late ones.
        return _decided(replace(before, start_ms=now_ms, partitions=frozenset()), wanted, client_version, now_ms, take_id)
    raise KafkaError(ErrorCode.INVALID_TXN_STATE)


def _is_retried_end(before: Transaction, asking: Owner) -> bool:
    """Whether `asking` ended the last transaction, which then raised the epoch.

    An end by a client below version 2 does not raise it. Then the epoch before the owner's belongs to a producer that an init fenced.
    Kafka 4.3 still treats an EndTxn of that producer as a retry, and answers with the epoch of the producer that fenced it.
    """
    if before.client_version < 2:
        return False
    if before.next_producer_epoch != NO_EPOCH and before.state not in PREPARED:
        return False
    if asking.producer_id == before.producer_id and before.state not in {State.EMPTY, State.ONGOING}:
        return asking.epoch == before.producer_epoch - 1
    return asking.producer_id == before.previous_producer_id and is_exhausted(asking.epoch) and before.producer_epoch == 0


def _decided(before: Transaction, wanted: State, client_version: int, now_ms: int, take_id: TakeId) -> Transaction:
    following, epoch = before.owner, before.producer_epoch
    if client_version >= 2 or before.next_producer_epoch != NO_EPOCH:
        if following.producer_id == before.producer_id:
            epoch = following.epoch + 1
            following = Owner(take_id(), 0) if is_exhausted(following.epoch) else NOBODY
        else:  # the transactional id has an owner with another producer id
            epoch = before.producer_epoch + 1
            following = (
                Owner(take_id(), 0) if is_exhausted(following.epoch) else Owner(following.producer_id, following.epoch + 1)
            )
    else:
        following = NOBODY
    return replace(
        before,
        state=wanted,
        producer_epoch=epoch,
        last_producer_epoch=before.producer_epoch,
        next_producer_id=following.producer_id,
        next_producer_epoch=following.epoch,
        last_update_ms=now_ms,
        client_version=client_version,
    )


def fence(before: Transaction, now_ms: int, take_id: TakeId) -> Transaction:
    """Abort the open transaction without its owner: it timed out, or another producer claims the id.

    The marker's epoch is one above the owner's for all client versions, so that no later write of the owner is accepted.
    """
    if before.state is not State.ONGOING:
        raise InvariantViolated(f"abort of {before.transactional_id}, which has no open transaction")
    decided = _decided(before, State.PREPARE_ABORT, 2, now_ms, take_id)
    return replace(decided, client_version=before.client_version)


def complete(before: Transaction, now_ms: int) -> Transaction:
    """All markers are written."""
    if before.state not in PREPARED:
        raise InvariantViolated(f"end of {before.transactional_id} without a decision")
    after = replace(
        before,
        state=ENDED_AS[before.state],
        partitions=frozenset(),
        next_producer_id=NO_PRODUCER_ID,
        next_producer_epoch=NO_EPOCH,
        previous_producer_id=NO_PRODUCER_ID,
        last_update_ms=now_ms,
    )
    if before.next_producer_epoch == NO_EPOCH:
        return after
    return replace(
        after,
        previous_producer_id=before.producer_id,
        producer_id=before.next_producer_id,
        producer_epoch=before.next_producer_epoch,
    )
