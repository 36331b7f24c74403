"""Asks brokers whether they already lead what the metadata says, before it sends clients to them as coordinators.

A broker learns from the store that it leads, a moment before or after the other brokers. A client that comes before that gets
NOT_COORDINATOR, and some clients try again three times without a pause. So this broker first asks the leader with the request that
followers use (OffsetForLeaderEpoch). The leader answers when its replica leads in the epoch that the metadata has here.

Rules
  1. This broker asks a leader once for each partition and leader epoch. A confirmation is valid as long as the metadata has that epoch.
  2. No client waits longer than `WAIT_S` seconds. Requests that wait for the same partition share one question.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.cluster.metadata.image import PartitionState
from barnabas.errors import ErrorCode
from barnabas.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.protocol.values import NO_LEADER
from barnabas.server.cluster.peers import ClientError, Peers, peers_of
from barnabas.server.services import report_later

if TYPE_CHECKING:
    from barnabas.server.services import Services

WAIT_S = 1.0  # as for a topic that is being created, see `cluster/membership/auto_topic_creation.py`
PAUSE_S = 0.02
Term = tuple[str, int, int]  # topic, partition, leader epoch


class LeadershipConfirmation:
    """The confirmed leaders that one broker knows."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._peers: Peers | None = None
        self._confirmed: dict[tuple[str, int], int] = {}  # leader epochs
        self._asking: dict[Term, asyncio.Task[None]] = {}

    def leads(self, topic: str, index: int) -> bool:
        """Whether the partition has a leader that is confirmed."""
        state = self._services.metadata.partition(topic, index)
        return state is not None and state.leader != NO_LEADER and self._is_known(topic, index, state)

    async def wait(self, topic: str, indexes: Iterable[int]) -> None:
        """Wait until the leaders are confirmed, or for `WAIT_S` seconds."""
        wanted, loop = set(indexes), self._services.loop
        deadline = loop.time() + WAIT_S
        while (left_s := deadline - loop.time()) > 0 and (tasks := self._tasks(topic, wanted)):
            await asyncio.wait(tasks, timeout=left_s)

    def _tasks(self, topic: str, indexes: Iterable[int]) -> set[asyncio.Task[None]]:
        """The tasks that ask the unconfirmed leaders."""
        begun: dict[int, list[Term]] = {}  # by leader
        tasks = set()
        for index in indexes:
            state = self._services.metadata.partition(topic, index)
            if state is None or state.leader == NO_LEADER or self._is_known(topic, index, state):
                continue
            term = topic, index, state.leader_epoch
            task = self._asking.get(term)
            if task is None:
                begun.setdefault(state.leader, []).append(term)
            else:
                tasks.add(task)
        return tasks | {self._begin(leader, topic, terms) for leader, terms in begun.items()}

    async def close(self) -> None:
        """Cancel all questions and close the connections."""
        tasks = set(self._asking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._peers is not None:
            await self._peers.close()

    def _is_known(self, topic: str, index: int, state: PartitionState) -> bool:
        return state.leader == self._services.config.broker_id or self._confirmed.get((topic, index)) == state.leader_epoch

    def _begin(self, leader: int, topic: str, terms: list[Term]) -> asyncio.Task[None]:
        asking = self._ask(leader, topic, {index: epoch for _, index, epoch in terms})
        task = self._services.loop.create_task(asking)
        for term in terms:
            self._asking[term] = task
        task.add_done_callback(lambda _: self._end(terms))
        report_later(self._services.faults, task)
        return task

    def _end(self, terms: list[Term]) -> None:
        for term in terms:
            del self._asking[term]

    async def _ask(self, leader: int, topic: str, epochs: dict[int, int]) -> None:
        """Ask the leader repeatedly, until it has confirmed all partitions or the metadata names another leader."""
        if self._peers is None:
            milliseconds = int(WAIT_S * 1000)
            self._peers = peers_of(
                lambda: self._services.metadata, self._services, "coordinators", request_timeout_ms=milliseconds
            )
        deadline = self._services.loop.time() + WAIT_S
        while epochs and self._services.loop.time() < deadline:
            partitions = [
                OffsetForLeaderPartition(partition=index, current_leader_epoch=epoch, leader_epoch=epoch)
                for index, epoch in epochs.items()
            ]
            request = OffsetForLeaderEpochRequest(
                replica_id=self._services.config.broker_id, topics=[OffsetForLeaderTopic(topic=topic, partitions=partitions)]
            )
            try:
                response = await self._peers.send(leader, request)
            except ClientError:
                response = None
            for told in () if response is None else (each for result in response.topics for each in result.partitions):
                if told.error_code == ErrorCode.NONE and told.partition in epochs:
                    self._confirmed[topic, told.partition] = epochs.pop(told.partition)
            epochs = {index: epoch for index, epoch in epochs.items() if self._is_wanted(topic, index, leader, epoch)}
            if epochs:
                await asyncio.sleep(PAUSE_S)

    def _is_wanted(self, topic: str, index: int, leader: int, epoch: int) -> bool:
        state = self._services.metadata.partition(topic, index)
        return state is not None and (state.leader, state.leader_epoch) == (leader, epoch)
