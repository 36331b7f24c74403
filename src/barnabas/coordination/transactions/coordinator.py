"""The transaction coordinator: handles requests about transactional ids.

It passes a request to the id's shard of `__transaction_state`; `runtime.py` writes the shard's records. Due markers go to the
`MarkerSender`, and its results go back to the shard.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Protocol

from barnabas.clock import Clock
from barnabas.coordination.hosted_shard import HostedShard, Phase
from barnabas.coordination.interfaces import CoordinatorLog
from barnabas.coordination.result import CoordinatorResult, Now
from barnabas.coordination.runtime import CoordinatorRuntime
from barnabas.coordination.transactions.data_types import EndCounts, Initialised, InitRequest, TransactionConfig
from barnabas.coordination.transactions.markers import Marker
from barnabas.coordination.transactions.transaction import Owner, TopicPartition, Transaction
from barnabas.coordination.transactions.transaction_shard import TransactionShard
from barnabas.errors import ErrorCode, InvariantViolated, KafkaError

Pending = Callable[[], Awaitable[Owner]]  # the caller calls it and awaits the result


class ProducerIds(Protocol):
    """A source of unused producer ids."""

    @property
    def has_one(self) -> bool:
        """Whether at least one is available, which is enough for one decision."""
        ...

    async def fill(self) -> None:
        """Fetch producer ids; raises KafkaError if that fails."""
        ...

    @property
    def least(self) -> int:
        """Records of promoted copies may have lower producer ids: no other owner of a transactional id begins with one."""
        ...

    def take(self) -> int:
        """An available producer id; raises KafkaError if there is none."""
        ...


class Delivery(Protocol):
    """A marker that is being written."""

    @property
    def is_wanted(self) -> bool:
        """Whether this broker still coordinates the transaction."""
        ...

    def written(self, partitions: Iterable[TopicPartition]) -> None:
        """The marker is committed in these partitions, or they were deleted."""
        ...


class MarkerSender(Protocol):
    def send(self, marker: Marker, coordinator_epoch: int, partitions: frozenset[TopicPartition], delivery: Delivery) -> None:
        """Write the marker to the leader of each partition; retry until each has it or the marker is not needed any more."""
        ...


class _Delivery:
    def __init__(self, coordinator: TransactionCoordinator, hosted: HostedShard[TransactionShard], marker: Marker) -> None:
        self._coordinator = coordinator
        self._hosted = hosted
        self._marker = marker

    @property
    def is_wanted(self) -> bool:
        return self._coordinator.runtime.is_hosted(self._hosted)

    def written(self, partitions: Iterable[TopicPartition]) -> None:
        if self.is_wanted:
            self._coordinator.receive_marked(self._hosted, self._marker, partitions)


class TransactionCoordinator:
    """The transactional ids of one broker.

    Args:
        epoch_of: the leader epoch of a partition of `__transaction_state`.
        prepare: creates the topic and loads the partitions that this broker leads; called before the first request if nothing
            is loaded.
        is_coming: see `CoordinatorRuntime`.
    """

    def __init__(
        self,
        log_: CoordinatorLog,
        config: TransactionConfig,
        clock: Clock,
        ids: ProducerIds,
        sender: MarkerSender,
        epoch_of: Callable[[int], int],
        prepare: Callable[[], Awaitable[None]] | None = None,
        is_coming: Callable[[int], bool] | None = None,
    ) -> None:
        self._config = config
        self._ids = ids
        self._sender = sender
        self._epoch_of = epoch_of
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}  # transactional id -> waiters for the end of its transaction
        self._following: deque[Callable[[], None]] = deque()
        self.counts = EndCounts()
        self.runtime: CoordinatorRuntime[TransactionShard] = CoordinatorRuntime(
            "transaction", log_, clock, self._make, config.request_timeout_ms, prepare, self._changed, is_coming=is_coming
        )

    def _make(self, partition: int, now: Now) -> TransactionShard:
        epoch = self._epoch_of(partition)
        ids = self._ids
        return TransactionShard(
            self._config, now, coordinator_epoch=epoch, take_id=ids.take, least_id=lambda: ids.least, counts=self.counts
        )

    async def load(self, partition: int, ready: Callable[[], Awaitable[None]] | None = None) -> None:
        """This broker became leader of `partition`: read it after `ready` has returned, then serve its transactional ids."""
        await self.runtime.load(partition, ready)

    def unload(self, partition: int) -> None:
        """Another broker leads `partition`."""
        self.runtime.unload(partition)
        self._release(name for name in self._waiting if self.partition_of(name) == partition)

    async def prepare(self) -> None:
        """Ensure that the topic exists and is loaded; concurrent calls share one attempt."""
        await self.runtime.prepare()

    def close(self) -> None:
        """Refuse all waiting requests and stop."""
        self._following.clear()
        self.runtime.close()
        self._release(self._waiting)

    def partition_of(self, transactional_id: str) -> int:
        return self.runtime.partition_of(transactional_id)

    # -- requests -------------------------------------------------------------------------------------------------------

    async def init(self, request: InitRequest) -> Initialised:
        """As `TransactionShard.init`; also raises CONCURRENT_TRANSACTIONS while an open transaction is being aborted."""
        await self.prepare()
        # fails early if another broker is the coordinator, before producer ids are fetched
        self.runtime.hosted_for(request.transactional_id)
        await self._ids.fill()
        found: Initialised | None = await self.runtime.write(
            request.transactional_id, lambda shard, now: shard.init(request, now)
        )
        if found is None:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        return found

    async def add(self, transactional_id: str, asking: Owner, partitions: Iterable[TopicPartition], client_version: int) -> None:
        """Like `TransactionShard.add`, but waits while the previous transaction is being ended.

        It waits at most `add.partitions.to.txn.retry.backoff.max.ms`, then raises CONCURRENT_TRANSACTIONS.
        """
        add = _adding(transactional_id, asking, partitions, client_version)
        try:
            await self.runtime.write(transactional_id, add)
        except KafkaError as error:
            if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS:
                raise
            await self._end_of(transactional_id)
            await self.runtime.write(transactional_id, add)

    def add_at_once(
        self, transactional_id: str, asking: Owner, partitions: Iterable[TopicPartition], client_version: int
    ) -> bool:
        """Like `TransactionShard.add`; False if the added partitions are not committed yet: then await `add`."""
        return self.runtime.write_at_once(transactional_id, _adding(transactional_id, asking, partitions, client_version))

    async def _end_of(self, transactional_id: str) -> None:
        """Wait until a transaction has ended, or until the time limit."""
        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        waiting = self._waiting.setdefault(transactional_id, [])
        waiting.append(ended)
        timer = loop.call_later(self._config.add_partitions_to_txn_retry_backoff_max_ms / 1000, _settle, ended)
        try:
            await ended
        finally:
            timer.cancel()
            waiting.remove(ended)
            if not waiting:
                self._waiting.pop(transactional_id, None)

    def _release(self, names: Iterable[str]) -> None:
        for name in names:
            for waiting in self._waiting.get(name, ()):
                _settle(waiting)

    async def verify(
        self, transactional_id: str, asking: Owner, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """As `TransactionShard.verify`."""
        return await self.runtime.read(transactional_id, lambda shard: shard.verify(transactional_id, asking, partitions))

    def verify_at_once(
        self, transactional_id: str, asking: Owner, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode] | None:
        """Like `TransactionShard.verify`; None if the answer depends on uncommitted records: then await `verify`."""
        return self.runtime.read_at_once(transactional_id, lambda shard: shard.verify(transactional_id, asking, partitions))

    def holds_at_once(self, transactional_id: str, asking: Owner, place: TopicPartition) -> bool:
        """Like `TransactionShard.holds`; also False if the coordinator is not here or the answer would have to wait."""
        try:
            hosted = self.runtime.hosted_for(transactional_id)
        except KafkaError:
            return False
        return not hosted.uncommitted and hosted.shard.holds(transactional_id, asking, place)

    def end(self, transactional_id: str, asking: Owner, *, commit: bool, client_version: int) -> Owner | Pending:
        """Like `TransactionShard.end`; returns an awaitable if it has to wait.

        If the result is immediate, the caller calls `follow_up` after the response, to write the markers.
        """

        def decide(shard: TransactionShard, now: Now) -> CoordinatorResult:
            return shard.end(transactional_id, asking, commit=commit, client_version=client_version, now=now)

        if not self._ids.has_one:
            return partial(self._end_with_ids, transactional_id, decide)
        decision = self.runtime.decide(transactional_id, decide)
        following: Owner = decision.response
        if decision.follow is not None:
            self._following.append(decision.follow)
        return following if decision.commit is None else partial(self._end_when, decision.commit, following)

    def follow_up(self) -> None:
        """Start writing the markers of decided ends."""
        while self._following:
            self._following.popleft()()

    async def _end_when(self, commit: asyncio.Future[None], following: Owner) -> Owner:
        await self.runtime.wait_for(commit)
        return following

    async def _end_with_ids(self, transactional_id: str, decide: Callable[[TransactionShard, Now], CoordinatorResult]) -> Owner:
        await self._ids.fill()
        following: Owner = await self.runtime.write(transactional_id, decide)
        return following

    async def describe(self, transactional_id: str) -> Transaction:
        """As `TransactionShard.describe`."""
        return await self.runtime.read(transactional_id, lambda shard: shard.describe(transactional_id))

    async def list_transactions(self, wanted: Callable[[Transaction], bool]) -> list[Transaction]:
        """The matching transactional ids of this coordinator; raises COORDINATOR_LOAD_IN_PROGRESS while a shard is loading."""
        hosted_shards = list(self.runtime)
        if any(hosted.phase is Phase.LOADING for hosted in hosted_shards):
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        found: list[Transaction] = []
        for hosted in hosted_shards:
            found += hosted.shard.matching(wanted)
            await asyncio.sleep(0)  # a shard may have many transactions, so let other tasks run
        for hosted in hosted_shards:
            await self.runtime.settled(hosted)
        return found

    # -- markers --------------------------------------------------------------------------------------------------------

    def _changed(self, hosted: HostedShard[TransactionShard]) -> None:
        self._release(hosted.shard.markers.take_ended())
        for marker, partitions in hosted.shard.markers.take_fresh():
            self._sender.send(marker, hosted.shard.coordinator_epoch, partitions, _Delivery(self, hosted, marker))

    def receive_marked(self, hosted: HostedShard[TransactionShard], marker: Marker, partitions: Iterable[TopicPartition]) -> None:
        """A marker is committed in these partitions, or they were deleted."""
        try:
            outcome = self.runtime.ask(hosted, lambda: hosted.shard.receive_marked(marker, partitions, self.runtime.now()))
        except InvariantViolated:
            return  # the error is logged, and the shard is removed
        self.runtime.carry_out_quietly(hosted, outcome)

    def delete_topics(self, names: Iterable[str]) -> None:
        """Topics were deleted: they need no markers."""
        for hosted in self.runtime:
            with suppress(InvariantViolated):  # the error is logged, and the shard is removed
                for name in names:
                    outcome = self.runtime.ask(hosted, partial(hosted.shard.delete_topic, name, self.runtime.now()))
                    self.runtime.carry_out_quietly(hosted, outcome)


def _adding(
    transactional_id: str, asking: Owner, partitions: Iterable[TopicPartition], client_version: int
) -> Callable[[TransactionShard, Now], CoordinatorResult]:
    return lambda shard, now: shard.add(transactional_id, asking, partitions, client_version, now)


def _settle(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
