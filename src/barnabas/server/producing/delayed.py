"""A produce request that waits until its batches are as safe as its client wants, and the refusal of a partition."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from barnabas.errors import ErrorCode, InvalidRecordError, KafkaError
from barnabas.protocol.produce import FIRST_LEADER_VERSION, FIRST_TOPIC_ID_VERSION, PartitionAnswer, write_produce_answer
from barnabas.server.current_leader import LeaderServices, current_leader, endpoints_of
from barnabas.server.request_order import Effect

if TYPE_CHECKING:
    import asyncio

    from barnabas.replication.leader_partition import LeaderPartition
    from barnabas.server.answer_order import Answer
    from barnabas.server.connection import Connection

ACKS_ALL, ACKS_LEADER, ACKS_NONE = -1, 1, 0
Topics = list[tuple[bytes, list[PartitionAnswer]]]


class WaitingBroker(LeaderServices, Protocol):
    """The parts of the broker that this module uses."""

    loop: asyncio.AbstractEventLoop


def refused(partition: int, error: KafkaError) -> PartitionAnswer:
    record_errors = error.record_errors if isinstance(error, InvalidRecordError) else ()
    return PartitionAnswer(partition, error.code, -1, -1, -1, error.message, record_errors)


def must_wait(partition: LeaderPartition, last_offset: int, acks: int) -> bool:
    """Whether a producer with these acks must wait after the append, for a record that is not committed yet."""
    return acks == ACKS_ALL or (acks != ACKS_NONE and not partition.is_kept(last_offset))


def refusals(broker: WaitingBroker, connection: Connection, version: int, correlation_id: int, answers: Topics) -> bytes:
    """The frame of an answer that may refuse partitions. It names the leader to a client that asked the wrong broker."""
    leaders = []
    if version >= FIRST_LEADER_VERSION:
        for key, partitions in answers:
            for slot, answer in enumerate(partitions):
                if answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                    leader = current_leader(broker, _name(broker, key, version), answer.partition)
                    partitions[slot] = answer._replace(current_leader=leader)
                    leaders.append(leader)
    endpoints = endpoints_of(broker, leaders, connection.listener) if leaders else ()
    throttle_ms = 0 if connection.mute is None else connection.mute.left_ms
    return write_produce_answer(version, correlation_id, answers, throttle_ms, endpoints=endpoints)


def _name(broker: WaitingBroker, key: bytes, version: int) -> str:
    if version < FIRST_TOPIC_ID_VERSION:
        return key.decode(errors="replace")
    return broker.metadata.topic_name(UUID(bytes=key)) or ""


class DelayedProduce:
    """A request that waits for the high watermark, or with acks=1 for a flush."""

    def __init__(
        self,
        broker: WaitingBroker,
        connection: Connection,
        version: int,
        correlation_id: int,
        answers: Topics,
        waiting: list[tuple[LeaderPartition, int]],
        timeout_ms: int,
        *,
        acks_all: bool,
    ) -> None:
        self._broker = broker
        self._connection = connection
        self._version = version
        self._correlation_id = correlation_id
        self._answers = answers
        self._waiting = {partition for partition, _ in waiting}
        self._place: Answer = connection.expect_answer(Effect.APPENDS)
        self._timer = broker.loop.call_later(max(timeout_ms, 0) / 1000, self._time_out)
        for partition, last_offset in waiting:
            partition.wait_acknowledged(last_offset, partial(self._settle, partition), acks_all=acks_all)

    def _settle(self, partition: LeaderPartition, error: KafkaError | None) -> None:
        if partition not in self._waiting:
            return  # answered already
        if error is not None:
            self._fail(partition, error)
        self._waiting.discard(partition)
        if not self._waiting:
            self._answer()

    def _fail(self, partition: LeaderPartition, error: KafkaError) -> None:
        keys = (partition.topic.encode(), partition.topic_id.bytes)
        for key, answers in self._answers:
            if key in keys:
                answers[:] = [refused(a.partition, error) if a.partition == partition.index else a for a in answers]

    def _time_out(self) -> None:
        """Answer. Only partitions that still wait get REQUEST_TIMED_OUT."""
        for partition in self._waiting:
            self._fail(partition, KafkaError(ErrorCode.REQUEST_TIMED_OUT))
        self._waiting.clear()
        self._answer()

    def _answer(self) -> None:
        self._timer.cancel()
        answer = refusals(self._broker, self._connection, self._version, self._correlation_id, self._answers)
        self._connection.complete(self._place, [answer], among_many=True)
