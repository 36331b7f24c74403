"""Transactions as plans: which coordinator is asked, what is tried again, what is handed on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from barnabas.client import transactions
from barnabas.client.cluster import Broker, Cluster
from barnabas.client.config import ClientConfig
from barnabas.client.errors import ConnectionFailed, ResourceError, TimedOut, UnsupportedRequest
from barnabas.client.transactions import Initialised, Owner
from barnabas.client.wire import Wire
from barnabas.error_codes import ErrorCode
from barnabas.protocol.base_message import Message
from barnabas.protocol.codec import encode
from barnabas.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from barnabas.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from barnabas.protocol.messages.list_transactions import TransactionState as Listed
from barnabas.protocol.messages.metadata import MetadataRequest
from tests.client.fakes import FakeShell, metadata

CONFIG = ClientConfig((("127.0.0.1", 9092),), default_api_timeout_ms=1_000)


def shell(answer: Callable[[Message, int], Any], coordinators: dict[str, int] | None = None) -> FakeShell:
    """A cluster whose coordinators are where `coordinators` says (broker 1 unless named)."""

    def respond(request: Message, node_id: int) -> Any:
        if isinstance(request, MetadataRequest):
            return metadata({})
        if isinstance(request, FindCoordinatorRequest):
            keys = request.coordinator_keys
            return FindCoordinatorResponse(
                coordinators=[Coordinator(key=k, node_id=(coordinators or {}).get(k, 1)) for k in keys]
            )
        return answer(request, node_id)

    return FakeShell(respond)


def test_an_idempotent_producer_asks_anyone() -> None:
    fake = shell(lambda *_: InitProducerIdResponse(producer_id=4, producer_epoch=0, ongoing_txn_producer_id=-1))
    assert fake.run(transactions.init_producer_id(CONFIG, Cluster(), None)) == Initialised(Owner(4, 0))


def test_two_phase_commit_is_asked_for_and_what_was_kept_is_told() -> None:
    response = InitProducerIdResponse(producer_id=4, producer_epoch=6, ongoing_txn_producer_id=4, ongoing_txn_producer_epoch=5)
    fake = shell(lambda *_: response, {"x": 2})
    plan = transactions.init_producer_id(CONFIG, Cluster(), "x", two_phase=True, keep_prepared=True, expected=Owner(4, 5))
    assert fake.run(plan) == Initialised(Owner(4, 6), Owner(4, 5))
    node_id, request = fake.sent[-1]
    assert isinstance(request, InitProducerIdRequest)
    assert (node_id, request.enable2_pc, request.keep_prepared_txn) == (2, True, True)
    assert (request.producer_id, request.producer_epoch) == (4, 5)


def test_two_phase_commit_is_not_asked_for_in_a_version_that_cannot_say_it() -> None:
    wire = Wire("test")
    wire.send_hello()
    spoken = [ApiVersion(api_key=22, min_version=0, max_version=5), ApiVersion(api_key=18, min_version=0, max_version=4)]
    wire.receive_hello(bytes(4) + encode(ApiVersionsResponse(api_keys=spoken), 4))
    assert wire.version_of(InitProducerIdRequest) == 5
    with pytest.raises(UnsupportedRequest, match="InitProducerId: the broker speaks versions 0 to 5, we speak 6 to 6"):
        wire.version_of(InitProducerIdRequest, at_least=transactions.FIRST_TWO_PHASE)


def test_an_end_under_way_is_waited_for_a_few_milliseconds_at_a_time() -> None:
    codes = iter([ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NONE])
    fake = shell(lambda *_: InitProducerIdResponse(error_code=next(codes), producer_id=1, producer_epoch=2))
    fake.run(transactions.init_producer_id(CONFIG, Cluster(), "x"))
    assert fake.pauses == [5, 10]


def test_a_fenced_producer_is_told_at_once() -> None:
    fake = shell(lambda *_: InitProducerIdResponse(error_code=ErrorCode.PRODUCER_FENCED))
    with pytest.raises(ResourceError, match="transactional id x: PRODUCER_FENCED"):
        fake.run(transactions.init_producer_id(CONFIG, Cluster(), "x", expected=Owner(1, 1)))
    assert fake.pauses == []


def test_ends_go_out_together_and_only_those_without_an_answer_again() -> None:
    gone = {"b"}

    def answer(request: Message, node_id: int) -> Any:
        assert isinstance(request, EndTxnRequest)
        if request.transactional_id in gone:
            gone.clear()
            raise ConnectionFailed("127.0.0.1:9002", "refused")
        if request.transactional_id == "c":
            return EndTxnResponse(error_code=ErrorCode.INVALID_TXN_STATE)
        return EndTxnResponse(producer_id=request.producer_id, producer_epoch=request.producer_epoch + 1)

    fake = shell(answer, {"a": 1, "b": 2, "c": 1})
    owners = {name: Owner(number, 0) for number, name in enumerate("abc")}
    ended = fake.run(transactions.end_transactions(CONFIG, Cluster(), owners, commit=True, second_version=True))
    assert ended == {"a": Owner(0, 1), "b": Owner(1, 1), "c": ErrorCode.INVALID_TXN_STATE}
    sent = [(node, r.transactional_id) for node, r in fake.sent if isinstance(r, EndTxnRequest)]
    assert sent == [(1, "a"), (2, "b"), (1, "c"), (2, "b")]


def test_without_the_second_version_the_owner_stays() -> None:
    fake = shell(lambda *_: EndTxnResponse())
    ended = fake.run(transactions.end_transactions(CONFIG, Cluster(), {"a": Owner(3, 4)}, commit=False, second_version=False))
    assert ended == {"a": Owner(3, 4)}


def test_a_coordinator_that_moved_is_looked_for() -> None:
    places = {"a": 1}

    def answer(request: Message, node_id: int) -> Any:
        if node_id == 1:
            places["a"] = 2
            return EndTxnResponse(error_code=ErrorCode.NOT_COORDINATOR)
        return EndTxnResponse(producer_id=3, producer_epoch=5)

    fake = shell(answer, places)
    ended = fake.run(transactions.end_transactions(CONFIG, Cluster(), {"a": Owner(3, 4)}, commit=True, second_version=True))
    assert ended == {"a": Owner(3, 5)}


def test_patience_ends() -> None:
    fake = shell(lambda *_: EndTxnResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    with pytest.raises(TimedOut, match="COORDINATOR_LOAD_IN_PROGRESS"):
        fake.run(transactions.end_transactions(CONFIG, Cluster(), {"a": Owner(3, 4)}, commit=True, second_version=True))


def test_every_broker_lists_and_only_known_ids_are_described() -> None:
    def answer(request: Message, node_id: int) -> Any:
        if isinstance(request, ListTransactionsRequest):
            return ListTransactionsResponse(
                transaction_states=[Listed(transactional_id=f"of {node_id}", transaction_state="Ongoing")]
            )
        assert isinstance(request, DescribeTransactionsRequest)
        (name,) = request.transactional_ids
        code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND if name == "gone" else ErrorCode.NONE
        state = TransactionState(
            error_code=code, transactional_id=name, transaction_state="Empty", producer_id=1, producer_epoch=2
        )
        return DescribeTransactionsResponse(transaction_states=[state])

    fake = shell(answer)
    assert fake.run(transactions.list_transactions(CONFIG, Cluster(), ["Ongoing"])) == {"of 1": "Ongoing", "of 2": "Ongoing"}
    found = fake.run(transactions.describe_transactions(CONFIG, Cluster(), ["here", "gone"]))
    assert {name: each.owner for name, each in found.items()} == {"here": Owner(1, 2)}


def test_brokers_that_are_known_list_at_once_and_the_others_afterwards() -> None:
    def answer(request: Message, node_id: int) -> Any:
        assert isinstance(request, ListTransactionsRequest)
        if node_id == 3:
            raise ConnectionFailed("broker 3", "refused")
        return ListTransactionsResponse(
            transaction_states=[Listed(transactional_id=f"of {node_id}", transaction_state="Ongoing")]
        )

    fake, cluster = shell(answer), Cluster()
    cluster.brokers = {1: Broker(1, "127.0.0.1", 1), 3: Broker(3, "127.0.0.1", 3)}  # broker 3 has left, and broker 2 has joined
    assert fake.run(transactions.list_transactions(CONFIG, cluster, ["Ongoing"])) == {"of 1": "Ongoing", "of 2": "Ongoing"}
    assert [node for node, request in fake.sent if isinstance(request, ListTransactionsRequest)] == [1, 3, 2]
    assert fake.pauses == []
