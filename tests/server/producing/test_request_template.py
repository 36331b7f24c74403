"""A request that is recognised is answered as one that is read."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from uuid import UUID

import pytest

from barnabas import limits
from barnabas.errors import ErrorCode
from barnabas.protocol.messages import APIS, FIRST_VERSIONS_OF_KAFKA_4
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from barnabas.server.fastpath.recogniser import find
from barnabas.server.producing.request_template import ProduceTemplate
from barnabas.testing import Broker
from tests.server.in_process import running
from tests.server.wire import SIZE, Line, batch_of, create_topic, framed
from tests.waiting import until

PRODUCE, DELETE_TOPICS = 0, (20, 4)
VERSIONS = range(FIRST_VERSIONS_OF_KAFKA_4[PRODUCE], APIS[PRODUCE][3] + 1)
TOPIC = "repeated"


def request(batch: bytes, topic_id: bytes, *, acks: int = 1, partition: int = 0) -> ProduceRequest:
    data = [PartitionProduceData(index=partition, records=batch)]
    topic = TopicProduceData(name=TOPIC, topic_id=UUID(bytes=topic_id), partition_data=data)
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[topic])


def answer_of(line: Line, version: int, wanted: ProduceRequest) -> tuple[int, int]:
    """Error code and base offset."""
    answer = line.ask((PRODUCE, version), wanted, ProduceResponse).responses[0].partition_responses[0]
    return answer.error_code, answer.base_offset


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("acks", [1, -1])
def test_repeats_get_the_answer_of_the_first_apart_from_id_and_offset(version: int, acks: int) -> None:
    with Broker() as broker, Line(broker) as line:
        topic_id = create_topic(broker, TOPIC)
        answers = []
        for index in range(4):
            line.socket.sendall(framed((PRODUCE, version), request(batch_of(100 * index), topic_id, acks=acks), 1000 + index))
            answers.append(line.receive())
        first = answers[0]
        for index, answer in enumerate(answers):
            assert SIZE.unpack_from(answer)[0] == 1000 + index
            assert index.to_bytes(8, "big") in answer
            assert len(answer) == len(first)
            differing = [at for at, (ours, theirs) in enumerate(zip(answer, first, strict=True)) if ours != theirs]
            assert len(differing) <= 2  # the last byte of the correlation id and of the offset


def test_a_broken_batch_between_repeats_gets_its_error_and_changes_nothing() -> None:
    with Broker() as broker, Line(broker) as line:
        topic_id = create_topic(broker, TOPIC)
        broken = bytearray(batch_of(50))
        broken[-1] ^= 1
        batches = [batch_of(50), batch_of(50), bytes(broken), b"", batch_of(50)]
        answers = [answer_of(line, 9, request(batch, topic_id)) for batch in batches]
    assert answers == [(0, 0), (0, 1), (ErrorCode.CORRUPT_MESSAGE, -1), (ErrorCode.INVALID_RECORD, -1), (0, 2)]


def test_a_repeat_after_the_topic_was_deleted_and_made_again_goes_to_the_new_one() -> None:
    with Broker({"auto.create.topics.enable": False}) as broker, Line(broker) as line:
        topic_id = create_topic(broker, TOPIC)
        assert [answer_of(line, 9, request(batch_of(9), topic_id)) for _ in range(3)] == [(0, 0), (0, 1), (0, 2)]
        with Line(broker) as other:
            other.ask(DELETE_TOPICS, DeleteTopicsRequest(topic_names=[TOPIC], timeout_ms=5_000), DeleteTopicsResponse)
        assert answer_of(line, 9, request(batch_of(9), topic_id)) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
        create_topic(broker, TOPIC)
        assert [answer_of(line, 9, request(batch_of(9), topic_id)) for _ in range(3)] == [(0, 0), (0, 1), (0, 2)]


def test_requests_of_several_kinds_on_one_connection_do_not_mix() -> None:
    with Broker() as broker, Line(broker) as line:
        topic_id = create_topic(broker, TOPIC)
        offsets = []
        for _ in range(3):
            for version in (3, 5, 8, 9, 12, 13):
                code, offset = answer_of(line, version, request(batch_of(version), topic_id))
                assert code == 0
                offsets.append(offset)
            missing = answer_of(line, 9, request(batch_of(9), topic_id, partition=7))
            assert missing == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert offsets == list(range(18))


async def test_connections_know_more_requests_while_their_broker_has_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, most in (("MAX_REPEATED_REQUESTS", 2), ("MAX_REPEATED_REQUESTS_OF_ONE", 5), ("MAX_REPEATED_REQUESTS_OF_ALL", 4)):
        monkeypatch.setattr(limits, name, most)
    partitions = range(8)

    async with running([tmp_path]) as client:
        await client.create(len(partitions), TOPIC)
        room, port = client.broker.template_budget, client.broker.endpoints[0].port

        def write(line: Line) -> list[tuple[int, int]]:
            return [answer_of(line, 8, request(batch_of(9), bytes(16), partition=number)) for number in partitions]

        with Line(port) as first:
            with Line(port) as second:
                left = []
                for count, line in enumerate((first, second, first, second)):
                    assert await client.in_thread(partial(write, line)) == [(0, count)] * len(partitions)
                    left.append(room.left)
                assert left == [1, 0, 0, 0]
            await until(lambda: room.left == 1, "what it knew was not forgotten")
            assert await client.in_thread(partial(write, first)) == [(0, 4)] * len(partitions)
            assert room.left == 1
        await until(lambda: room.left == 4, "what it knew was not forgotten")


async def test_partitions_that_are_closed_make_room_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, most in (("MAX_REPEATED_REQUESTS", 2), ("MAX_REPEATED_REQUESTS_OF_ONE", 5), ("MAX_REPEATED_REQUESTS_OF_ALL", 4)):
        monkeypatch.setattr(limits, name, most)

    async with running([tmp_path]) as client:
        room = client.broker.template_budget
        for number in range(3):
            name = f"{TOPIC}-{number}"
            await client.create(8, name)
            assert [await client.produce(b"v", partition, name=name) for partition in range(8)] == [0] * 8
            (connection,) = client.broker.connections
            template = find(connection.recognisers, ProduceTemplate)
            assert template is not None
            known = template._known.values()
            assert [(each.partition.topic, each.partition.closed) for each in known] == [(name, False)] * 5
            assert room.left == 1
            await client.delete(name)
