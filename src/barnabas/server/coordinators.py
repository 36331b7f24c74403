"""Where groups are coordinated: the leader of a group's partition of `__consumer_offsets` has the group.

Owns the way between leadership and the group coordinator: partitions are loaded when this broker begins to lead them and unloaded when it
stops; whoever asks for a coordinator is told the leader.

Rules
  1. A partition is read only when everything in its log is committed: what the last leader had acknowledged is in the log, but how far
     that goes a new leader learns from its followers. Until then its groups are COORDINATOR_LOAD_IN_PROGRESS.
  2. Each term of leadership loads anew: what was in memory in an earlier one may have been overtaken by another broker.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.cluster.instructions import ChangeReplica, DeleteLog, ForgetTopics, Instruction, StandDown
from barnabas.cluster.metadata import PartitionState
from barnabas.coordination.groups import GroupCoordinator
from barnabas.errors import ErrorCode, KafkaError
from barnabas.server.coordinator_log import PartitionedLog
from barnabas.server.faults import report_later

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from barnabas.server.broker import Broker
    from barnabas.server.requests import RequestContext

OFFSETS_TOPIC = "__consumer_offsets"
log = logging.getLogger(__name__)


class Coordinators:
    """The group coordinator of one broker, and where it stands."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._terms: dict[int, int] = {}  # leader epochs of the partitions that are here, in a cluster
        partitions = PartitionedLog(broker, OFFSETS_TOPIC, broker.config.offsets_topic_num_partitions)
        self.groups = GroupCoordinator(partitions, broker.config, broker.clock, self._prepare)

    def find(self, context: RequestContext, group_id: str) -> tuple[int, str, int] | None:
        """Id, host and port of a group's coordinator on the listener that the request came by; None while there is none."""
        broker = self._broker
        leader_id = broker.config.broker_id
        if broker.member is not None:
            state = broker.metadata.partition(OFFSETS_TOPIC, self.groups.partition_of(group_id))
            leader_id = -1 if state is None else state.leader
        leader = broker.metadata.brokers.get(leader_id)
        endpoint = None if leader is None else leader.endpoint(context.listener)
        return None if endpoint is None else (leader_id, endpoint.host, endpoint.port)

    async def load_all(self) -> None:
        """A broker alone leads every partition it has."""
        for index, partition in sorted(self._broker.partitions.topic(OFFSETS_TOPIC).items()):
            if not partition.is_offline:
                await self._load(index)

    async def _prepare(self) -> None:
        broker = self._broker
        if broker.member is None:
            await broker.controller.auto_create([OFFSETS_TOPIC])
            await self.load_all()
        elif OFFSETS_TOPIC not in broker.metadata.topics:  # in a cluster partitions are loaded when they are led
            (error,) = (await broker.controller.auto_create([OFFSETS_TOPIC])).values()
            if error is not None:
                log.warning("event=offsets-topic-not-made error=%r", str(error))
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    # In a cluster

    def resign(self, instructions: Sequence[Instruction]) -> None:
        """Leaderships are about to change. What ends is unloaded before its log is another's, so that nothing is read again from it."""
        for instruction in instructions:
            match instruction:
                case StandDown():
                    for index in list(self._terms):
                        self.unload(index)
                case ChangeReplica(topic, index, _, state) if topic == OFFSETS_TOPIC:
                    if not self._leads(state) or self._terms.get(index) != state.leader_epoch:
                        self.unload(index)
                case DeleteLog(topic, index) if topic == OFFSETS_TOPIC:
                    self.unload(index)
                case _:
                    pass

    def follow(self, instructions: Sequence[Instruction]) -> None:
        """Leaderships have changed, and the replicas know."""
        for instruction in instructions:
            match instruction:
                case ChangeReplica(topic, index, _, state) if topic == OFFSETS_TOPIC:
                    if self._leads(state) and index not in self._terms:
                        self._terms[index] = state.leader_epoch
                        self._later(self._load(index))
                case ForgetTopics(names):
                    self._later(self.groups.delete_topics(names))
                case _:
                    pass

    def _leads(self, state: PartitionState) -> bool:
        return state.leader == self._broker.config.broker_id

    def unload(self, index: int) -> None:
        """The groups of a partition are not here any more: whoever asks is sent away."""
        self._terms.pop(index, None)
        self.groups.unload(index)

    async def _load(self, index: int) -> None:
        try:
            await self.groups.load(index, lambda: self._all_committed(index))
        except OSError as error:
            partition = self._broker.partitions.require(OFFSETS_TOPIC, index)
            self._broker.faults.report_read(str(partition.log.directory), partition.log.log_start_offset, error)
        except KafkaError as error:
            log.info("event=groups-not-loaded partition=%d error=%s", index, error)
            self._terms.pop(index, None)

    async def _all_committed(self, index: int) -> None:
        partition = self._broker.partitions.require(OFFSETS_TOPIC, index)
        if not partition.is_leader:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        last = partition.log.log_end_offset - 1
        if last < 0 or partition.is_committed(last):
            return
        committed: asyncio.Future[KafkaError | None] = self._broker.loop.create_future()
        partition.wait_committed(last, lambda error: None if committed.done() else committed.set_result(error))
        error = await committed
        if error is not None:
            raise error

    def _later(self, work: Coroutine[None, None, None]) -> None:
        report_later(self._broker, asyncio.ensure_future(work))
