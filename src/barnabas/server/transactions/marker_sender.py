"""Writes markers to the partitions that this broker leads, and sends the others to their leaders.

Rules
  1. A marker is written until it succeeds: after a failure it is tried again, after a growing pause, as long as the coordinator wants it.
  2. A deleted partition counts as done. So does one whose producer has a newer epoch, because its transaction was ended.
  3. Markers for another broker are sent together with those of other transactions (`marker_channel.py`).
  4. A marker for `__consumer_offsets` goes through the group coordinator, which must settle pending offsets.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from barnabas.cluster.metadata.image import OFFSETS_TOPIC
from barnabas.coordination.hosted_shard import shielded
from barnabas.coordination.interfaces import EndMarker
from barnabas.coordination.result import Producer
from barnabas.errors import ErrorCode, InvariantViolated, KafkaError
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.protocol.values import NO_LEADER
from barnabas.server.cluster.peers import ClientError, Peers, peers_of
from barnabas.server.coordinator_log import AppendServices, append_marker
from barnabas.server.transactions.marker_channel import MarkerChannel

if TYPE_CHECKING:
    from barnabas.clock import Clock
    from barnabas.coordination.group_coordinator import GroupCoordinator
    from barnabas.coordination.transactions.coordinator import Delivery
    from barnabas.coordination.transactions.markers import Marker
    from barnabas.replication.hosted_partitions import HostedPartitions
    from barnabas.server.services import Services

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 1.0
DONE = (ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_EPOCH)
logger = logging.getLogger(__name__)
TopicPartition = tuple[str, int]


class MarkerServices(AppendServices, Protocol):
    """The parts of the broker that are needed to write a marker."""

    clock: Clock
    partitions: HostedPartitions


def begin_marker(
    services: MarkerServices, groups: GroupCoordinator, topic: str, index: int, marker: EndMarker
) -> ErrorCode | asyncio.Future[None]:
    """Write the end of a transaction to a partition that this broker leads. Returns an error code, or a future if the end is not committed
    at once.
    """
    try:
        if topic == OFFSETS_TOPIC:
            commit = groups.end_transaction(index, marker)
        else:
            partition = services.partitions.get(topic, index)
            if partition is None:
                return services.partitions.absence(topic, index)
            if not partition.is_leader:
                return partition.refusal
            commit = append_marker(services, partition, marker, services.clock.now_ms())
    except KafkaError as error:
        return _refused(error)
    except InvariantViolated:  # the group coordinator has logged it, and loads the groups again
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return ErrorCode.NONE if commit is None else commit


async def marked(begun: ErrorCode | asyncio.Future[None]) -> ErrorCode:
    """The result of a marker from `begin_marker`, once it is committed."""
    if isinstance(begun, ErrorCode):
        return begun
    try:
        await shielded(begun)
    except KafkaError as error:
        return _refused(error)
    return ErrorCode.NONE


def _refused(error: KafkaError) -> ErrorCode:
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if error.code is ErrorCode.NOT_COORDINATOR else error.code


class _Begun(NamedTuple):
    """One attempt to write a marker to the partitions that this broker leads."""

    codes: dict[TopicPartition, ErrorCode]
    uncommitted: dict[TopicPartition, asyncio.Future[None]]
    elsewhere: dict[int, list[TopicPartition]]  # leader id -> partitions whose marker it must write

    def is_done(self, partitions: frozenset[TopicPartition]) -> bool:
        """Whether the marker is written in all `partitions`."""
        return self.codes.keys() == partitions and all(code in DONE for code in self.codes.values())


class MarkerSender:
    """The `MarkerSender` of the coordinator."""

    def __init__(self, services: Services, groups: GroupCoordinator) -> None:
        self._services = services
        self._groups = groups
        self._tasks: set[asyncio.Task[None]] = set()
        self._peers: Peers | None = None
        self._channel = MarkerChannel(self._request)

    def send(self, marker: Marker, coordinator_epoch: int, partitions: frozenset[TopicPartition], delivery: Delivery) -> None:
        """Write a marker to partitions led here before the return, and tell `delivery` at once if these are all; a task does the rest."""
        end = EndMarker(
            Producer(marker.producer_id, marker.producer_epoch), marker.commit, coordinator_epoch, marker.client_version
        )
        begun = self._begin(end, partitions)
        if begun.is_done(partitions):
            delivery.written(begun.codes)
            return
        task = self._services.loop.create_task(self._deliver(end, begun, set(partitions), delivery))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Stop. Markers that are not written remain for the next start."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._channel.close()
        if self._peers is not None:
            await self._peers.close()

    async def _deliver(self, end: EndMarker, begun: _Begun, left: set[TopicPartition], delivery: Delivery) -> None:
        pause_s = FIRST_PAUSE_S
        while True:
            codes = await self._finish(end, begun)
            if ErrorCode.TRANSACTION_COORDINATOR_FENCED in codes.values():
                logger.info("event=transaction-marker-fenced producer=%d", end.producer.producer_id)
                return  # another coordinator owns the transaction
            done = {each for each, code in codes.items() if code in DONE}
            delivery.written(done)
            left -= done
            if left:
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            if not left or not delivery.is_wanted:
                return
            begun = self._begin(end, left)

    def _begin(self, end: EndMarker, partitions: Iterable[TopicPartition]) -> _Begun:
        begun = _Begun({}, {}, {})
        metadata = self._services.metadata
        for place in sorted(partitions):
            state = metadata.partition(*place)
            if state is None:
                begun.codes[place] = ErrorCode.NONE  # the partition was deleted
            elif state.leader == self._services.config.broker_id:
                written = begin_marker(self._services, self._groups, *place, end)
                if isinstance(written, ErrorCode):
                    begun.codes[place] = written
                else:
                    begun.uncommitted[place] = written
            elif state.leader != NO_LEADER:
                begun.elsewhere.setdefault(state.leader, []).append(place)
        return begun

    async def _finish(self, end: EndMarker, begun: _Begun) -> dict[TopicPartition, ErrorCode]:
        """The result of the attempt in each partition that has a leader."""
        codes = begun.codes
        for told in await asyncio.gather(*(self._write_elsewhere(*each, end) for each in begun.elsewhere.items())):
            codes.update(told)
        for place, commit in begun.uncommitted.items():
            codes[place] = await marked(commit)
        return codes

    async def _write_elsewhere(
        self, leader: int, partitions: list[TopicPartition], end: EndMarker
    ) -> dict[TopicPartition, ErrorCode]:
        topics: dict[str, list[int]] = {}
        for topic, index in partitions:
            topics.setdefault(topic, []).append(index)
        marker = WritableTxnMarker(
            producer_id=end.producer.producer_id,
            producer_epoch=end.producer.epoch,
            transaction_result=end.commit,
            coordinator_epoch=end.coordinator_epoch,
            transaction_version=end.transaction_version,
            topics=[WritableTxnMarkerTopic(name=name, partition_indexes=indexes) for name, indexes in topics.items()],
        )
        try:
            told = await self._channel.deliver(leader, marker)
        except ClientError as error:
            logger.info("event=transaction-marker-not-sent broker=%d error=%r", leader, str(error))
            return {}
        return {
            (topic.name, each.partition_index): ErrorCode(each.error_code) for topic in told.topics for each in topic.partitions
        }

    async def _request(self, leader: int, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        if self._peers is None:
            self._peers = peers_of(lambda: self._services.metadata, self._services, "transactions")
        response: WriteTxnMarkersResponse = await self._peers.send(leader, request)
        return response
