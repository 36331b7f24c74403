"""A produce request that waits until its batches are committed, and the refusal of a partition."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from barnabas.errors import ErrorCode, InvalidRecordError, KafkaError
from barnabas.protocol.produce import PartitionAnswer, write_produce_answer

if TYPE_CHECKING:
    from barnabas.replication.partition import Partition
    from barnabas.server.broker import Broker
    from barnabas.server.connection import Answer, Connection

Topics = list[tuple[bytes, list[PartitionAnswer]]]


def refused(partition: int, error: KafkaError) -> PartitionAnswer:
    record_errors = error.record_errors if isinstance(error, InvalidRecordError) else ()
    return PartitionAnswer(partition, error.code, -1, -1, -1, error.message, record_errors)


class DelayedProduce:
    """A request that waits for the high watermark."""

    def __init__(
        self,
        broker: Broker,
        connection: Connection,
        version: int,
        correlation_id: int,
        answers: Topics,
        waiting: list[tuple[Partition, int]],
        timeout_ms: int,
    ) -> None:
        self._connection = connection
        self._version = version
        self._correlation_id = correlation_id
        self._answers = answers
        self._waiting = {partition for partition, _ in waiting}
        self._place: Answer = connection.expect_answer()
        self._timer = broker.loop.call_later(max(timeout_ms, 0) / 1000, self._time_out)
        for partition, last_offset in waiting:
            partition.wait_committed(last_offset, partial(self._settle, partition))

    def _settle(self, partition: Partition, error: KafkaError | None) -> None:
        if partition not in self._waiting:
            return  # answered already
        if error is not None:
            self._fail(partition, error)
        self._waiting.discard(partition)
        if not self._waiting:
            self._answer()

    def _fail(self, partition: Partition, error: KafkaError) -> None:
        keys = (partition.topic.encode(), partition.topic_id.bytes)
        for key, answers in self._answers:
            if key in keys:
                answers[:] = [refused(a.partition, error) if a.partition == partition.index else a for a in answers]

    def _time_out(self) -> None:
        """Only what is not committed has timed out."""
        for partition in self._waiting:
            self._fail(partition, KafkaError(ErrorCode.REQUEST_TIMED_OUT))
        self._waiting.clear()
        self._answer()

    def _answer(self) -> None:
        self._timer.cancel()
        answer = write_produce_answer(self._version, self._correlation_id, self._answers)
        self._connection.complete(self._place, [answer], among_many=True)
