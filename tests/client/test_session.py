"""Fetch sessions: what is sent after what was answered."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.config import ClientConfig
from barnabas.client.errors import PartitionError
from barnabas.client.results import Fetched
from barnabas.client.session import FetchSession, Wanted
from barnabas.error_codes import ErrorCode
from barnabas.errors import KafkaError
from barnabas.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData

CONFIG = ClientConfig((("127.0.0.1", 9092),))
A, B = UUID(int=1), UUID(int=2)
Sent = dict[tuple[str, int], int]


def sent(request: FetchRequest) -> Sent:
    return {(t.topic, p.partition): p.fetch_offset for t in request.topics for p in t.partitions}


def forgotten(request: FetchRequest) -> set[tuple[str, int]]:
    return {(t.topic, p) for t in request.forgotten_topics_data for p in t.partitions}


def test_later_requests_name_only_what_changed() -> None:
    session = FetchSession(CONFIG)
    first = session.request({("a", 0): Wanted(A, 0), ("b", 0): Wanted(B, 0)})
    assert (first.session_id, first.session_epoch, sent(first)) == (0, 0, {("a", 0): 0, ("b", 0): 0})
    item = PartitionData(partition_index=0, records=b"x", high_watermark=3)
    answer = FetchResponse(session_id=77, responses=[FetchableTopicResponse(topic_id=A, partitions=[item])])
    (result,) = session.receive(answer).items()
    assert result[0] == ("a", 0)
    assert isinstance(result[1], Fetched)
    second = session.request({("a", 0): Wanted(A, 3), ("b", 0): Wanted(B, 0)})
    assert (second.session_id, second.session_epoch, sent(second)) == (77, 1, {("a", 0): 3})
    session.receive(FetchResponse(session_id=77))
    third = session.request({("a", 0): Wanted(A, 3)})
    assert (third.session_epoch, sent(third), forgotten(third)) == (2, {}, {("b", 0)})


def test_a_topic_made_anew_is_forgotten_under_its_old_id_and_named_under_the_new() -> None:
    session = FetchSession(CONFIG)
    session.request({("a", 0): Wanted(A, 9)})
    session.receive(FetchResponse(session_id=1))
    request = session.request({("a", 0): Wanted(B, 0)})
    assert [t.topic_id for t in request.topics] == [B]
    assert [t.topic_id for t in request.forgotten_topics_data] == [A]


@pytest.mark.parametrize("code", [ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH])
def test_a_session_that_the_broker_lost_is_opened_anew(code: ErrorCode) -> None:
    session = FetchSession(CONFIG)
    session.request({("a", 0): Wanted(A, 0)})
    session.receive(FetchResponse(session_id=5))
    session.request({("a", 0): Wanted(A, 1)})
    with pytest.raises(KafkaError) as caught:
        session.receive(FetchResponse(error_code=code))
    assert caught.value.code.retriable
    again = session.request({("a", 0): Wanted(A, 1)})
    assert (again.session_id, again.session_epoch, sent(again)) == (0, 0, {("a", 0): 1})


def test_a_broker_without_sessions_gets_full_requests() -> None:
    session = FetchSession(CONFIG)
    for offset in range(3):
        request = session.request({("a", 0): Wanted(A, offset), ("b", 0): Wanted(B, 0)})
        assert (request.session_epoch, len(sent(request))) == (0, 2)
        session.receive(FetchResponse(session_id=0))


def test_errors_of_partitions_are_told_apart() -> None:
    session = FetchSession(CONFIG)
    session.request({("a", 0): Wanted(A, 0)})
    item = PartitionData(partition_index=0, error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    found = session.receive(FetchResponse(session_id=1, responses=[FetchableTopicResponse(topic_id=A, partitions=[item])]))
    assert isinstance(found["a", 0], PartitionError)


@given(st.lists(st.dictionaries(st.tuples(st.sampled_from("abc"), st.integers(0, 2)), st.integers(0, 3)), max_size=12))
def test_the_brokers_view_is_always_what_is_wanted(steps: list[Sent]) -> None:
    session = FetchSession(CONFIG)
    view: Sent = {}
    for wanted in steps:
        request = session.request({tp: Wanted(UUID(int=ord(tp[0])), offset) for tp, offset in wanted.items()})
        if request.session_epoch == 0:
            view = {}
        view = {tp: offset for tp, offset in {**view, **sent(request)}.items() if tp not in forgotten(request)}
        assert view == wanted
        session.receive(FetchResponse(session_id=9))
