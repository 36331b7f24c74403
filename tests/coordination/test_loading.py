"""The state of a shard after loading, which skips most records, compared with a shard that replayed every record."""

from __future__ import annotations

import asyncio
from itertools import product
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from barnabas.coordination import hosted_shard as loading
from barnabas.coordination.group_records import GroupMetadataValue, OffsetCommitValue, group_record, offset_record
from barnabas.coordination.group_shard import GroupShard
from barnabas.coordination.hosted_shard import HostedShard, read_into
from barnabas.coordination.interfaces import LogEntry
from barnabas.coordination.result import NO_PRODUCER, Now
from barnabas.coordination.version_prefix import Record
from barnabas.testing.no_topics import NoTopics
from tests.coordination.support import Config, MemoryLog

GROUPS, TOPICS, PRODUCERS = ("g", "h"), ("t", "u"), (7, 8)
START = Now(0, 0)


def commit(group: str, topic: str, offset: int | None, producer_id: int = NO_PRODUCER) -> LogEntry:
    value = None if offset is None else OffsetCommitValue(offset=offset)
    return LogEntry(offset_record(group, topic, 0, value), producer_id)


def once(entry: LogEntry) -> LogEntry:
    """With a key as the first versions of Kafka wrote it."""
    assert entry.record is not None
    return LogEntry((b"\0\0" + entry.record[0][2:], entry.record[1]))


def generation(group: str, number: int | None) -> LogEntry:
    value = None if number is None else GroupMetadataValue(protocol_type="consumer", generation=number)
    return LogEntry(group_record(group, value))


groups, topics, numbers = st.sampled_from(GROUPS), st.sampled_from(TOPICS), st.integers(0, 9)
plain = st.builds(commit, groups, topics, numbers)
entries = st.one_of(
    plain,
    plain,
    plain,
    plain.map(once),
    st.builds(commit, groups, topics, st.none()),
    st.builds(commit, groups, topics, numbers, st.sampled_from(PRODUCERS)),
    st.builds(LogEntry, st.none(), st.sampled_from(PRODUCERS), st.booleans()),
    st.builds(generation, groups, st.one_of(numbers, st.none())),
)


def known(shard: GroupShard) -> tuple[Any, ...]:
    found = {place[:3]: place[3] for place in shard.offsets.all()}
    pending = [place for place in product(GROUPS, TOPICS) if shard.offsets._pending.is_pending((*place, 0))]
    return found, {name: group.describe().__repr__() for name, group in shard.groups.items()}, pending


async def loaded(log: list[LogEntry]) -> GroupShard:
    memory = MemoryLog(1)
    memory.partitions[0] = log
    hosted = HostedShard(0, GroupShard(Config(), START, NoTopics()))
    await read_into(hosted, memory, "group", lambda: True)
    return hosted.shard


@pytest.mark.parametrize("most_held", [2, 1000])
@given(log=st.lists(entries, max_size=40))
@example(log=[commit("g", "t", 1), commit("g", "t", 2, 7), LogEntry(None, 7, commit=True), commit("g", "t", 3)])
@example(log=[commit("g", "t", 1, 7), commit("g", "t", 2), LogEntry(None, 7, commit=True)])
@example(log=[commit("g", "t", 1), generation("g", None), commit("h", "t", 1), commit("g", "t", None)])
@example(log=[commit("g", "t", 1), once(commit("g", "t", 2)), commit("g", "t", 3)])
def test_what_was_passed_over_is_not_missing(most_held: int, log: list[LogEntry]) -> None:
    taken = GroupShard(Config(), START, NoTopics())
    for entry in log:
        if entry.record is None:
            taken.replay_end(entry.producer_id, commit=entry.commit)
        else:
            taken.replay(entry.record, entry.producer_id)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "MOST_HELD", most_held)
        shard = asyncio.run(loaded(log))
    assert known(shard) == known(taken)
    for producer_id in PRODUCERS:
        for each in (shard, taken):
            each.replay_end(producer_id, commit=True)
        assert known(shard) == known(taken)


def test_of_what_is_committed_again_and_again_the_last_alone_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    replayed: list[Record] = []
    replay = GroupShard.replay

    def counted(shard: GroupShard, record: Record, producer_id: int = NO_PRODUCER) -> None:
        replayed.append(record)
        replay(shard, record, producer_id)

    monkeypatch.setattr(GroupShard, "replay", counted)
    shard = asyncio.run(loaded([commit("g", topic, offset) for offset in range(500) for topic in TOPICS]))
    assert len(replayed) == len(TOPICS)
    assert {offset for *_, offset in shard.offsets.all()} == {499}
