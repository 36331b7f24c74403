"""A produce request with acks=all that waits until its batches are committed, and the refusal of a partition."""

from __future__ import annotations

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
    """An acks=all request that waits for the high watermark."""

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
        self._left = len(waiting)
        self._place: Answer = connection.expect_answer()
        self._timer = broker.loop.call_later(max(timeout_ms, 0) / 1000, self._timed_out)
        self._done = False
        for partition, last_offset in waiting:
            partition.wait_committed(last_offset, self._make_callback(partition, last_offset))

    def _make_callback(self, partition: Partition, last_offset: int):  # type: ignore[no-untyped-def]
        def settled(error: KafkaError | None) -> None:
            if self._done:
                return
            if error is not None:
                self._fail(partition, error)
            self._left -= 1
            if not self._left:
                self._answer()

        return settled

    def _fail(self, partition: Partition, error: KafkaError) -> None:
        keys = (partition.topic.encode(), partition.topic_id.bytes)
        for key, answers in self._answers:
            if key in keys:
                answers[:] = [refused(a.partition, error) if a.partition == partition.index else a for a in answers]

    def _timed_out(self) -> None:
        timed_out = KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        self._answers = [
            (k, [a if a.error_code else refused(a.partition, timed_out) for a in answers]) for k, answers in self._answers
        ]
        self._answer()

    def _answer(self) -> None:
        self._done = True
        self._timer.cancel()
        self._connection.complete(self._place, [write_produce_answer(self._version, self._correlation_id, self._answers)])
