"""Requests with batches for several partitions, and what comes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from barnabas.protocol.codec import decode
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from barnabas.protocol.records.batch import HEADER_SIZE, Record, build_batch, read_header
from barnabas.protocol.records.record import assemble
from tests.server.in_process import Client
from tests.server.wire import NOW_MS, framed

PRODUCE = 0
VERSIONS = (7, 8, 9, 12, 13)
TOGETHER, ALONE = ("one-at-once", "two-at-once"), ("one-by-self", "two-by-self")  # names of equal length
PARTITIONS = 4


class Sent(NamedTuple):
    """A request: for each batch the topic by number, the partition and the bytes."""

    batches: list[tuple[int, int, bytes]]
    version: int = 9
    acks: int = 1
    timeout_ms: int = 10_000


def batch_of(*values: bytes, **fields: Any) -> bytes:
    return build_batch([Record(0, NOW_MS + index, None, value, ()) for index, value in enumerate(values)], **fields)


def with_header(batch: bytes, **changes: int) -> bytes:
    return assemble(read_header(batch)._replace(**changes), batch[HEADER_SIZE:])


def frame_of(client: Client, sent: Sent, names: Sequence[str], correlation_id: int) -> bytes:
    topics: list[TopicProduceData] = []
    for topic, index, batch in sent.batches:
        if not topics or topics[-1].name != names[topic]:
            topic_id = client.broker.partitions.require(names[topic], 0).topic_id
            topics.append(TopicProduceData(name=names[topic], topic_id=topic_id, partition_data=[]))
        data = list(topics[-1].partition_data)
        topics[-1].partition_data = [*data, PartitionProduceData(index=index, records=batch)]
    request = ProduceRequest(acks=sent.acks, timeout_ms=sent.timeout_ms, topic_data=topics)
    return framed((PRODUCE, sent.version), request, correlation_id)


async def pipelined(
    client: Client, requests: Sequence[Sent], names: Sequence[str] = TOGETHER, *, at_once: bool = True, first_id: int = 0
) -> list[bytes]:
    """The answers, in bytes but for what topics are called, of requests that are sent at once or one by one."""
    frames = [frame_of(client, sent, names, number) for number, sent in enumerate(requests, first_id)]
    answered = sum(sent.acks != 0 for sent in requests)

    def ask() -> list[bytes]:
        if at_once:
            client.line.socket.sendall(b"".join(frames))
            return [client.line.receive() for _ in range(answered)]
        answers = []
        for frame, sent in zip(frames, requests, strict=True):
            client.line.socket.sendall(frame)
            answers += [client.line.receive()] if sent.acks else []
        return answers

    answers = await client.in_thread(ask)
    for number, name in enumerate(names):
        topic_id = client.broker.partitions.require(name, 0).topic_id.bytes
        answers = [
            answer.replace(name.encode(), b"topic %5d" % number).replace(topic_id, b"topic id %7d" % number) for answer in answers
        ]
    return answers


def told(answer: bytes, version: int = 9) -> list[tuple[int, int, int]]:
    """Partition, error code and base offset of each batch."""
    response = decode(ProduceResponse, version, answer, 5 if version >= 9 else 4)
    return [(each.index, each.error_code, each.base_offset) for topic in response.responses for each in topic.partition_responses]


async def create(client: Client, configs: dict[str, Any] | None = None) -> None:
    for name in (*TOGETHER, *ALONE):
        assert await client.create(PARTITIONS, name=name, **(configs or {})) == 0


async def contents(client: Client, names: Sequence[str]) -> list[object]:
    """Of each partition the size, what is known of producers, and the records."""
    found: list[object] = []
    for name in names:
        for index in range(PARTITIONS):
            log = client.broker.partitions.require(name, index).log
            found.append((log.size_bytes, log.reader.producers(), await client.fetch(index, name=name)))
    return found


def everywhere(value: bytes, version: int = 9, acks: int = 1) -> Sent:
    """A batch for each partition of both topics."""
    return Sent(
        [(topic, index, batch_of(value, b"%d" % index)) for topic in (0, 1) for index in range(PARTITIONS)], version, acks
    )
