"""OffsetCommit and OffsetFetch 0, which kept offsets in ZooKeeper, and OffsetCommit 1, which says its time itself."""

from __future__ import annotations

import time

from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from tests.differential.talk import Talk


def _commit(
    group: str, topic: str, offset: int, metadata: str | None = "", *, partition: int = 0, at_ms: int = -1
) -> OffsetCommitRequest:
    place = OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_metadata=metadata, commit_timestamp=at_ms
    )
    topics = [OffsetCommitRequestTopic(name=topic, partitions=[place])]
    return OffsetCommitRequest(group_id=group, member_id="", generation_id_or_member_epoch=-1, topics=topics)


def _fetch(group: str, topic: str, *partitions: int) -> OffsetFetchRequest:
    return OffsetFetchRequest(group_id=group, topics=[OffsetFetchRequestTopic(name=topic, partition_indexes=list(partitions))])


def _ask_newer(talk: Talk, step: str, group: str, topic: str) -> None:
    talk.line.send(_fetch(group, topic, 0), 1)
    talk.hear(f"OffsetFetch v1 {step}", 1)


def offsets_of_old(talk: Talk) -> None:
    topic, group = talk.create("events", 2), talk.name("group")
    talk.ask("before a commit", _fetch(group, topic, 0, 1), 0)
    talk.ask("offset 5", _commit(group, topic, 5, "note"), 0)
    talk.ask("after a commit", _fetch(group, topic, 0, 1), 0)
    talk.ask("offset 7, null metadata", _commit(group, topic, 7, None), 0)
    talk.ask("after another", _fetch(group, topic, 0), 0)
    _ask_newer(talk, "committed in version 0", group, topic)
    talk.ask("a negative offset", _commit(group, topic, -1), 0)
    talk.ask("an absent partition", _commit(group, topic, 1, partition=9), 0)
    talk.ask("an absent topic", _commit(group, talk.name("absent"), 1), 0)
    talk.ask("a wrong name", _commit(group, "a/b", 1), 0)
    talk.ask("long metadata", _commit(group, topic, 1, "m" * 5000), 0)
    talk.ask("an absent partition", _fetch(group, topic, 9), 0)
    talk.ask("an absent topic", _fetch(group, talk.name("absent"), 0), 0)
    talk.ask("nothing", OffsetFetchRequest(group_id=group, topics=[]), 0)
    talk.ask("nothing", OffsetCommitRequest(group_id=group, topics=[]), 0)
    talk.ask("an absent group", _fetch(talk.name("other"), topic, 0), 0)


def commits_that_say_their_time(talk: Talk) -> None:
    topic, group = talk.create("times"), talk.name("group")
    for case, at_ms in {"none": -1, "now": round(time.time() * 1000), "long ago": 1, "minus 2": -2}.items():
        talk.ask(f"time: {case}", _commit(group, topic, 3, "note", at_ms=at_ms), 1)
        _ask_newer(talk, f"after time: {case}", group, topic)
