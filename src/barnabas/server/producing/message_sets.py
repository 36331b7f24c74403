"""Produce below version 3: its message sets become batches before the append. Then they are handled like all batches.

Only requests of those versions come here. The loop converts a small set without a codec. A thread converts other sets. During that time
the broker does not read from the connection, so that later requests are appended after it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from barnabas import limits
from barnabas.config.topic import TopicConfig
from barnabas.errors import KafkaError
from barnabas.protocol.produce import PartitionAnswer, PartitionRecords, ProduceHead
from barnabas.protocol.records.message_sets.message_codec import is_compressed
from barnabas.protocol.records.message_sets.up_conversion import batch_of
from barnabas.server.producing.delayed import refused
from barnabas.server.producing.holding import HoldingBroker, hold_back

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Executor

    from barnabas.replication.hosted_partitions import HostedPartitions
    from barnabas.replication.partition import Partition
    from barnabas.server.connection import Connection

PAUSE = "converting"
NOTHING = PartitionAnswer(-1, 0, -1, -1, -1)  # Kafka's answer to a set without a whole message


class ConvertingBroker(HoldingBroker, Protocol):
    """The parts of the broker that this module uses."""

    io_threads: Executor
    loop: asyncio.AbstractEventLoop
    partitions: HostedPartitions


class Answered(PartitionRecords):
    """A partition of a request whose answer is known before any append."""

    answer: PartitionAnswer

    @classmethod
    def by(cls, answer: PartitionAnswer) -> Answered:
        made = cls(answer.partition, None)
        made.answer = answer
        return made


class _Job(NamedTuple):
    """The input of the thread: for each set its topic's settings, None if this broker cannot append it."""

    head: ProduceHead
    configs: list[list[TopicConfig | None]]


GoOn = Callable[[memoryview, ProduceHead], None]


def convert(broker: ConvertingBroker, connection: Connection, frame: memoryview, head: ProduceHead, go_on: GoOn) -> None:
    """Convert the sets of a request to batches, at once or in a thread, and call `go_on` with the frame and the converted request."""
    if _is_little(head):
        go_on(frame, _converted(_job(broker, head)))
        return
    held = memoryview(bytearray(frame))
    job = _job(broker, _copied(head))

    async def in_thread() -> Callable[[], None]:
        converted = await broker.loop.run_in_executor(broker.io_threads, _converted, job)

        def append() -> None:
            connection.started_ns = time.perf_counter_ns()  # the time of the thread is not the time of the loop
            go_on(held, converted)

        return append

    hold_back(broker, connection, PAUSE, len(held), in_thread)


def _is_little(head: ProduceHead) -> bool:
    sets = [each.records for _, wanted in head.topics for each in wanted if each.records is not None]
    return sum(map(len, sets)) <= limits.MAX_CONVERTED_AT_ONCE and not any(map(is_compressed, sets))


def _copied(head: ProduceHead) -> ProduceHead:
    """The same request without views into the frame."""
    return head._replace(
        topics=[
            (key, [each._replace(records=memoryview(bytearray(each.records or b""))) for each in wanted])
            for key, wanted in head.topics
        ]
    )


def _job(broker: ConvertingBroker, head: ProduceHead) -> _Job:
    configs = []
    for key, wanted in head.topics:
        partitions = broker.partitions.by_name_bytes(key) or {}
        configs.append([_config(partitions.get(each.partition)) for each in wanted])
    return _Job(head, configs)


def _config(partition: Partition | None) -> TopicConfig | None:
    return None if partition is None or not partition.is_leader else partition.log.config


def _converted(job: _Job) -> ProduceHead:
    topics = [
        (key, [_one(request, config) for request, config in zip(wanted, configs, strict=True)])
        for (key, wanted), configs in zip(job.head.topics, job.configs, strict=True)
    ]
    return job.head._replace(topics=topics)


def _one(request: PartitionRecords, config: TopicConfig | None) -> PartitionRecords:
    if config is None:
        return request  # the append finds the reason and answers it
    try:
        batch = batch_of(request.records or b"", config)
    except KafkaError as error:
        return Answered.by(refused(request.partition, error))
    if batch is None:
        return Answered.by(NOTHING._replace(partition=request.partition))
    return request._replace(records=memoryview(bytearray(batch)))
