"""The session of a link with a broker of the source, beside the broker's own cache of sessions."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from barnabas.mirror.source_session import SourceSession, Wanted
from barnabas.protocol.base_message import ZERO_UUID
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.server.fetching.session_cache import FetchSessionCache

A, B, C = ("orders", 0), ("orders", 1), ("bills", 0)
IDS = {"orders": UUID(int=1), "bills": UUID(int=2)}
NAMES: dict[str | UUID, str] = {topic_id: name for name, topic_id in IDS.items()}


def at(key: tuple[str, int], offset: int, topic_id: UUID | None = None) -> Wanted:
    return Wanted(IDS[key[0]] if topic_id is None else topic_id, 5, offset, -1, 100)


def named(request: FetchRequest) -> dict[tuple[str, int], int]:
    return {(topic.topic, each.partition): each.fetch_offset for topic in request.topics for each in topic.partitions}


def forgotten(request: FetchRequest) -> set[tuple[str, int]]:
    return {(topic.topic, index) for topic in request.forgotten_topics_data for index in topic.partitions}


def test_only_changes_are_named_in_a_session() -> None:
    session = SourceSession()
    for key in (A, B, C):
        session.ask(key, at(key, 7))
    request, keys = session.next_request()
    assert (request.session_id, request.session_epoch) == (0, 0)
    assert named(request) == {A: 7, B: 7, C: 7}
    assert set(keys) == {A, B, C}
    session.receive(11)
    session.ask(A, at(A, 7))
    session.ask(B, at(B, 9))
    request, keys = session.next_request()
    assert (request.session_id, request.session_epoch, named(request), keys) == (11, 1, {B: 9}, [B])
    session.leave(C)
    request, _ = session.next_request()
    assert (request.session_epoch, named(request), forgotten(request)) == (2, {}, {C})
    session.ask(C, at(C, 7))
    request, _ = session.next_request()
    assert (named(request), forgotten(request)) == ({C: 7}, set())


def test_without_a_session_all_are_named_and_the_busy_one_comes_last() -> None:
    session = SourceSession()
    session.ask(A, at(A, 0))
    session.ask(B, at(B, 0))
    session.next_request()
    session.receive(0)
    session.ask(A, at(A, 5))
    request, keys = session.next_request()
    assert (request.session_id, request.session_epoch) == (0, 0)
    assert named(request) == {B: 0, A: 5}
    assert keys == [B, A]


def test_an_answer_is_found_by_id_and_by_name() -> None:
    session = SourceSession()
    session.ask(A, at(A, 3))
    assert session.find("orders", 0) is None  # not asked yet
    session.next_request()
    assert session.find(IDS["orders"], 0) == (A, at(A, 3))
    assert session.find("orders", 0) == (A, at(A, 3))
    assert session.find(IDS["bills"], 0) is None
    assert session.find("orders", 1) is None


def test_a_topic_without_id_begins_a_session_without_ids() -> None:
    session = SourceSession()
    session.ask(A, at(A, 0))
    session.next_request()
    session.receive(11)
    session.ask(C, at(C, 0, ZERO_UUID))
    request, _ = session.next_request()
    assert not session.uses_ids
    assert (request.session_id, named(request)) == (0, {A: 0, C: 0})
    session.leave(C)
    session.next_request()
    assert session.uses_ids


def test_a_topic_that_was_made_again_is_forgotten_under_its_old_id() -> None:
    session = SourceSession()
    session.ask(A, at(A, 4))
    session.next_request()
    session.receive(11)
    session.ask(A, at(A, 0, UUID(int=9)))
    request, _ = session.next_request()
    assert [topic.topic_id for topic in request.forgotten_topics_data] == [IDS["orders"]]
    assert [topic.topic_id for topic in request.topics] == [UUID(int=9)]


Change = st.tuples(st.sampled_from([A, B, C]), st.integers(-1, 3))  # -1: leave


@given(st.lists(st.tuples(st.lists(Change, max_size=4), st.booleans()), max_size=12))
def test_the_source_always_knows_what_is_wanted(rounds: list[tuple[list[tuple[tuple[str, int], int]], bool]]) -> None:
    ids = iter(range(1, 1000))
    cache = FetchSessionCache(10, lambda: next(ids), 0)
    session = SourceSession()
    wanted: dict[tuple[str, int], int] = {}
    for changes, is_lost in rounds:
        for key, offset in changes:
            if offset < 0:
                session.leave(key)
                wanted.pop(key, None)
            else:
                session.ask(key, at(key, offset))
                wanted[key] = offset
        request, _ = session.next_request()
        context = cache.open(request, 17, 0)
        assert context.error == 0
        found = context.named if context.session is None else list(context.session.partitions.values())
        assert {(NAMES[each.topic], each.index): each.fetch_offset for each in found} == wanted
        if is_lost:
            session.restart()
        else:
            session.receive(context.session_id)
