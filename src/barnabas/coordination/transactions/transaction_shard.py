"""All transactional ids whose records are in one partition of `__transaction_state`.

Owns the table of transactions, the due markers, and the deadlines. A pure core: requests and `Now` in, `CoordinatorResult` out.
`replay` takes records: from the log while loading, from its own outcomes later.

Rules
  1. Only the replay of a record changes the state. Markers are due only after the record that decides the end is committed
     (`receive_written`): before that a failover could decide otherwise.
  2. A transaction is complete when its marker is in every partition; only then its id can start the next one.
  3. After a failover the markers of every decided end are written again: markers are idempotent.
  4. A transaction past its timeout is aborted with the next epoch, so its producer is fenced.
  5. An id without use for `transactional.id.expiration.ms` is removed, unless a transaction is open.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum

from msgspec.structs import replace

from barnabas.coordination.result import NO_PRODUCER, CoordinatorResult, Now, Written
from barnabas.coordination.timers import Timers
from barnabas.coordination.transactions import transaction as rules
from barnabas.coordination.transactions.data_types import (
    Completing,
    Decided,
    EndCounts,
    Initialised,
    InitRequest,
    TransactionConfig,
)
from barnabas.coordination.transactions.markers import Marker, MarkersDue
from barnabas.coordination.transactions.transaction import (
    COMPLETED,
    NEVER_TIMES_OUT_MS,
    PREPARED,
    Owner,
    State,
    TakeId,
    TopicPartition,
    Transaction,
)
from barnabas.coordination.transactions.transaction_log_records import read_record, tombstone, transaction_record
from barnabas.coordination.version_prefix import Record
from barnabas.errors import ErrorCode, InvariantViolated, KafkaError

STORY_LENGTH = 64  # transactions in the report of a violated invariant
RETRY_MS = 1_000  # wait before the shard repeats an abort that the log refused
RECORDS_AT_ONCE = 1_000  # tombstones of expired ids in one batch


class _Due(Enum):
    """The kinds of deadlines."""

    ABORT = "abort"  # an open transaction times out
    COMPLETE = "complete"  # the shard repeats the record of an end that the log refused

    __hash__ = object.__hash__  # hash by identity: the hash of enum members is Python code


class TransactionShard:
    """The coordinator of the transactional ids of one partition.

    Args:
        coordinator_epoch: the leader epoch of the partition; each marker has it, so that brokers refuse the markers of a former
            coordinator.
        take_id: returns an unused producer id; raises KafkaError if there is none.
        least_id: returns the least producer id that owners of a transactional id may begin with.
        counts: incremented with each end.
    """

    def __init__(
        self,
        config: TransactionConfig,
        now: Now,
        *,
        coordinator_epoch: int,
        take_id: TakeId,
        least_id: TakeId = lambda: 0,
        counts: EndCounts | None = None,
    ) -> None:
        self.coordinator_epoch = coordinator_epoch
        self.markers = MarkersDue()
        self._config = config
        self._take_id, self._least_id = take_id, least_id
        self._counts = counts or EndCounts()
        self._transactions: dict[str, Transaction] = {}
        self._timers: Timers[tuple[_Due, str]] = Timers()
        self._cleanup_at_ms = now.steady_ms + config.transaction_remove_expired_transaction_cleanup_interval_ms
        self._story: deque[Transaction] = deque(maxlen=STORY_LENGTH)
        self._made: deque[tuple[Record, Transaction]] = deque()  # values of the records that `replay` receives next
        self._is_loading = True
        self._wall_offset_ms = 0  # add to a wall-clock time (start of a transaction) to get the monotonic time (timeouts)

    def __len__(self) -> int:
        return len(self._transactions)

    @property
    def transactions(self) -> Mapping[str, Transaction]:
        return self._transactions

    @property
    def story(self) -> tuple[str, ...]:
        return tuple(
            f"{each.transactional_id}: {each.state.title} producer={each.owner.producer_id} epoch={each.owner.epoch}"
            for each in self._story
        )

    # -- requests -------------------------------------------------------------------------------------------------------

    def init(self, request: InitRequest, now: Now) -> CoordinatorResult:
        """Give an id to another owner; the response is `Initialised`, or None if the open transaction is aborted first.

        Raises:
            KafkaError: TRANSACTIONAL_ID_AUTHORIZATION_FAILED (two-phase commit is not enabled), INVALID_TRANSACTION_TIMEOUT,
                INVALID_REQUEST, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS.
        """
        timeout_ms = self._check_init(request)
        before = self._transactions.get(request.transactional_id, Transaction(request.transactional_id))
        if before.state is State.ONGOING:
            rules.check_expected(before, request.expected)
            if not request.keep_prepared:
                return self._fence(before, now)
            after = rules.take_over(before, request.expected, timeout_ms, now.wall_ms, self._take_id)
            return self._write(after, Initialised(after.owner, Owner(before.producer_id, before.producer_epoch)))
        after = rules.init(before, request.expected, timeout_ms, now.wall_ms, self._take_id, self._least_id())
        return self._write(after, Initialised(after.owner))

    def _check_init(self, request: InitRequest) -> int:
        if not request.transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        if (request.two_phase or request.keep_prepared) and not self._config.transaction_two_phase_commit_enable:
            # KIP-939: the same error as for a missing permission
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        if request.two_phase:
            return NEVER_TIMES_OUT_MS
        if not 0 < request.timeout_ms <= self._config.transaction_max_timeout_ms:
            raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        return request.timeout_ms

    def add(
        self, transactional_id: str, asking: Owner, partitions: Iterable[TopicPartition], client_version: int, now: Now
    ) -> CoordinatorResult:
        """Add partitions that the transaction is about to write to.

        Raises:
            KafkaError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE.
        """
        self._wall_offset_ms = now.steady_ms - now.wall_ms
        before = self._known(transactional_id)
        after = rules.add(before, asking, frozenset(partitions), client_version, now.wall_ms)
        return CoordinatorResult() if after is before else self._write(after)

    def verify(
        self, transactional_id: str, asking: Owner, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Check that the partitions are in the open transaction: NONE or TRANSACTION_ABORTABLE for each.

        Raises:
            KafkaError: as `add`.
        """
        found = self._known(transactional_id)
        rules.check_owner(found, asking)
        held = found.partitions if found.state is State.ONGOING else frozenset()
        return {each: ErrorCode.NONE if each in held else ErrorCode.TRANSACTION_ABORTABLE for each in partitions}

    def end(self, transactional_id: str, asking: Owner, *, commit: bool, client_version: int, now: Now) -> CoordinatorResult:
        """Decide the end of a transaction; the response is the next owner.

        Raises:
            KafkaError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE.
        """
        before = self._known(transactional_id)
        after = rules.end(before, asking, commit=commit, client_version=client_version, now_ms=now.wall_ms, take_id=self._take_id)
        if after is None:
            return CoordinatorResult(response=before.owner)
        return self._decide(after, after.owner)

    def holds(self, transactional_id: str, asking: Owner, place: TopicPartition) -> bool:
        """Whether a partition is in the open transaction of `asking`; `verify` gives the error if it is not."""
        found = self._transactions.get(transactional_id)
        return found is not None and found.state is State.ONGOING and place in found.partitions and found.owner == asking

    def _fence(self, before: Transaction, now: Now, *, is_late: bool = False) -> CoordinatorResult:
        return self._decide(rules.fence(before, now.wall_ms, self._take_id), None, is_late=is_late)

    def _decide(self, after: Transaction, response: Owner | None, *, is_late: bool = False) -> CoordinatorResult:
        out = self._write(after, response)
        out.written = Decided(after, is_late)
        return out

    def _known(self, transactional_id: str) -> Transaction:
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        found = self._transactions.get(transactional_id)
        if found is None:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return found

    def _write(self, after: Transaction, response: object = None) -> CoordinatorResult:
        record = transaction_record(after)
        self._made = deque([(record, after)])
        self._story.append(after)
        return CoordinatorResult(response=response, records=[record])

    # -- markers --------------------------------------------------------------------------------------------------------

    def receive_written(self, event: Written, error: ErrorCode | None, now: Now) -> CoordinatorResult | None:
        """The records of an outcome are committed, or were refused (and nothing has changed)."""
        if error is None and isinstance(event, Completing):
            return None
        if isinstance(event, Decided):
            name = event.transaction.transactional_id
            if error is None:
                self._count(event)
                return self._begin_markers(event.transaction)
            deadline_ms = self._transactions[name].deadline_ms
            if deadline_ms is not None:  # while the transaction has time left, its owner may retry and decide the end
                retry_ms = max(now.steady_ms + RETRY_MS, deadline_ms + self._wall_offset_ms)
                self._timers.schedule((_Due.ABORT, name), retry_ms)
        elif isinstance(event, Completing):
            for marker in event.markers:
                self._timers.schedule((_Due.COMPLETE, marker.transactional_id), now.steady_ms + RETRY_MS)
        return CoordinatorResult()

    def _count(self, decided: Decided) -> None:
        if decided.transaction.state is State.PREPARE_COMMIT:
            self._counts.committed += 1
        else:
            self._counts.aborted += 1
            self._counts.timed_out += decided.is_late

    def _begin_markers(self, decided: Transaction) -> CoordinatorResult:
        marker = self.markers.begin(decided)
        return self._completed([marker]) if self.markers.is_complete(marker) else CoordinatorResult()

    def receive_marked(self, marker: Marker, partitions: Iterable[TopicPartition], now: Now) -> CoordinatorResult:
        """A marker was written to `partitions`, or they were deleted."""
        if not self.markers.written(marker, partitions):
            return CoordinatorResult()
        return self._completed([marker], now)

    def delete_topic(self, topic: str, now: Now) -> CoordinatorResult:
        """A topic was deleted and needs no markers."""
        return self._completed(self.markers.drop_topic(topic), now)

    def _completed(self, markers: Iterable[Marker], now: Now | None = None) -> CoordinatorResult:
        out = CoordinatorResult()
        complete = tuple(markers)
        if complete:
            out.written = Completing(complete)
            self._made.clear()
        for marker in complete:
            before = self._transactions[marker.transactional_id]
            if before.state not in PREPARED or before.producer_epoch != marker.producer_epoch:
                raise InvariantViolated(f"markers of {marker} are complete, and its transaction is {before}", self.story)
            after = rules.complete(before, before.last_update_ms if now is None else now.wall_ms)
            record = transaction_record(after)
            out.records.append(record)
            self._made.append((record, after))
            self._story.append(after)
        return out

    # -- the log --------------------------------------------------------------------------------------------------------

    def replay(self, record: Record, producer_id: int = NO_PRODUCER) -> None:
        """Replay one record of the log; raises MalformedMessage if it does not parse."""
        if self._made and self._made[0][0] is record:
            self._take(self._made.popleft()[1])
            return
        found = read_record(record)
        if found is None:
            return
        name, transaction = found
        if transaction is None:
            self._transactions.pop(name, None)
            self._timers.cancel((_Due.ABORT, name))
            self.markers.forget(name)
            return
        before = self._transactions.get(name)
        if before is not None and not self._is_loading:
            transaction = replace(transaction, last_producer_epoch=before.last_producer_epoch)
        self._take(transaction)

    def _take(self, transaction: Transaction) -> None:
        name = transaction.transactional_id
        before = self._transactions.get(name)
        self._transactions[name] = transaction
        if transaction.state in COMPLETED:
            self.markers.forget(name)
        if not self._is_loading and (before is None or before.deadline_ms != transaction.deadline_ms):
            self._time(transaction)

    def is_overwritten_by_next(self, record: Record) -> bool:
        """True unless the record is a tombstone: each other record has the whole state of its transactional id."""
        return record[1] is not None

    def replay_end(self, producer_id: int, *, commit: bool) -> None:
        """This topic has no transactional writes; a marker in it changes nothing."""

    def receive_loaded(self, now: Now) -> list[CoordinatorResult]:
        """Everything in the log was replayed: write the markers of decided ends, and set the deadlines of open transactions."""
        self._is_loading = False
        self._wall_offset_ms = now.steady_ms - now.wall_ms
        for transaction in self._transactions.values():
            self._time(transaction)
        return [self._begin_markers(each) for each in self._transactions.values() if each.state in PREPARED]

    # -- time -----------------------------------------------------------------------------------------------------------

    def _time(self, transaction: Transaction) -> None:
        deadline = transaction.deadline_ms
        if deadline is None:
            self._timers.cancel((_Due.ABORT, transaction.transactional_id))
        else:
            self._timers.schedule((_Due.ABORT, transaction.transactional_id), deadline + self._wall_offset_ms)

    def next_deadline_ms(self) -> int:
        """A time of the monotonic clock, not later than the next work of `expire`."""
        deadline = self._timers.next_deadline_ms()
        return self._cleanup_at_ms if deadline is None else min(deadline, self._cleanup_at_ms)

    def expire(self, now: Now) -> Iterator[CoordinatorResult]:
        """The outcomes of expired deadlines; the caller executes each one before it takes the next."""
        for kind, name in self._timers.due(now.steady_ms):
            if kind is _Due.ABORT:
                yield self._abort_late(name, now)
            else:
                yield self._completed(self.markers.complete_of(name), now)
        if now.steady_ms >= self._cleanup_at_ms:
            self._cleanup_at_ms = now.steady_ms + self._config.transaction_remove_expired_transaction_cleanup_interval_ms
            yield from self._forget_unused(now)

    def _abort_late(self, name: str, now: Now) -> CoordinatorResult:
        try:
            return self._fence(self._transactions[name], now, is_late=True)
        except KafkaError:  # no producer id is available
            self._timers.schedule((_Due.ABORT, name), now.steady_ms + RETRY_MS)
            return CoordinatorResult()

    def _forget_unused(self, now: Now) -> Iterator[CoordinatorResult]:
        limit_ms = now.wall_ms - self._config.transactional_id_expiration_ms
        unused = [
            each.transactional_id
            for each in self._transactions.values()
            if each.state not in {State.ONGOING, *PREPARED} and each.last_update_ms <= limit_ms
        ]
        for start in range(0, len(unused), RECORDS_AT_ONCE):
            yield CoordinatorResult(records=[tombstone(name) for name in unused[start : start + RECORDS_AT_ONCE]])

    def unload(self, now: Now) -> CoordinatorResult:
        """The shard was moved away; it has no waiting requests."""
        return CoordinatorResult()

    # -- queries --------------------------------------------------------------------------------------------------------

    def describe(self, transactional_id: str) -> Transaction:
        """Raises KafkaError TRANSACTIONAL_ID_NOT_FOUND."""
        found = self._transactions.get(transactional_id)
        if found is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return found

    def matching(self, wanted: Callable[[Transaction], bool]) -> list[Transaction]:
        return [each for each in self._transactions.values() if wanted(each)]
