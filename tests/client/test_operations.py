"""The operations of a client while the cluster is healthy, while leaders move, and while it is down: plans against a cluster
that is a function."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.client import administration, operations
from barnabas.client.cluster import Cluster, UnknownTopic
from barnabas.client.config import ClientConfig
from barnabas.client.errors import ConnectionFailed, PartitionError, ResourceError, TimedOut
from barnabas.client.results import LATEST, NewTopic
from barnabas.error_codes import ErrorCode
from barnabas.protocol.base_message import Message
from barnabas.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from barnabas.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from tests.client.fakes import TOPIC_ID, FakeShell, metadata

CONFIG = ClientConfig((("127.0.0.1", 9092),), default_api_timeout_ms=5_000)


def fetch_response(code: ErrorCode = ErrorCode.NONE, records: bytes = b"abc") -> FetchResponse:
    item = PartitionData(
        partition_index=0,
        error_code=code,
        high_watermark=9,
        last_stable_offset=8,
        log_start_offset=1,
        aborted_transactions=[AbortedTransaction(producer_id=5, first_offset=6)],
        records=records,
    )
    return FetchResponse(responses=[FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[item])])


def listed(request: ListOffsetsRequest, code: ErrorCode = ErrorCode.NONE) -> ListOffsetsResponse:
    topics = [
        ListOffsetsTopicResponse(
            name=topic.name,
            partitions=[
                ListOffsetsPartitionResponse(partition_index=p.partition_index, error_code=code, offset=10 + p.partition_index)
                for p in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return ListOffsetsResponse(topics=topics)


def test_a_fetch_goes_to_the_leader_with_its_epoch_and_topic_id() -> None:
    shell = FakeShell(lambda request, _: metadata({("t", 0): 2}) if isinstance(request, MetadataRequest) else fetch_response())
    result = shell.run(operations.fetch(CONFIG, Cluster(), "t", 0, 4))
    assert (bytes(result.records), result.high_watermark, result.last_stable_offset, result.log_start_offset) == (b"abc", 9, 8, 1)
    assert result.aborted == ((5, 6),)
    node_id, request = shell.sent[-1]
    assert node_id == 2
    assert isinstance(request, FetchRequest)
    item = request.topics[0].partitions[0]
    assert (request.topics[0].topic_id, item.fetch_offset, item.current_leader_epoch) == (TOPIC_ID, 4, 3)


def test_a_leader_that_moved_is_followed() -> None:
    leaders = iter([1, 2])

    def answer(request: Message, node_id: int) -> Any:
        if isinstance(request, MetadataRequest):
            return metadata({("t", 0): next(leaders)})
        return fetch_response(ErrorCode.NOT_LEADER_OR_FOLLOWER if node_id == 1 else ErrorCode.NONE)

    shell = FakeShell(answer)
    shell.run(operations.fetch(CONFIG, Cluster(), "t", 0, 0))
    assert [node for node, request in shell.sent if isinstance(request, FetchRequest)] == [1, 2]
    assert shell.pauses == [100]


def test_a_lost_connection_is_tried_again_until_time_is_up() -> None:
    def answer(request: Message, node_id: int) -> Any:
        if isinstance(request, MetadataRequest):
            return metadata({("t", 0): 1})
        raise ConnectionFailed("127.0.0.1:9001", "refused")

    shell = FakeShell(answer)
    with pytest.raises(TimedOut, match=r"no records of t-0 within 5000 ms; last error: no connection to 127.0.0.1:9001: refused"):
        shell.run(operations.fetch(CONFIG, Cluster(), "t", 0, 0))
    assert shell.pauses == [100, 200, 400, 800, 1000, 1000, 1000]


@pytest.mark.parametrize("code", [ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.TOPIC_AUTHORIZATION_FAILED])
def test_what_no_retry_mends_is_raised_at_once(code: ErrorCode) -> None:
    shell = FakeShell(lambda r, _: metadata({("t", 0): 1}) if isinstance(r, MetadataRequest) else fetch_response(code))
    with pytest.raises(PartitionError, match=f"t-0: {code.name}") as caught:
        shell.run(operations.fetch(CONFIG, Cluster(), "t", 0, 0))
    assert (caught.value.topic, caught.value.partition, caught.value.code) == ("t", 0, code)
    assert shell.pauses == []


def test_a_topic_that_is_not_there_fails_at_once() -> None:
    shell = FakeShell(lambda *_: metadata({}, {"t": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}))
    with pytest.raises(UnknownTopic, match="t: UNKNOWN_TOPIC_OR_PARTITION"):
        shell.run(operations.fetch(CONFIG, Cluster(), "t", 0, 0))
    shell = FakeShell(lambda *_: metadata({("t", 0): 1}))
    with pytest.raises(UnknownTopic, match="t-5: UNKNOWN_TOPIC_OR_PARTITION"):
        shell.run(operations.fetch(CONFIG, Cluster(), "t", 5, 0))


def test_offsets_are_asked_of_each_leader_once_and_only_missing_ones_again() -> None:
    failing = {2}

    def answer(request: Message, node_id: int) -> Any:
        if isinstance(request, MetadataRequest):
            return metadata({("t", 0): 1, ("t", 1): 2, ("t", 2): 1})
        assert isinstance(request, ListOffsetsRequest)
        if node_id in failing:
            failing.clear()
            return listed(request, ErrorCode.OFFSET_NOT_AVAILABLE)
        return listed(request)

    shell = FakeShell(answer)
    result = shell.run(operations.list_offsets(CONFIG, Cluster(), {("t", p): LATEST for p in range(3)}))
    assert {tp: item.offset for tp, item in result.items()} == {("t", 0): 10, ("t", 1): 11, ("t", 2): 12}
    asked = [(n, [p.partition_index for p in r.topics[0].partitions]) for n, r in shell.sent if isinstance(r, ListOffsetsRequest)]
    assert asked == [(1, [0, 2]), (2, [1]), (2, [1])]


def test_metadata_is_kept_until_it_is_old() -> None:
    cluster = Cluster()
    shell = FakeShell(lambda r, _: metadata({("t", 0): 1}) if isinstance(r, MetadataRequest) else fetch_response())
    for _ in range(3):
        shell.run(operations.fetch(CONFIG, cluster, "t", 0, 0))
    assert [type(r).__name__ for _, r in shell.sent].count("MetadataRequest") == 1
    shell.now_ms += CONFIG.metadata_max_age_ms
    shell.run(operations.fetch(CONFIG, cluster, "t", 0, 0))
    assert [type(r).__name__ for _, r in shell.sent].count("MetadataRequest") == 2


def test_a_batch_is_appended() -> None:
    def answer(request: Message, node_id: int) -> Any:
        if isinstance(request, MetadataRequest):
            return metadata({("t", 0): 1})
        item = PartitionProduceResponse(index=0, base_offset=42)
        return ProduceResponse(responses=[TopicProduceResponse(topic_id=TOPIC_ID, partition_responses=[item])])

    shell = FakeShell(answer)
    assert shell.run(operations.produce(CONFIG, Cluster(), "t", 0, b"batch")).base_offset == 42
    request = shell.sent[-1][1]
    assert isinstance(request, ProduceRequest)
    assert (request.acks, request.topic_data[0].topic_id) == (-1, TOPIC_ID)
    with pytest.raises(ValueError, match="acks must be -1 or 1"):
        shell.run(operations.produce(CONFIG, Cluster(), "t", 0, b"batch", acks=0))


def test_a_controller_that_moved_is_looked_for() -> None:
    codes = iter([ErrorCode.NOT_CONTROLLER, ErrorCode.TOPIC_ALREADY_EXISTS])

    def answer(request: Message, node_id: int) -> Any:
        if isinstance(request, CreateTopicsRequest):
            result = CreatableTopicResult(name="t", error_code=next(codes), error_message="Topic 't' already exists.")
            return CreateTopicsResponse(topics=[result])
        return metadata({})

    shell = FakeShell(answer)
    with pytest.raises(ResourceError, match=r"topic t: TOPIC_ALREADY_EXISTS: Topic 't' already exists\."):
        shell.run(administration.create_topics(CONFIG, Cluster(), [NewTopic("t")]))
    assert [node for node, request in shell.sent if isinstance(request, CreateTopicsRequest)] == [1, 1]


def test_another_controller_is_looked_for_when_the_one_that_was_known_is_gone() -> None:
    now = metadata({})

    def answer(request: Message, node_id: int) -> Any:
        if not isinstance(request, CreateTopicsRequest):
            return now
        if node_id == 1:
            now.controller_id = 2
            raise ConnectionFailed("a:1", "refused")
        return CreateTopicsResponse(topics=[CreatableTopicResult(name="t", topic_id=TOPIC_ID)])

    shell = FakeShell(answer)
    shell.run(administration.create_topics(CONFIG, Cluster(), [NewTopic("t")]))
    assert [node for node, request in shell.sent if isinstance(request, CreateTopicsRequest)] == [1, 2]
