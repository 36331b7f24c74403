"""Fetch sessions as a core: requests in, contexts out, beside a fetcher that keeps the full picture itself."""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import Any
from uuid import UUID

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.errors import ErrorCode
from barnabas.protocol.fetch_request import MAX_EPOCH
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, ReplicaState
from barnabas.replication.offline_partition import OfflinePartition
from barnabas.server.fetching.fetch_session import FetchContext
from barnabas.server.fetching.session_cache import FINAL_EPOCH, INITIAL_EPOCH, FetchSessionCache

VERSION = 12
EVICTION_MS = 120_000


def sessions(slots: int = 10) -> FetchSessionCache:
    ids = iter(range(1, 1_000_000))
    return FetchSessionCache(slots, lambda: next(ids), EVICTION_MS)


def request(
    partitions: dict[tuple[str, int], int],
    session_id: int = 0,
    epoch: int = INITIAL_EPOCH,
    forgotten: list[tuple[str, int]] | None = None,
    replica_id: int = -1,
) -> FetchRequest:
    topics = [
        FetchTopic(topic=topic, partitions=[FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=100)])
        for (topic, index), offset in partitions.items()
    ]
    dropped = [ForgottenTopic(topic=topic, partitions=[index]) for topic, index in forgotten or []]
    return FetchRequest(
        replica_id=replica_id, session_id=session_id, session_epoch=epoch, topics=topics, forgotten_topics_data=dropped
    )


def asked(context: FetchContext) -> dict[tuple[object, int], int]:
    return {(p.topic, p.index): p.fetch_offset for p in context.partitions}


def test_a_full_fetch_makes_a_session_and_the_next_one_says_only_what_changed() -> None:
    cache = sessions()
    first = cache.open(request({("a", 0): 5, ("b", 1): 7}), VERSION, 0)
    assert (first.session_id, first.is_incremental) == (1, False)
    second = cache.open(request({("a", 0): 6}, 1, 1), VERSION, 1)
    assert second.is_incremental
    assert asked(second) == {("a", 0): 6, ("b", 1): 7}
    third = cache.open(request({}, 1, 2, forgotten=[("a", 0)]), VERSION, 2)
    assert asked(third) == {("b", 1): 7}


@pytest.mark.parametrize("replica_id", [-1, 2])
def test_a_follower_that_names_a_partition_again_is_told_everything_again(replica_id: int) -> None:
    cache = sessions()
    ask = partial(request, replica_id=replica_id)
    (wanted,) = cache.open(ask({("a", 0): 5}), VERSION, 0).partitions
    tell = partial(wanted.tell, error_code=0, high_watermark=9, log_start_offset=2, has_records=False)
    assert tell()
    assert not tell()
    cache.open(ask({("a", 0): 7}, 1, 1), VERSION, 1)
    assert tell() == (replica_id >= 0), "a follower may have dropped the last answer, a consumer has not"
    assert not tell()


@pytest.mark.parametrize("replica_id", [-1, 2])
def test_a_partition_whose_disk_failed_has_no_news(replica_id: int) -> None:
    (wanted,) = sessions().open(request({("a", 0): 5}, replica_id=replica_id), VERSION, 0).partitions
    failed = OfflinePartition("a", UUID(int=1), 0, leader_id=1, leader_epoch=0)
    wanted.follow(failed)
    assert wanted.partition is None, "it hears of nothing there"


def test_wrong_sessions_and_epochs_are_told_apart() -> None:
    cache = sessions()
    cache.open(request({("a", 0): 0}), VERSION, 0)
    assert cache.open(request({}, 9, 1), VERSION, 0).error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert cache.open(request({}, 1, 2), VERSION, 0).error is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert cache.open(request({}, 1, 1), 13, 0).error is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert cache.open(request({}, 1, 1), VERSION, 0).error is ErrorCode.NONE


def test_a_final_epoch_ends_the_session_and_gives_none() -> None:
    cache = sessions()
    cache.open(request({("a", 0): 0}), VERSION, 0)
    last = cache.open(request({("a", 0): 3}, 1, FINAL_EPOCH), VERSION, 0)
    assert (last.session_id, asked(last), len(cache)) == (0, {("a", 0): 3}, 0)


def test_epochs_wrap_to_one() -> None:
    cache = sessions()
    session = cache.open(request({("a", 0): 0}), VERSION, 0).session
    assert session is not None
    session.epoch = MAX_EPOCH
    assert cache.open(request({}, 1, MAX_EPOCH), VERSION, 0).error is ErrorCode.NONE
    assert session.epoch == 1


def test_a_full_cache_keeps_the_young_and_gives_up_the_long_unused() -> None:
    cache = sessions(slots=1)
    assert cache.open(request({("a", 0): 0}), VERSION, 0).session_id == 1
    assert cache.open(request({("b", 0): 0}), VERSION, EVICTION_MS).session_id == 0
    assert cache.open(request({("b", 0): 0}), VERSION, EVICTION_MS + 1).session_id == 2
    assert cache.open(request({}, 1, 1), VERSION, EVICTION_MS + 1).error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_fetcher_of_a_follower_has_one_session() -> None:
    cache = sessions()
    begun = [cache.open(request({("a", 0): 0}, replica_id=2), VERSION, 0).session for _ in range(4)]
    for session, fetcher in zip(
        begun, ("broker-2-fetcher-0", "broker-2-fetcher-1", "broker-3-fetcher-0", "broker-2-fetcher-0"), strict=True
    ):
        assert session is not None
        cache.take_place(session, fetcher)
    consumers = cache.open(request({("a", 0): 0}), VERSION, 0).session
    assert consumers is not None
    assert [session is not None and cache.find(session.session_id) is session for session in begun] == [False, True, True, True]
    assert [session is not None and session.closed for session in begun] == [True, False, False, False]
    assert cache.open(request({("a", 0): 0}, 1, 1, replica_id=2), VERSION, 0).error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize(
    "change",
    [
        {"isolation_level": 1},
        {"rack_id": "r"},
        {"replica_id": 2},
        {"replica_state": ReplicaState(replica_epoch=5)},
        {"version": 11},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_request_with_other_parameters_looks_at_every_partition_again(change: dict[str, Any]) -> None:
    cache, places = sessions(), {("a", 0): 5, ("b", 1): 7}
    session = cache.open(request(places), VERSION, 0).session
    assert session is not None
    epochs = count(1)

    def looked_at(**fields: Any) -> dict[tuple[object, int], int]:
        """By a request that names no partition; afterwards all rest."""
        asking, version = request({}, session.session_id, next(epochs)), fields.pop("version", VERSION)
        for name, value in fields.items():
            setattr(asking, name, value)
        found = asked(cache.open(asking, version, 0))
        session.pending.clear()
        return found

    session.pending.clear()
    assert looked_at() == {}
    assert looked_at(**change) == places
    assert session.is_of_follower == ("replica_id" in change)
    assert looked_at(**change) == {}
    assert looked_at() == places
    assert not session.is_of_follower


def test_an_incremental_answer_says_what_the_last_one_did_not() -> None:
    cache = sessions()
    partition = cache.open(request({("a", 0): 0}), VERSION, 0).partitions[0]

    def tell(error_code: int = 0, high_watermark: int = 5, *, has_records: bool = False) -> bool:
        return partition.tell(error_code=error_code, high_watermark=high_watermark, log_start_offset=0, has_records=has_records)

    assert [tell(), tell(), tell(has_records=True), tell(high_watermark=6), tell(high_watermark=6)] == [
        True,
        False,
        True,
        True,
        False,
    ]
    assert [tell(error_code=3), tell(high_watermark=6)] == [True, True]


class AgainstAFetcher(RuleBasedStateMachine):
    """A fetcher adds, moves and drops partitions at random: its session always knows its partitions exactly."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = sessions()
        self.wanted: dict[tuple[str, int], int] = {}
        self.session_id = 0
        self.epoch = 0
        self.seen: dict[tuple[object, int], int] = {}

    partition = st.tuples(st.sampled_from("ab"), st.integers(0, 2))

    @rule(first=st.dictionaries(partition, st.integers(0, 9), min_size=1, max_size=4))
    def begin(self, first: dict[tuple[str, int], int]) -> None:
        context = self.cache.open(request(first, self.session_id, INITIAL_EPOCH), VERSION, 0)
        self.wanted, self.session_id, self.epoch = dict(first), context.session_id, 1
        self.seen = asked(context)

    @precondition(lambda self: self.session_id)
    @rule(changes=st.dictionaries(partition, st.integers(0, 9), max_size=3), data=st.data())
    def go_on(self, changes: dict[tuple[str, int], int], data: st.DataObject) -> None:
        drops = data.draw(st.lists(st.sampled_from(sorted(self.wanted)), max_size=2, unique=True))
        drops = [drop for drop in drops if drop not in changes]
        self.wanted = {key: offset for key, offset in {**self.wanted, **changes}.items() if key not in drops}
        context = self.cache.open(request(changes, self.session_id, self.epoch, drops), VERSION, 0)
        self.seen = asked(context)
        self.epoch += 1
        if not self.wanted:
            self.session_id = 0

    @invariant()
    def the_session_is_what_was_asked(self) -> None:
        assert self.seen == self.wanted
        assert len(self.cache) == (1 if self.session_id else 0)


TestAgainstAFetcher = AgainstAFetcher.TestCase
