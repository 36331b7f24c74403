"""The hand-written codecs of Produce and Fetch against the general one: the same messages, the same bytes."""

from __future__ import annotations

import contextlib
from typing import NamedTuple
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.errors import MalformedMessage
from barnabas.protocol import fetch, produce
from barnabas.protocol.codec import decode, encode
from barnabas.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from barnabas.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

PRODUCE_VERSIONS = range(3, 14)
FETCH_VERSIONS = range(4, 19)
names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=140)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-1, 2**63 - 1)

partitions = st.builds(PartitionProduceData, index=st.integers(-1, 2**31 - 1), records=st.none() | st.binary(max_size=300))
requests = st.builds(
    ProduceRequest,
    transactional_id=st.none() | names,
    acks=st.sampled_from([-1, 0, 1]),
    timeout_ms=st.integers(0, 2**31 - 1),
    topic_data=st.lists(
        st.builds(TopicProduceData, name=names, topic_id=st.uuids(), partition_data=st.lists(partitions, max_size=3)), max_size=3
    ),
)


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
@given(request_=requests)
@settings(max_examples=20)
def test_a_produce_request_reads_as_the_general_codec_wrote_it(version: int, request_: ProduceRequest) -> None:
    head = produce.read_produce(memoryview(b"head" + bytes(encode(request_, version))), 4, version)
    assert (head.transactional_id, head.acks, head.timeout_ms) == (
        request_.transactional_id,
        request_.acks,
        request_.timeout_ms,
    )
    keys = [t.topic_id.bytes if version >= produce.FIRST_TOPIC_ID_VERSION else t.name.encode() for t in request_.topic_data]
    assert [key for key, _ in head.topics] == keys
    for (_, read), written in zip(head.topics, request_.topic_data, strict=True):
        assert [(p.partition, None if p.records is None else bytes(p.records)) for p in read] == [
            (p.index, p.records) for p in written.partition_data
        ]


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
@given(data=st.data())
@settings(max_examples=30)
def test_a_damaged_produce_request_is_refused_as_malformed(version: int, data: st.DataObject) -> None:
    frame = bytearray(encode(data.draw(requests), version))
    cut = data.draw(st.integers(0, len(frame)))
    for position in data.draw(st.lists(st.integers(0, max(len(frame) - 1, 0)), max_size=4)) if frame else []:
        frame[position] = data.draw(st.integers(0, 255))
    with contextlib.suppress(MalformedMessage):  # no other error may occur
        head = produce.read_produce(memoryview(frame[:cut]), 0, version)
        assert sum(len(p.records or b"") for _, ps in head.topics for p in ps) <= cut


answers = st.builds(
    produce.PartitionAnswer,
    partition=st.integers(0, 2**31 - 1),
    error_code=st.integers(0, 100),
    base_offset=int64,
    log_append_time_ms=int64,
    log_start_offset=int64,
    message=st.none() | names,
    record_errors=st.lists(st.tuples(st.integers(0, 1000), names), max_size=2).map(tuple),
    current_leader=st.none() | st.tuples(int32, int32),
).map(lambda a: a if a.error_code else a._replace(message=None, record_errors=(), current_leader=None))


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
@given(topics=st.lists(st.tuples(st.uuids(), st.lists(answers, max_size=3)), max_size=3))
@settings(max_examples=20)
def test_a_produce_answer_is_what_the_general_codec_reads(
    version: int, topics: list[tuple[UUID, list[produce.PartitionAnswer]]]
) -> None:
    by_id = version >= produce.FIRST_TOPIC_ID_VERSION
    frame = produce.write_produce_answer(
        version, 77, [(key.bytes if by_id else str(key).encode(), list(parts)) for key, parts in topics], 5
    )
    expected = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name="" if by_id else str(key),
                topic_id=key if by_id else UUID(int=0),
                partition_responses=[_produced(version, a) for a in parts],
            )
            for key, parts in topics
        ],
        throttle_time_ms=5,
    )
    head = 9 if version >= produce.FIRST_FLEXIBLE_VERSION else 8
    assert frame[:8] == (len(frame) - 4).to_bytes(4, "big") + (77).to_bytes(4, "big")
    assert decode(ProduceResponse, version, bytes(frame), head) == expected


def _produced(version: int, answer: produce.PartitionAnswer) -> PartitionProduceResponse:
    found = PartitionProduceResponse(
        index=answer.partition,
        error_code=answer.error_code,
        base_offset=answer.base_offset,
        log_append_time_ms=answer.log_append_time_ms,
    )
    if version >= 5:
        found.log_start_offset = answer.log_start_offset
    if version >= 8:
        found.error_message = answer.message
        found.record_errors = [
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text) for index, text in answer.record_errors
        ]
    if version >= produce.FIRST_LEADER_VERSION and answer.current_leader is not None:
        leader_id, leader_epoch = answer.current_leader
        found.current_leader = LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
    return found


class Piece(NamedTuple):
    """Stands for a file region."""

    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)


fetched = st.builds(
    fetch.FetchedData,
    partition=st.integers(0, 2**31 - 1),
    error_code=st.integers(0, 100),
    high_watermark=int64,
    last_stable_offset=int64,
    log_start_offset=int64,
    records=st.none() | st.builds(Piece, st.binary(max_size=300)),
    aborted=st.none() | st.lists(st.tuples(int64, int64), max_size=2),
    preferred_read_replica=st.just(-1),
    current_leader=st.none(),
    diverging=st.none() | st.tuples(st.integers(0, 100), st.integers(0, 2**63 - 1)),
)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
@given(topics=st.lists(st.tuples(st.uuids(), st.lists(fetched, max_size=3)), max_size=3), session_id=st.integers(0, 2**31 - 1))
@settings(max_examples=20)
def test_a_fetch_answer_is_what_the_general_codec_reads(
    version: int, topics: list[tuple[UUID, list[fetch.FetchedData[Piece]]]], session_id: int
) -> None:
    by_id = version >= fetch.FIRST_TOPIC_ID_VERSION
    keyed: list[tuple[str | UUID, list[fetch.FetchedData[Piece]]]] = [
        (key if by_id else str(key), list(parts)) for key, parts in topics
    ]
    parts = fetch.write_fetch_answer(version, 77, keyed, session_id=session_id, throttle_time_ms=5)
    frame = b"".join(part.data if isinstance(part, Piece) else bytes(part) for part in parts)
    expected = FetchResponse(
        throttle_time_ms=5,
        session_id=session_id if version >= 7 else 0,
        responses=[
            FetchableTopicResponse(
                topic="" if by_id else str(key),
                topic_id=key if by_id else UUID(int=0),
                partitions=[_fetched(version, d) for d in parts],
            )
            for key, parts in topics
        ],
    )
    head = 9 if version >= fetch.FIRST_FLEXIBLE_VERSION else 8
    assert frame[:8] == (len(frame) - 4).to_bytes(4, "big") + (77).to_bytes(4, "big")
    response = decode(FetchResponse, version, frame, head)
    for topic in response.responses:
        for partition in topic.partitions:
            partition.records = bytes(partition.records or b"")
    assert response == expected


def _fetched(version: int, data: fetch.FetchedData[Piece]) -> PartitionData:
    found = PartitionData(
        partition_index=data.partition,
        error_code=data.error_code,
        high_watermark=data.high_watermark,
        last_stable_offset=data.last_stable_offset,
        aborted_transactions=None
        if data.aborted is None
        else [AbortedTransaction(producer_id=p, first_offset=o) for p, o in data.aborted],
        records=data.records.data if isinstance(data.records, Piece) else b"",
    )
    if version >= 5:
        found.log_start_offset = data.log_start_offset
    if version >= 12 and data.diverging is not None:
        found.diverging_epoch = EpochEndOffset(epoch=data.diverging[0], end_offset=data.diverging[1])
    return found
