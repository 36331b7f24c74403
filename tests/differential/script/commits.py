"""OffsetCommit, OffsetFetch and OffsetDelete, by simple consumers and by members."""

from __future__ import annotations

from uuid import UUID

from barnabas.protocol.base_message import ZERO_UUID
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.differential.script.common import Member, join, sync
from tests.differential.talk import Talk
from tests.waiting import wait_until

Places = dict[int, tuple[int, str | None]]  # partition -> offset and metadata


def _commit(
    group: str, topic: str, places: Places, *, topic_id: UUID = ZERO_UUID, member: Member | None = None, generation: int = -1
) -> OffsetCommitRequest:
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_metadata=metadata, committed_leader_epoch=0
        )
        for index, (offset, metadata) in places.items()
    ]
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=member.generation if member and generation < 0 else generation,
        member_id=member.member_id if member else "",
        retention_time_ms=-1,
        topics=[OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=partitions)],
    )


def _committed(
    group: str, topic: str | None, *partitions: int, topic_id: UUID = ZERO_UUID, stable: bool = False
) -> OffsetFetchRequest:
    old = None if topic is None else [OffsetFetchRequestTopic(name=topic, partition_indexes=list(partitions))]
    new = None if topic is None else [OffsetFetchRequestTopics(name=topic, topic_id=topic_id, partition_indexes=list(partitions))]
    groups = [OffsetFetchRequestGroup(group_id=group, topics=new)]
    return OffsetFetchRequest(group_id=group, topics=old, groups=groups, require_stable=stable)


def simple_commits(talk: Talk) -> None:
    topic = talk.create("topic", 2)
    topic_id = talk.wait_for_topic(topic, 2)
    absent = talk.name("absent")
    for version in talk.versions_of("OffsetCommit"):
        group = talk.name(f"v{version}")
        cases = {
            "two": _commit(group, topic, {0: (5, "note"), 1: (7, "")}, topic_id=topic_id),
            "back again": _commit(group, topic, {0: (2, "größe")}, topic_id=topic_id),
            "past the end": _commit(group, topic, {0: (10**12, "far")}, topic_id=topic_id),
            "negative": _commit(group, topic, {1: (-1, "minus")}, topic_id=topic_id),
            "null metadata": _commit(group, topic, {1: (4, None)}, topic_id=topic_id),
            "too much metadata": _commit(group, topic, {0: (1, "m" * 4097), 1: (1, "m" * 4096)}, topic_id=topic_id),
            "absent partition": _commit(group, topic, {0: (3, "x"), 9: (3, "x")}, topic_id=topic_id),
            "absent topic": _commit(group, absent, {0: (3, "x")}, topic_id=UUID(int=6)),
            "wrong topic": _commit(group, "a/b", {0: (3, "x")}, topic_id=UUID(int=6)),
            "empty group": _commit("", topic, {0: (3, "x")}, topic_id=topic_id),
            "a generation nobody knows": _commit(group, topic, {0: (3, "x")}, topic_id=topic_id, generation=4),
            "nothing": OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1),
        }
        for case, request in cases.items():
            talk.ask(case, request, version)
        talk.ask(f"after v{version}", _committed(group, topic, 0, 1), 5)


def fetched_offsets(talk: Talk) -> None:
    topic, group = talk.create("topic", 3), talk.name("group")
    topic_id = talk.wait_for_topic(topic, 3)
    talk.do(_commit(group, topic, {0: (5, "note"), 1: (7, None)}), 8)
    for version in talk.versions_of("OffsetFetch"):
        talk.ask("two and one without", _committed(group, topic, 0, 1, 2, topic_id=topic_id), version)
        talk.ask("absent partition", _committed(group, topic, 9, topic_id=topic_id), version)
        talk.ask("absent topic", _committed(group, talk.name("absent"), 0, topic_id=UUID(int=6)), version)
        talk.ask("absent group", _committed(talk.name("absent"), topic, 0, topic_id=topic_id), version)
        talk.ask("empty group", _committed("", topic, 0, topic_id=topic_id), version)
        if version >= 2:
            talk.ask("all", _committed(group, None), version)
            talk.ask("all of an absent group", _committed(talk.name("absent"), None), version)
        if version >= 7:
            talk.ask("stable", _committed(group, topic, 0, topic_id=topic_id, stable=True), version)
        if version >= 8:
            one = _committed(group, None).groups[0]
            other = _committed(talk.name("absent"), topic, 0, topic_id=topic_id).groups[0]
            talk.ask("two groups", OffsetFetchRequest(groups=[one, other]), version)
            talk.ask("no group", OffsetFetchRequest(groups=[]), version)
        if version >= 9:
            request = _committed(group, topic, 0, topic_id=topic_id)
            request.groups[0].member_id, request.groups[0].member_epoch = "nobody", 3
            talk.ask("as a member that is none", request, version)


def commits_of_members(talk: Talk) -> None:
    topic = talk.create("topic", 2)
    topic_id = talk.wait_for_topic(topic, 2)
    for version in talk.versions_of("OffsetCommit"):
        member = Member(talk.connect(), talk.name(f"v{version}"), "member")
        member.learn(talk.do(join(member), 3, on=member.line))
        early = _commit(member.group, topic, {0: (1, "early")}, topic_id=topic_id, member=member)
        talk.ask("while completing a rebalance", early, version, on=member.line)
        talk.do(sync(member, {member.member_id: b"all"}), 3, on=member.line)
        talk.ask(
            "stable", _commit(member.group, topic, {0: (2, "right")}, topic_id=topic_id, member=member), version, on=member.line
        )
        for generation in (0, 9):
            request = _commit(member.group, topic, {0: (3, "wrong")}, topic_id=topic_id, member=member, generation=generation)
            talk.ask(f"generation {generation}", request, version, on=member.line)
        stranger = _commit(member.group, topic, {0: (3, "wrong")}, topic_id=topic_id, generation=member.generation)
        stranger.member_id = "differential-stranger"
        talk.ask("a stranger", stranger, version)
        simple = _commit(member.group, topic, {0: (3, "simple")}, topic_id=topic_id)
        talk.ask("a simple consumer, of a live group", simple, version)
        leaving = MemberIdentity(member_id=member.member_id)
        talk.do(LeaveGroupRequest(group_id=member.group, members=[leaving]), 3, on=member.line)
        talk.ask("a simple consumer, of an empty group", simple, version)
        talk.ask(f"after v{version}", _committed(member.group, topic, 0, 1), 5)
        talk.ask(f"after v{version}", DescribeGroupsRequest(groups=[member.group]), 5)


def offset_delete(talk: Talk) -> None:
    topic, group = talk.create("topic", 2), talk.name("group")
    talk.do(_commit(group, topic, {0: (5, "a"), 1: (7, "b")}), 8)

    def delete(group: str, topic: str, *partitions: int) -> OffsetDeleteRequest:
        places = [OffsetDeleteRequestPartition(partition_index=index) for index in partitions]
        return OffsetDeleteRequest(group_id=group, topics=[OffsetDeleteRequestTopic(name=topic, partitions=places)])

    talk.ask("one", delete(group, topic, 0), 0)
    talk.ask("what is left", _committed(group, topic, 0, 1), 5)
    talk.ask("one again and an absent one", delete(group, topic, 0, 9), 0)
    talk.ask("absent topic", delete(group, talk.name("absent"), 0), 0)
    talk.ask("absent group", delete(talk.name("absent"), topic, 0), 0)
    talk.ask("empty group", delete("", topic, 0), 0)
    talk.ask("nothing", OffsetDeleteRequest(group_id=group, topics=[]), 0)
    talk.ask("the last", delete(group, topic, 1), 0)
    talk.ask("after the last", DescribeGroupsRequest(groups=[group]), 6)
    member = Member(talk.connect(), talk.name("live"), "member")
    member.learn(talk.do(join(member), 3, on=member.line))
    talk.do(sync(member, {member.member_id: b"all"}), 3, on=member.line)
    talk.do(_commit(member.group, topic, {0: (5, "a")}, member=member), 8, on=member.line)
    talk.ask("of a live group", delete(member.group, topic, 0), 0)
    talk.ask("of a live group, afterwards", _committed(member.group, topic, 0), 5)


def commits_of_a_deleted_topic(talk: Talk) -> None:
    topic, group = talk.create("goes"), talk.name("group")
    talk.do(_commit(group, topic, {0: (5, "a")}), 8)
    talk.do(DeleteTopicsRequest(topic_names=[topic], timeout_ms=30_000), 5)
    talk.settle()
    wait_until(lambda: talk.do(_committed(group, topic, 0), 5).topics[0].partitions[0].committed_offset == -1)
    talk.ask("after the topic went", _committed(group, topic, 0), 5)
    talk.ask("after the topic went, all", _committed(group, None), 5)
