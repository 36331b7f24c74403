"""The fields of a follower's requests to its leader, and the responses that it may accept."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

from barnabas.protocol.messages.fetch import FetchRequest, ReplicaState
from barnabas.replication.follower_state import Position
from barnabas.server.replication.leader_session import LeaderSession

TOPIC_ID = UUID(int=5)
REPLICA = ReplicaState(replica_id=2, replica_epoch=9)


def partition(index: int, offset: int = 0) -> Any:
    return cast(Any, SimpleNamespace(topic_id=TOPIC_ID, index=index, position=Position(offset, -1, 0, 4)))


def request(session: LeaderSession) -> tuple[int, FetchRequest]:
    return session.next_request(REPLICA, partition_max_bytes=100)


def named(asked: FetchRequest) -> dict[int, int]:
    return {p.partition: p.fetch_offset for topic in asked.topics for p in topic.partitions}


def test_a_session_names_only_what_changed() -> None:
    session, first, second = LeaderSession(), partition(0), partition(1)
    session.ask(first)
    session.ask(second)
    number, asked = request(session)
    assert (named(asked), asked.session_id, asked.session_epoch) == ({0: 0, 1: 0}, 0, 0)
    assert session.receive(number, 77)
    first.position = Position(5, 4, 0, 4)
    session.ask(first)
    session.ask(second)  # at the same position
    number, asked = request(session)
    assert (named(asked), asked.session_id, asked.session_epoch) == ({0: 5}, 77, 1)
    session.leave(second)
    _, asked = request(session)
    assert named(asked) == {}
    assert [(t.topic_id, t.partitions) for t in asked.forgotten_topics_data] == [(TOPIC_ID, [1])]
    assert asked.session_epoch == 2


def test_without_a_session_everything_is_named_each_time() -> None:
    session = LeaderSession()
    session.ask(partition(0))
    number, _ = request(session)
    assert session.receive(number, 0)
    assert not session.is_open
    assert named(request(session)[1]) == {0: 0}


def test_only_what_is_to_begin_a_session_does_not_wait() -> None:
    session = LeaderSession()
    session.ask(partition(0))
    assert not session.may_wait
    number, _ = request(session)
    assert not session.may_wait
    session.receive(number, 0)
    assert session.may_wait, "else it would ask again and again where the leader has no place for a session"
    number, _ = request(session)
    session.receive(number, 77)
    assert session.may_wait
    session.restart()
    assert not session.may_wait


def test_an_answer_from_before_a_new_position_is_void() -> None:
    session, followed = LeaderSession(), partition(0)
    session.ask(followed)
    older, _ = request(session)
    session.receive(older, 77)
    followed.position = Position(3, 4, 0, 5)
    session.ask(followed)
    newer, _ = request(session)
    assert session.position_told((TOPIC_ID.int, 0), older) is None
    assert session.position_told((TOPIC_ID.int, 0), newer) == followed.position


def test_a_restart_voids_what_is_under_way_and_names_everything() -> None:
    session = LeaderSession()
    session.ask(partition(0))
    number, _ = request(session)
    session.receive(number, 77)
    number, _ = request(session)
    session.restart()
    assert not session.receive(number, 77)
    _, asked = request(session)
    assert (named(asked), asked.session_id, asked.session_epoch) == ({0: 0}, 0, 0)
