"""The coordinators of groups and transactions: the leader of a partition of `__consumer_offsets` or `__transaction_state` is one.

Owns the connection between leadership and the coordinators. A partition is loaded when this broker begins to lead it, and unloaded when
the leadership ends. A client that asks for a coordinator gets the leader.

Rules
  1. The broker reads a partition only when all records in its log are committed. The log contains all records that the last leader
     acknowledged, but a new leader learns the committed offset from its followers. Until then the answer is COORDINATOR_LOAD_IN_PROGRESS.
  2. Each term of leadership loads the partition again, because another broker may have changed the state since an earlier term.
  3. Clients learn only confirmed leaders (`cluster/leadership_confirmation.py`). If the metadata names this broker as leader and its
     replica does not know yet, the answer is COORDINATOR_LOAD_IN_PROGRESS too. So the client stays with the right broker.
  4. A single broker serves while it loads, and answers COORDINATOR_LOAD_IN_PROGRESS for partitions that it has not read yet. Producers and
     consumers without groups do not wait for the load. The start waits for `LOADED_FIRST_S` seconds, in which most brokers have read
     everything.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from barnabas.cluster.metadata.image import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, PartitionState
from barnabas.cluster.planning.instructions import ChangeReplica, CreateLog, DeleteLog, ForgetTopics, Instruction, StandDown
from barnabas.coordination.group_coordinator import GroupCoordinator
from barnabas.coordination.transactions.coordinator import TransactionCoordinator
from barnabas.errors import ErrorCode, KafkaError
from barnabas.server.cluster.leadership_confirmation import LeadershipConfirmation
from barnabas.server.coordinator_log import PartitionedLog
from barnabas.server.current_leader import current_leader
from barnabas.server.group_topics import BrokerTopics
from barnabas.server.services import report_later
from barnabas.server.transactions.marker_sender import MarkerSender
from barnabas.server.transactions.producer_id_block import ProducerIdBlock

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from barnabas.server.pinned_regions import PinnedFiles
    from barnabas.server.requests import RequestContext
    from barnabas.server.services import Services

TopicPartition = tuple[str, int]
logger = logging.getLogger(__name__)
LOADED_FIRST_S = 0.2  # of the start; enough for tens of thousands of records


class Coordinators:
    """The coordinators of one broker, and the leaders of their partitions."""

    def __init__(self, services: Services, pinned_files: PinnedFiles) -> None:
        self._services = services
        self._terms: dict[TopicPartition, int] = {}  # in a cluster: leader epochs of the partitions that are coordinated here
        self._begun: dict[TopicPartition, int] = {}  # leader epochs for which a load has begun, even if it failed
        self._leadership_confirmation = LeadershipConfirmation(services)
        self._loading: asyncio.Task[None] | None = None
        config, clock = services.config, services.clock
        offsets = PartitionedLog(services, pinned_files, OFFSETS_TOPIC, config.offsets_topic_num_partitions)
        self.groups = GroupCoordinator(
            offsets,
            config,
            clock,
            BrokerTopics(services),
            lambda: self._prepare(OFFSETS_TOPIC),
            lambda index: self._is_coming(OFFSETS_TOPIC, index),
        )
        self.markers = MarkerSender(services, self.groups)
        self.transactions = TransactionCoordinator(
            PartitionedLog(services, pinned_files, TRANSACTIONS_TOPIC, config.transaction_state_log_num_partitions),
            config,
            clock,
            ProducerIdBlock(lambda: services.controller.next_producer_id(), lambda: services.metadata.producer_id_end),
            self.markers,
            self._epoch_of,
            lambda: self._prepare(TRANSACTIONS_TOPIC),
            lambda index: self._is_coming(TRANSACTIONS_TOPIC, index),
        )
        self._by_topic: dict[str, GroupCoordinator | TransactionCoordinator] = {
            OFFSETS_TOPIC: self.groups,
            TRANSACTIONS_TOPIC: self.transactions,
        }

    async def close(self) -> None:
        """Unload all coordinators."""
        if self._loading is not None and not self._loading.done():
            self._loading.cancel()
            await asyncio.wait((self._loading,))
        self.groups.close()
        self.transactions.close()
        await self.markers.close()
        await self._leadership_confirmation.close()

    async def find(
        self, context: RequestContext, names: Sequence[str], topic: str = OFFSETS_TOPIC
    ) -> list[tuple[int, str, int] | None]:
        """The id, host and port of each name's coordinator, on the listener of the request; None while its partition has no confirmed
        leader.
        """
        if self._services.member is not None:
            await self._leadership_confirmation.wait(topic, map(self._by_topic[topic].partition_of, names))
        return [self._found(context, name, topic) for name in names]

    def _found(self, context: RequestContext, name: str, topic: str) -> tuple[int, str, int] | None:
        leader_id = self._leader_of(topic, name)
        if self._services.member is not None and not self._leadership_confirmation.leads(
            topic, self._by_topic[topic].partition_of(name)
        ):
            return None
        leader = None if leader_id is None else self._services.metadata.brokers.get(leader_id)
        endpoint = None if leader is None else leader.endpoint(context.listener)
        return None if endpoint is None or leader_id is None else (leader_id, endpoint.host, endpoint.port)

    def leader_of_group(self, group_id: str) -> int | None:
        """The broker that coordinates a group; None while no broker does."""
        return self._leader_of(OFFSETS_TOPIC, group_id)

    def leader_of_transaction(self, transactional_id: str) -> int | None:
        """The broker that coordinates a transactional id; None while no broker does."""
        return self._leader_of(TRANSACTIONS_TOPIC, transactional_id)

    def _leader_of(self, topic: str, name: str) -> int | None:
        services = self._services
        if services.member is None:
            return services.config.broker_id
        leader = current_leader(services, topic, self._by_topic[topic].partition_of(name))
        return None if leader is None else leader[0]

    def _is_coming(self, topic: str, index: int) -> bool:
        """Whether this broker will coordinate a partition as soon as its replica knows that it leads."""
        services = self._services
        state = None if services.member is None or services.member.is_down else services.metadata.partition(topic, index)
        return state is not None and self._leads(state) and self._begun.get((topic, index)) != state.leader_epoch

    def _epoch_of(self, index: int) -> int:
        state = self._services.metadata.partition(TRANSACTIONS_TOPIC, index)
        return 0 if state is None else state.leader_epoch

    # Without a cluster: this broker leads all its partitions

    async def start(self) -> None:
        """Load all partitions of this broker. A load that takes longer than a moment continues while the broker serves."""
        loading = self._loading = asyncio.ensure_future(self._load_all())
        await asyncio.wait((loading,), timeout=LOADED_FIRST_S)
        if loading.done():
            loading.result()
            return
        logger.info("event=coordinators-loading note='groups and transactions are served as they are read'")
        report_later(self._services.faults, loading)

    async def _load_all(self) -> None:
        await asyncio.gather(*map(self._load_topic, self._by_topic))

    def unload_deleted(self, instructions: Sequence[Instruction]) -> None:
        """Unload the groups and transactions of logs that will be deleted. A client then looks for the coordinator again, and `_prepare`
        creates the topic again.
        """
        for each in instructions:
            if isinstance(each, DeleteLog):
                self.unload(each.topic, each.partition)

    async def load_made(self, instructions: Sequence[Instruction]) -> None:
        """Load logs that were created, by a coordinator or because a user gave the topic more partitions."""
        for each in instructions:
            if isinstance(each, CreateLog) and each.topic in self._by_topic:
                loading = self._load(each.topic, each.partition)
                if self._loading is None or self._loading.done():
                    await loading
                else:  # this partition comes after those that the start still loads; no command waits for it
                    self._later(loading)

    async def load_late(self, wanted: Sequence[CreateLog]) -> None:
        """Load logs that could not be created earlier for lack of room, of partitions that this broker leads, also in a cluster."""
        for each in wanted:
            here = each.topic, each.partition
            partition = self._services.partitions.get(*here)
            if each.topic not in self._by_topic or here in self._terms or partition is None or partition.is_offline:
                continue
            if partition.is_leader:
                term = None if self._services.member is None else partition.leader_epoch
                if term is not None:
                    self._terms[here] = term
                await self._load(*here, term)

    async def _load_topic(self, topic: str) -> None:
        """Mark all partitions as led here at once, though they load one after the other."""
        here = sorted(self._services.partitions.topic(topic).items())
        await asyncio.gather(*(self._load(topic, index) for index, partition in here if not partition.is_offline))

    async def _prepare(self, topic: str) -> None:
        services = self._services
        if services.member is None:
            await services.controller.auto_create([topic])
            await self._load_topic(topic)
        elif topic not in services.metadata.topics:  # in a cluster, a partition is loaded when this broker becomes its leader
            (error,) = (await services.controller.auto_create([topic])).values()
            if error is not None:
                logger.warning("event=internal-topic-not-made topic=%s error=%r", topic, str(error))
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    # In a cluster

    def resign(self, instructions: Sequence[Instruction]) -> None:
        """Before leaderships change, unload the partitions that this broker will not lead any more. Other brokers own their logs then, so
        nothing may read from them again.
        """
        for instruction in instructions:
            match instruction:
                case StandDown():
                    self._begun.clear()
                    for topic, index in list(self._terms):
                        self.unload(topic, index)
                case ChangeReplica(topic, index, _, state) if topic in self._by_topic:
                    if not self._leads(state) or self._terms.get((topic, index)) != state.leader_epoch:
                        self.unload(topic, index)
                case DeleteLog(topic, index) if topic in self._by_topic:
                    self._begun.pop((topic, index), None)
                    self.unload(topic, index)
                case _:
                    pass

    def follow(self, instructions: Sequence[Instruction]) -> None:
        """After leaderships have changed, and the replicas know it, load the partitions that this broker leads."""
        for instruction in instructions:
            match instruction:
                case ChangeReplica(topic, index, _, state) if topic in self._by_topic:
                    if self._leads(state) and (topic, index) not in self._terms:
                        self._terms[topic, index] = state.leader_epoch
                        self._later(self._load(topic, index, state.leader_epoch))
                case ForgetTopics(names):
                    self._later(self.delete_topics(names))
                case _:
                    pass

    def _leads(self, state: PartitionState) -> bool:
        return state.leader == self._services.config.broker_id

    def unload(self, topic: str, index: int) -> None:
        """Stop coordinating the groups or transactions of a partition, if this broker does. Their clients look for another coordinator."""
        self._terms.pop((topic, index), None)
        if topic in self._by_topic:
            self._by_topic[topic].unload(index)

    async def delete_topics(self, names: Iterable[str]) -> None:
        """Remove the offsets of deleted topics, and the markers that are still to be written to these topics."""
        gone = sorted(names)
        self.transactions.delete_topics(gone)
        await self.groups.delete_topics(gone)

    async def _load(self, topic: str, index: int, term: int | None = None) -> None:
        """Load a partition. In a cluster, a failure ends this term, but not a later term that has begun in the meantime."""
        if term is not None:
            self._begun[topic, index] = term
        try:
            await self._by_topic[topic].load(index, lambda: self._all_committed(topic, index))
        except OSError as error:
            partition = self._services.partitions.require(topic, index)
            self._services.faults.report_read(str(partition.log.directory), partition.log.log_start_offset, error)
        except KafkaError as error:
            logger.info("event=coordinator-not-loaded topic=%s partition=%d error=%r", topic, index, str(error))
        else:
            return
        if term is not None and self._terms.get((topic, index)) == term:
            del self._terms[topic, index]  # the next role that this broker gets loads it again

    async def _all_committed(self, topic: str, index: int) -> None:
        partition = self._services.partitions.require(topic, index)
        if not partition.is_leader:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        last = partition.log.log_end_offset - 1
        if last < 0 or partition.is_committed(last):
            return
        committed: asyncio.Future[KafkaError | None] = self._services.loop.create_future()
        partition.wait_committed(last, lambda error: None if committed.done() else committed.set_result(error))
        error = await committed
        if error is not None:
            raise error

    def _later(self, work: Coroutine[None, None, None]) -> None:
        report_later(self._services.faults, asyncio.ensure_future(work))
