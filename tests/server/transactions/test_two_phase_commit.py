"""Two-phase commit (KIP-939) as a client sees it: a writer prepares, dies, and somebody else ends what it has written."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.errors import ErrorCode
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from barnabas.protocol.records.batch import Record, build_batch, iterate_records, split_batches
from barnabas.testing import Broker
from tests.server.wire import NOW_MS, Line, create_topic

INIT, END, PRODUCE, FETCH, DESCRIBE = (22, 6), (26, 5), (0, 12), (1, 12), (65, 0)
NOBODY = -1, -1
ON = {"transaction.two.phase.commit.enable": True, "transaction.state.log.num.partitions": 1}
BUSY = {ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE}
Owner = tuple[int, int]


@pytest.fixture(scope="module")
def kafka() -> Iterator[Broker]:
    with Broker(config=ON) as broker:
        yield broker


@pytest.fixture
def name(kafka: Broker, request: pytest.FixtureRequest) -> str:
    made = str(request.node.name.replace("[", "-").replace("]", ""))
    create_topic(kafka, made)
    return made


def init(
    line: Line, name: str, *, two_phase: bool = True, keep: bool = False, timeout_ms: int = 10_000
) -> InitProducerIdResponse:
    """The answer to InitProducerId 6, once the coordinator is not busy with what was before."""
    asked = InitProducerIdRequest(
        transactional_id=name, transaction_timeout_ms=timeout_ms, enable2_pc=two_phase, keep_prepared_txn=keep
    )
    while True:
        answer = line.ask(INIT, asked, InitProducerIdResponse)
        if answer.error_code not in BUSY:
            return answer


def owner_of(answer: InitProducerIdResponse) -> Owner:
    assert answer.error_code == 0
    return answer.producer_id, answer.producer_epoch


def ongoing_of(answer: InitProducerIdResponse) -> Owner:
    return answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch


def write(line: Line, name: str, owner: Owner, value: bytes, sequence: int = 0) -> int:
    """The error code of producing one record in the transaction of `owner`."""
    batch = build_batch(
        [Record(0, NOW_MS, None, value, ())],
        producer_id=owner[0],
        producer_epoch=owner[1],
        base_sequence=sequence,
        transactional=True,
    )
    data = [TopicProduceData(name=name, partition_data=[PartitionProduceData(index=0, records=batch)])]
    asked = ProduceRequest(transactional_id=name, acks=-1, timeout_ms=10_000, topic_data=data)
    return line.ask(PRODUCE, asked, ProduceResponse).responses[0].partition_responses[0].error_code


def end(line: Line, name: str, owner: Owner, *, commit: bool) -> EndTxnResponse:
    asked = EndTxnRequest(transactional_id=name, producer_id=owner[0], producer_epoch=owner[1], committed=commit)
    while True:
        answer = line.ask(END, asked, EndTxnResponse)
        if answer.error_code not in BUSY:
            return answer


def state_of(line: Line, name: str) -> tuple[str, int]:
    """State and timeout."""
    (found,) = line.ask(
        DESCRIBE, DescribeTransactionsRequest(transactional_ids=[name]), DescribeTransactionsResponse
    ).transaction_states
    return found.transaction_state, found.transaction_timeout_ms


def committed(line: Line, name: str) -> list[bytes]:
    """The records that a reader of committed records sees when no transaction is open."""
    place = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20, current_leader_epoch=-1)
    asked = FetchRequest(
        max_wait_ms=0, max_bytes=1 << 20, isolation_level=1, session_epoch=-1, topics=[FetchTopic(topic=name, partitions=[place])]
    )
    while True:
        (found,) = line.ask(FETCH, asked, FetchResponse).responses[0].partitions
        if found.last_stable_offset == found.high_watermark:
            break
    aborted = {each.producer_id for each in found.aborted_transactions or ()}
    values: list[bytes] = []
    for position, header in split_batches(found.records or b""):
        if not header.is_control and header.producer_id not in aborted:
            values += [record.value or b"" for record in iterate_records(found.records or b"", position)]
    return values


@pytest.mark.parametrize("commit", [True, False])
def test_somebody_else_ends_a_prepared_transaction(kafka: Broker, name: str, *, commit: bool) -> None:
    with Line(kafka) as line:
        writer = owner_of(init(line, name))
        assert write(line, name, writer, b"prepared") == 0
        assert state_of(line, name) == ("Ongoing", 2**31 - 1)
        found = init(line, name, keep=True)
        assert ongoing_of(found) == writer
        owner = owner_of(found)
        assert owner == (writer[0], writer[1] + 1)
        assert end(line, name, writer, commit=commit).error_code == ErrorCode.PRODUCER_FENCED
        assert write(line, name, owner, b"more") == ErrorCode.INVALID_TXN_STATE
        answer = end(line, name, owner, commit=commit)
        assert answer.error_code == 0
        following = answer.producer_id, answer.producer_epoch
        assert following == (writer[0], writer[1] + 2)
        again = end(line, name, owner, commit=commit)
        assert (again.error_code, again.producer_id, again.producer_epoch) == (0, *following)
        assert write(line, name, writer, b"late", sequence=1) == ErrorCode.INVALID_PRODUCER_EPOCH
        assert committed(line, name) == ([b"prepared"] if commit else [])
        assert ongoing_of(init(line, name, keep=True)) == NOBODY


def test_without_the_wish_to_keep_it_a_prepared_transaction_is_aborted(kafka: Broker, name: str) -> None:
    with Line(kafka) as line:
        assert write(line, name, owner_of(init(line, name)), b"prepared") == 0
        assert ongoing_of(init(line, name)) == NOBODY
        assert committed(line, name) == []


def test_a_prepared_transaction_survives_that_the_broker_is_killed() -> None:
    with Broker(config=ON) as kafka:
        create_topic(kafka, "t")
        with Line(kafka) as line:
            writer = owner_of(init(line, "t"))
            assert write(line, "t", writer, b"prepared") == 0
        kafka.kill()
        kafka.start()
        with Line(kafka) as line:
            found = init(line, "t", keep=True)
            assert ongoing_of(found) == writer
        kafka.kill()
        kafka.start()
        with Line(kafka) as line:
            assert end(line, "t", owner_of(found), commit=True).error_code == 0
            assert committed(line, "t") == [b"prepared"]


def test_it_has_to_be_allowed() -> None:
    with Broker(config={"transaction.state.log.num.partitions": 1}) as closed, Line(closed) as line:
        for keep in (False, True):
            assert init(line, "t", keep=keep).error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert init(line, "t", two_phase=False, keep=True).error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert init(line, "t", two_phase=False).error_code == 0
