"""The link of this broker's leaders to the cluster: which replicas may be in sync, the last fetch of each broker, changes for the
controller.

AlterPartition sends all waiting changes in one request, one request at a time. Some partitions do not wait for their change any more (the
metadata came first, or they do not lead now). Such a change is not sent, and its answer does not count.

The meaning of the controller's refusals (KIP-497):
    INELIGIBLE_REPLICA, OPERATION_NOT_ATTEMPTED    the change was not made and will not be; it may be proposed again
    FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION, NEW_LEADER_ELECTED, unknown topics or partitions, INVALID_REQUEST
                                                   the next metadata has the result; until then the change stays under way
    all other errors, and no answer                sent again: the change may have been made, and a second time does no harm

A leader takes a smaller in-sync set from the metadata, not from the answer, and uses the larger set until then. Otherwise the answer could
come before a raised min.insync.replicas, by which the controller adds removed replicas to the eligible ones (KIP-966).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from itertools import groupby
from typing import TYPE_CHECKING

from barnabas.client.errors import ClientError
from barnabas.cluster.metadata.store_entries import chunk_of
from barnabas.errors import ErrorCode
from barnabas.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
)
from barnabas.replication.in_sync import IsrChange
from barnabas.server.cluster.peers import peers_of

if TYPE_CHECKING:
    from uuid import UUID

    from barnabas.replication.leader_partition import LeaderPartition
    from barnabas.server.services import Services

logger = logging.getLogger(__name__)
RETRY_MS = 50.0  # Kafka's value
RETRY_MAX_MS = 1_000.0
# chunks of partition states that one request may change: 10 to 25 kB each, and a commit takes 1 MB
MAX_CHUNKS_PER_REQUEST = 32
REFUSED = frozenset({ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED})
OVERTAKEN = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.NEW_LEADER_ELECTED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
Asked = dict["LeaderPartition", IsrChange]


class IsrChanges:
    """The `Cluster` of a broker's partitions."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._peers = peers_of(lambda: services.metadata, services, "alter-partition")
        self._waiting: Asked = {}
        self._heard: dict[int, int] = {}
        self._task: asyncio.Task[None] | None = None
        self.shrinks = 0
        self.expands = 0
        self.failed_updates = 0

    # --- Cluster

    @property
    def lag_max_ms(self) -> int:
        return self._services.config.replica_lag_time_max_ms

    @property
    def heard(self) -> Mapping[int, int]:
        return self._heard

    def now_ms(self) -> int:
        """Milliseconds of a clock that never goes back."""
        return int(self._services.clock.monotonic_ms())

    def heard_of(self, broker_id: int) -> None:
        """Note that a broker has sent a fetch."""
        self._heard[broker_id] = self.now_ms()

    def may_join(self, replica_id: int, broker_epoch: int, topic_id: UUID, partition: int) -> bool:
        registered = self._services.metadata.brokers.get(replica_id)
        if registered is None or not registered.is_active or broker_epoch != registered.epoch:
            return False
        return not registered.offline or partition not in registered.offline.get(topic_id, ())

    def in_sync_changed(self, before: frozenset[int], after: frozenset[int]) -> None:
        self.shrinks += not before <= after
        self.expands += not after <= before

    def propose(self, partition: LeaderPartition, change: IsrChange) -> None:
        self._waiting[partition] = change
        if self._task is None:
            self._task = self._services.loop.create_task(self._run(), name="alter-partition")

    # --- sending

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._peers.close()

    async def _run(self) -> None:
        """Send until no change waits."""
        pause_ms = RETRY_MS
        try:
            while True:
                await asyncio.sleep(0)  # the same request takes all changes proposed in this turn of the loop
                asked = self._next_asked()
                if not asked:
                    return
                left = await self._send(asked)
                if not left:
                    pause_ms = RETRY_MS
                    continue
                for partition, change in left.items():
                    self._waiting.setdefault(partition, change)
                await asyncio.sleep(pause_ms / 1000)
                pause_ms = min(pause_ms * 2, RETRY_MAX_MS)
        finally:
            self._task = None

    def _next_asked(self) -> Asked:
        """As many of the waiting changes as the controller can write in one commit, without those whose outcome is known already."""
        asked: Asked = {}
        chunks: set[tuple[UUID, int]] = set()
        for partition, change in list(self._waiting.items()):
            chunk = partition.topic_id, chunk_of(partition.index)
            if len(chunks) == MAX_CHUNKS_PER_REQUEST and chunk not in chunks:
                continue
            del self._waiting[partition]
            if partition.is_proposing(change):
                asked[partition] = change
                chunks.add(chunk)
        return asked

    async def _send(self, asked: Asked) -> Asked:
        """Ask the controller. Returns the changes that must be sent again."""
        image = self._services.metadata
        registered = image.brokers.get(self._services.config.broker_id)
        if registered is None or image.controller_id < 0:
            return asked
        request = AlterPartitionRequest(broker_id=registered.broker_id, broker_epoch=registered.epoch, topics=_topics(asked))
        try:
            answer = await self._peers.send(image.controller_id, request)
        except ClientError as error:
            logger.info(
                "event=in-sync-changes-not-sent controller=%d count=%d error=%r", image.controller_id, len(asked), str(error)
            )
            return asked
        except Exception:  # a fault of the broker must not end the sending
            logger.exception("event=in-sync-changes-not-sent controller=%d", image.controller_id)
            return asked
        if answer.error_code:
            logger.info(
                "event=in-sync-changes-refused controller=%d error_code=%s",
                image.controller_id,
                ErrorCode(answer.error_code).name,
            )
            return asked
        return self._take(asked, answer)

    def _take(self, asked: Asked, answer: AlterPartitionResponse) -> Asked:
        told = {(topic.topic_id, data.partition_index): data for topic in answer.topics for data in topic.partitions}
        left = {}
        for partition, change in asked.items():
            data = told.get((partition.topic_id, partition.index))
            if partition.is_proposing(change) and (data is None or not self._settle(partition, change, data)):
                left[partition] = change
        return left

    def _settle(self, partition: LeaderPartition, change: IsrChange, data: ResponsePartitionData) -> bool:
        """Handle the answer for one change. Returns whether the change is settled."""
        code = ErrorCode(data.error_code)
        if code is ErrorCode.NONE:
            if partition.is_within_isr(data.isr):
                partition.settle_isr(data.isr, leader_epoch=data.leader_epoch, partition_epoch=data.partition_epoch)
            logger.info(
                "event=in-sync-replicas-changed topic=%s partition=%d isr=%s leader_epoch=%d partition_epoch=%d",
                partition.topic, partition.index, ",".join(map(str, sorted(data.isr))), data.leader_epoch, data.partition_epoch,
            )  # fmt: skip
            return True
        self.failed_updates += 1
        logger.info(
            "event=in-sync-change-refused topic=%s partition=%d error_code=%s", partition.topic, partition.index, code.name
        )
        if code in REFUSED:
            partition.isr_refused(change)
        return code in REFUSED or code in OVERTAKEN


def _topics(asked: Asked) -> list[RequestTopicData]:
    pairs = sorted(asked.items(), key=lambda pair: (pair[0].topic_id.bytes, pair[0].index))
    return [
        RequestTopicData(topic_id=topic_id, partitions=[_partition(partition, change) for partition, change in group])
        for topic_id, group in groupby(pairs, key=lambda pair: pair[0].topic_id)
    ]


def _partition(partition: LeaderPartition, change: IsrChange) -> RequestPartitionData:
    return RequestPartitionData(
        partition_index=partition.index,
        leader_epoch=change.leader_epoch,
        new_isr=[member.replica_id for member in change.members],
        new_isr_with_epochs=[
            BrokerState(broker_id=member.replica_id, broker_epoch=member.broker_epoch) for member in change.members
        ],
        partition_epoch=change.partition_epoch,
    )
