"""A transaction shard with its log beside it, and partitions that take markers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count

from barnabas.coordination.result import CoordinatorResult, Written
from barnabas.coordination.transactions.data_types import EndCounts, Initialised, InitRequest
from barnabas.coordination.transactions.markers import Marker
from barnabas.coordination.transactions.transaction import NOBODY, Owner, TopicPartition, Transaction
from barnabas.coordination.transactions.transaction_shard import TransactionShard
from barnabas.coordination.version_prefix import Record
from barnabas.errors import ErrorCode, KafkaError
from tests.coordination.support import ManualClock

A, B, C = ("a", 0), ("b", 0), ("b", 1)
TIMEOUT_MS = 60_000


@dataclass
class Config:
    """Kafka's defaults, but that two-phase commit is allowed."""

    add_partitions_to_txn_retry_backoff_max_ms: int = 100
    transaction_max_timeout_ms: int = 900_000
    request_timeout_ms: int = 30_000
    transaction_two_phase_commit_enable: bool = True
    transactional_id_expiration_ms: int = 604_800_000
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000


class Driver:
    """Carries out what a shard wants, one record after the other. With `hold`, nothing is committed until `commit`."""

    def __init__(self, config: Config | None = None) -> None:
        self.config = config or Config()
        self.clock = ManualClock()
        self.log: list[Record] = []
        self.marked: list[tuple[TopicPartition, Marker]] = []
        self.refuse: ErrorCode | None = None
        self.hold = False
        self.counts = EndCounts()
        self._held: list[CoordinatorResult] = []
        self._ids = count(1000)
        self.least_id = 0
        self.coordinator_epoch = 0
        self.load()

    def load(self) -> None:
        """Another broker becomes the coordinator: all it knows is the log."""
        self._held.clear()
        self.shard = TransactionShard(
            self.config,
            self.clock.now(),
            coordinator_epoch=self.coordinator_epoch,
            take_id=lambda: next(self._ids),
            least_id=lambda: self.least_id,
            counts=self.counts,
        )
        self.coordinator_epoch += 1
        for record in self.log:
            self.shard.replay(record)
        for outcome in self.shard.receive_loaded(self.clock.now()):
            self.carry_out(outcome)

    def replayed(self) -> dict[str, Transaction]:
        """The state that another coordinator would read from the log now."""
        shard = TransactionShard(self.config, self.clock.now(), coordinator_epoch=0, take_id=lambda: -7)
        for record in self.log:
            shard.replay(record)
        return dict(shard.transactions)

    def carry_out(self, outcome: CoordinatorResult) -> object:
        if outcome.records:
            if self.refuse is not None:
                if outcome.written is not None:
                    self._tell(outcome.written, self.refuse)
                raise KafkaError(self.refuse)
            self.log += outcome.records
            for record in outcome.records:
                self.shard.replay(record)
        if outcome.written is not None:
            if self.hold:
                self._held.append(outcome)
            else:
                self._tell(outcome.written, None)
        return outcome.response

    def _tell(self, event: Written, error: ErrorCode | None) -> None:
        following = self.shard.receive_written(event, error, self.clock.now())
        if following is not None:
            self.carry_out(following)

    def commit(self) -> None:
        self.hold = False
        held, self._held = self._held, []
        for outcome in held:
            assert outcome.written is not None
            self._tell(outcome.written, None)

    # -- requests; a refusal returns its error code ---------------------------------------------------------------------

    def init(
        self,
        name: str = "t",
        expected: Owner = NOBODY,
        timeout_ms: int = TIMEOUT_MS,
        *,
        two_phase: bool = False,
        keep: bool = False,
    ) -> Initialised | ErrorCode:
        try:
            found = self.carry_out(self.shard.init(InitRequest(name, timeout_ms, expected, two_phase, keep), self.clock.now()))
        except KafkaError as error:
            return error.code
        assert found is None or isinstance(found, Initialised)
        return ErrorCode.CONCURRENT_TRANSACTIONS if found is None else found

    def owner(self, name: str = "t", expected: Owner = NOBODY, **options: bool) -> Owner:
        found = self.init(name, expected, **options)
        assert isinstance(found, Initialised), found
        return found.owner

    def add(self, asking: Owner, *partitions: TopicPartition, name: str = "t", version: int = 2) -> ErrorCode:
        try:
            self.carry_out(self.shard.add(name, asking, partitions, version, self.clock.now()))
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    def end(self, asking: Owner, *, commit: bool = True, name: str = "t", version: int = 2) -> Owner | ErrorCode:
        try:
            found = self.carry_out(self.shard.end(name, asking, commit=commit, client_version=version, now=self.clock.now()))
        except KafkaError as error:
            return error.code
        assert isinstance(found, Owner)
        return found

    def write_markers(self, only: Sequence[TopicPartition] | None = None) -> None:
        """The leaders of the partitions take their markers, and say so."""
        for marker, partitions in list(self.shard.markers):
            chosen = [each for each in sorted(partitions) if only is None or each in only]
            self.marked += [(each, marker) for each in chosen]
            self.told(marker, chosen)

    def told(self, marker: Marker, partitions: Iterable[TopicPartition]) -> None:
        self.carry_out(self.shard.receive_marked(marker, partitions, self.clock.now()))

    def pass_time(self, passed_ms: int) -> None:
        now = self.clock.advance(passed_ms)
        if self.shard.next_deadline_ms() <= now.steady_ms:
            for outcome in self.shard.expire(now):
                try:
                    self.carry_out(outcome)
                except KafkaError as error:
                    if error.code is not self.refuse:
                        raise

    def state(self, name: str = "t") -> str:
        return self.shard.describe(name).state.title

    def markers_of(self, partition: TopicPartition) -> list[tuple[Owner, bool]]:
        """Producer id and epoch of each marker in a partition, and whether it commits."""
        return [(Owner(m.producer_id, m.producer_epoch), m.commit) for where, m in self.marked if where == partition]
