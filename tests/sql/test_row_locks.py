"""The locks of rows, without a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from barnabas import limits
from barnabas.sql.interface import SqlError
from barnabas.sql.writing.locks import Holder, RowLocks
from tests.waiting import wait_until


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def take(holder: Holder, *names: bytes, topic: str = "t") -> bool:
    return holder.take(topic, names or None, lambda: None, None)


def refused(holder: Holder, *names: bytes, topic: str = "t") -> bool:
    """Whether somebody else holds them."""
    try:
        holder.take(topic, names or None, lambda: None, 0)
    except SqlError as error:
        return error.sqlstate == "55P03"
    return False


def waiting(locks: RowLocks, threads: ThreadPoolExecutor, holder: Holder, *names: bytes, topic: str = "t") -> Future[bool]:
    before = locks.waiting
    found = threads.submit(take, holder, *names, topic=topic)
    wait_until(lambda: locks.waiting > before, "it waits")
    return found


def test_what_others_changed_is_told() -> None:
    locks = RowLocks()
    first, second = locks.holder(), locks.holder()
    first.look()
    second.look()
    assert not take(first, b"a")
    first.release(changed=True)
    assert not take(second, b"b")
    assert take(second, b"a")
    assert not take(second, b"a")  # it has it
    second.release(changed=False)
    first.look()
    assert not take(first, b"a", b"b")


def test_few_releases_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SQL_RELEASED_LOCKS", 2)
    locks = RowLocks()
    first, second = locks.holder(), locks.holder()
    second.look()
    for name in (b"a", b"b", b"c"):
        take(first, name)
        first.release(changed=True)
    assert take(second, b"other")  # one is forgotten, so each name may be it
    second.release(changed=False)
    second.look()
    assert not take(second, b"other")


def test_the_ends_of_few_topics_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SQL_LOCKED_TOPICS", 2)
    locks = RowLocks()
    for name in ("a", "b", "a", "c"):
        locks.wrote((name, "id"), {0: 7, 1: 9})
    locks.wrote(("a", "id"), {0: 8, 1: 5})
    assert [locks.ends((name, "id")) for name in ("a", "b", "c")] == [{0: 8, 1: 9}, {}, {0: 7, 1: 9}]


def test_many_names_are_the_whole_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SQL_ROW_LOCKS", 2)
    locks = RowLocks()
    first, second = locks.holder(), locks.holder()
    take(first, b"a", b"b")
    assert not refused(second, b"c")
    assert refused(first, b"d")  # the second one has a name
    second.release(changed=False)
    take(first, b"d")
    assert refused(second, b"e")
    assert not refused(second, b"e", topic="u")
    first.release(changed=True)
    assert take(second, b"e")
    second.release(changed=False)
    assert (locks.owners, locks.topics) == ({}, {})


def test_one_that_waits_for_a_topic_is_next(threads: ThreadPoolExecutor) -> None:
    locks = RowLocks()
    first, second, third = (locks.holder() for _ in range(3))
    take(first, b"a")
    whole = waiting(locks, threads, second)
    assert refused(third, b"b")
    assert not refused(first, b"c")  # it must go on, or the second one waits for ever
    first.release(changed=True)
    assert whole.result()
    assert refused(third, b"b")
    second.release(changed=False)
    assert not refused(third, b"b")


def test_one_that_waited_for_a_name_is_seen_by_one_that_wants_the_topic(threads: ThreadPoolExecutor) -> None:
    locks = RowLocks()
    first, second, third = (locks.holder() for _ in range(3))
    take(first, b"a")
    found = waiting(locks, threads, second, b"a")
    first.release(changed=False)
    assert not found.result()
    assert refused(third)
    second.release(changed=False)
    assert not refused(third)


def test_a_whole_topic_that_was_released_is_newer() -> None:
    locks = RowLocks()
    first, second, third = (locks.holder() for _ in range(3))
    for each in (second, third):
        each.look()
    take(first)
    take(first, b"x", topic="u")
    first.release(changed=True)
    assert take(second, b"a")
    assert not take(second, b"a", topic="u")
    second.release(changed=False)
    assert take(third, topic="u")  # some row of it has changed
    assert not take(third, topic="v")


def test_a_circle_is_found(threads: ThreadPoolExecutor) -> None:
    locks = RowLocks()
    holders = [locks.holder() for _ in range(3)]
    names = [b"a", b"b", b"c"]
    for holder, name in zip(holders, names, strict=True):
        take(holder, name)
    found = [waiting(locks, threads, holders[place], names[place + 1]) for place in range(2)]
    with pytest.raises(SqlError) as caught:
        take(holders[2], b"a")
    assert caught.value.sqlstate == "40P01"
    for place in (2, 1, 0):
        holders[place].release(changed=False)
        assert not any(each.result() for each in found[max(place - 1, 0) : place])
    assert (locks.owners, locks.topics, locks.waiting) == ({}, {}, 0)


def test_offsets_are_those_of_the_topic() -> None:
    locks = RowLocks()
    locks.wrote(("t", "1"), {0: 5, 1: 2})
    locks.wrote(("t", "1"), {0: 3, 1: 4})
    assert locks.ends(("t", "1")) == {0: 5, 1: 4}
    assert locks.ends(("t", "2")) == {}


def test_offsets_are_awaited_for_a_while_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic that has lost its end would stop each statement for ever."""
    locks = RowLocks()
    locks.wrote(("t", "1"), {0: 5})
    monkeypatch.setattr("barnabas.sql.writing.locks.ENDS_S", 0)
    assert locks.ends(("t", "1")) == {}
