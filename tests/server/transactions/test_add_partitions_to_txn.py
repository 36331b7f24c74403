"""Which batches get into a transaction with their partition: those of its owner."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.errors import ErrorCode
from barnabas.protocol.codec import decode
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from barnabas.protocol.records.batch import Record, build_batch
from barnabas.server.producing.transactional import why_not_in_transaction
from barnabas.testing import Broker
from tests.server.wire import NOW_MS, Line, create_topic

INIT, PRODUCE, ADD, END = (22, 5), (0, 12), (24, 3), (26, 3)
BUSY = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE}
TOPICS = "a", "b"
Owner = tuple[int, int]


@pytest.fixture(scope="module")
def kafka() -> Iterator[Broker]:
    with Broker(config={"transaction.state.log.num.partitions": 1}) as broker:
        for topic in TOPICS:
            create_topic(broker, topic)
        yield broker


def init(line: Line, name: str) -> Owner:
    asked = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=10_000)
    while True:
        answer = line.ask(INIT, asked, InitProducerIdResponse)
        if answer.error_code not in BUSY:
            assert answer.error_code == 0
            return answer.producer_id, answer.producer_epoch


def produced(
    line: Line, name: str, batches: list[tuple[str, Owner]], api: tuple[int, int] = PRODUCE, sequence: int = 0
) -> list[int]:
    """The error code of each batch of one request, by topic and owner."""
    data = []
    for topic, (producer_id, epoch) in batches:
        batch = build_batch(
            [Record(0, NOW_MS, None, b"x", ())],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=True,
        )
        data.append(TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)]))
    asked = ProduceRequest(transactional_id=name, acks=-1, timeout_ms=10_000, topic_data=data)
    answer = line.ask(api, asked, ProduceResponse)
    return [each.partition_responses[0].error_code for each in answer.responses]


@pytest.mark.parametrize("topics", [("a", "b"), ("a", "a")])
def test_the_owner_of_an_id_lets_nobody_else_in(kafka: Broker, topics: tuple[str, str]) -> None:
    name = "-".join(topics)
    with Line(kafka) as line:
        owner = init(line, name)
        stranger = owner[0] + 1_000, 0
        both = list(zip(topics, (owner, stranger), strict=True))
        assert produced(line, name, both) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2
        assert produced(line, name, [(topics[0], owner)]) == [ErrorCode.NONE]


@pytest.mark.parametrize(("verifies", "code"), [("true", ErrorCode.INVALID_TXN_STATE), ("false", ErrorCode.NONE)])
def test_a_partition_that_was_not_added_is_found_where_that_is_verified(verifies: str, code: ErrorCode) -> None:
    """By a client of transactions version 1, which adds its partitions itself."""
    config: dict[str, str | int | bool] = {
        "transaction.state.log.num.partitions": 1,
        "transaction.partition.verification.enable": verifies,
    }
    with Broker(config=config) as broker, Line(broker) as line:
        create_topic(broker, "a")
        owner = init(line, "x")
        assert produced(line, "x", [("a", owner)], (0, 10)) == [code]


def test_a_batch_that_is_not_the_producer_s_first_waits_for_that(kafka: Broker) -> None:
    with Line(kafka) as line:
        batches = [("a", init(line, "in-order"))]
        assert produced(line, "in-order", batches, sequence=1) == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
        assert produced(line, "in-order", batches) == [ErrorCode.NONE]
        assert produced(line, "in-order", batches, sequence=1) == [ErrorCode.NONE]


def test_the_next_transaction_begins_without_being_sent_away(kafka: Broker) -> None:
    """Also where it is begun before the end of the one before is answered."""
    codes = set()
    with Line(kafka) as line:
        producer_id, epoch = init(line, "eager")
        add = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="eager",
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in TOPICS],
        )
        end = EndTxnRequest(transactional_id="eager", producer_id=producer_id, producer_epoch=epoch, committed=True)
        for _ in range(20):
            line.send(ADD, add)
            line.send(END, end)
        for _ in range(20):
            added = decode(AddPartitionsToTxnResponse, ADD[1], line.receive(), 5)
            codes |= {each.results_by_partition[0].partition_error_code for each in added.results_by_topic_v3_and_below}
            codes.add(decode(EndTxnResponse, END[1], line.receive(), 5).error_code)
    assert codes == {ErrorCode.NONE}


def test_requests_that_repeat_join_each_transaction_once(kafka: Broker) -> None:
    with Line(kafka) as line:
        owner = init(line, "again")
        for _ in range(3):
            assert [produced(line, "again", [("a", owner)], sequence=number) for number in range(3)] == [[ErrorCode.NONE]] * 3
            request = EndTxnRequest(transactional_id="again", producer_id=owner[0], producer_epoch=owner[1], committed=True)
            answer = line.ask((END[0], 5), request, EndTxnResponse)
            assert answer.error_code == ErrorCode.NONE
            assert produced(line, "again", [("a", owner)], sequence=3) == [ErrorCode.INVALID_PRODUCER_EPOCH]
            owner = answer.producer_id, answer.producer_epoch


def test_requests_that_repeat_are_refused_where_their_partition_was_not_added(kafka: Broker) -> None:
    """By a client of transactions version 1, and also where the transaction is open."""
    with Line(kafka) as line:
        owner = init(line, "unasked")

        def added(topic: str) -> list[int]:
            add = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id="unasked",
                v3_and_below_producer_id=owner[0],
                v3_and_below_producer_epoch=owner[1],
                v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[0])],
            )
            answer = line.ask(ADD, add, AddPartitionsToTxnResponse)
            return [each.results_by_partition[0].partition_error_code for each in answer.results_by_topic_v3_and_below]

        def end() -> int:
            request = EndTxnRequest(transactional_id="unasked", producer_id=owner[0], producer_epoch=owner[1], committed=True)
            return int(line.ask(END, request, EndTxnResponse).error_code)

        def produce(sequence: int) -> list[int]:
            return produced(line, "unasked", [("a", owner)], (0, 10), sequence)

        for sequence in range(3):
            assert added("a") == [ErrorCode.NONE]
            assert produce(sequence) == [ErrorCode.NONE]
            assert end() == ErrorCode.NONE
        assert produce(3) == [ErrorCode.INVALID_TXN_STATE]
        assert added("b") == [ErrorCode.NONE]
        assert produce(3) == [ErrorCode.INVALID_TXN_STATE]
        assert added("a") == [ErrorCode.NONE]
        assert produce(3) == [ErrorCode.NONE]
        assert end() == ErrorCode.NONE


def test_who_does_not_lead_says_so_before_anything_of_the_transaction() -> None:
    partition: Any = SimpleNamespace(is_leader=False, refusal=ErrorCode.NOT_LEADER_OR_FOLLOWER, topic="t", index=0)
    head: Any = SimpleNamespace(transactional_id="id")
    refusal = why_not_in_transaction(partition, memoryview(b""), head, {})
    assert refusal is not None
    assert refusal.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
