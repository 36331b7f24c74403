"""The API handlers: every version is answered, and with what that version can say. Expectations were read off Kafka 4.3.0."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from importlib import import_module
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio

from barnabas.coordination.classic.group import ClassicGroup
from barnabas.coordination.group_coordinator import GroupCoordinator
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.base_message import Message
from barnabas.protocol.codec import decode, encode
from barnabas.protocol.messages import APIS
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from barnabas.protocol.messages.sync_group import SyncGroupRequest
from barnabas.server.apis import committed_offsets, groups, groups_admin
from barnabas.testing.no_topics import NoTopics
from tests.coordination.support import Broker, Config, Context, ManualClock, MemoryLog, Topics
from tests.turns import turns_of

HANDLERS: dict[int, Any] = {**groups.HANDLERS, **groups_admin.HANDLERS, **committed_offsets.HANDLERS}
VERSIONS = [(key, version) for key in sorted(HANDLERS) for version in range(APIS[key][2], APIS[key][3] + 1)]
COMMIT, FETCH, FIND, JOIN, HEARTBEAT, LEAVE, SYNC, DESCRIBE, LIST, DELETE, OFFSET_DELETE = (
    8,
    9,
    10,
    11,
    12,
    13,
    14,
    15,
    16,
    42,
    47,
)
ELSEWHERE = UUID(int=99)


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[Broker]:
    log = MemoryLog()
    coordinator = GroupCoordinator(log, Config(), ManualClock(), NoTopics())
    for partition in range(log.partition_count):
        await coordinator.load(partition)
    yield Broker(coordinator, Topics({"t": 2, "u": 1}))
    coordinator.close()


async def ask(broker: Broker, key: int, version: int, request: Message) -> Any:
    """The answer as a client of that version reads it, the request as it comes over the wire."""
    request = decode(type(request), version, encode(request, version))
    answer = HANDLERS[key].handle(broker, Context(version), request)
    assert isinstance(answer, Awaitable)
    response = await answer
    return decode(type(response), version, encode(response, version))


@pytest.mark.parametrize(("key", "version"), VERSIONS)
async def test_every_version_is_answered(broker: Broker, key: int, version: int) -> None:
    module, prefix, *_ = APIS[key]
    messages = import_module(f"barnabas.protocol.messages.{module}")
    answer = await ask(broker, key, version, getattr(messages, prefix + "Request")())
    assert isinstance(answer, getattr(messages, prefix + "Response"))


@pytest.mark.parametrize(("key", "version"), VERSIONS)
async def test_every_version_says_that_the_coordinator_is_elsewhere(key: int, version: int) -> None:
    broker = Broker(GroupCoordinator(MemoryLog(), Config(), ManualClock(), NoTopics()), Topics({"t": 1}))
    requests: dict[int, Message] = {
        COMMIT: commit_of("t", broker, [0]),
        FETCH: OffsetFetchRequest(
            group_id="g",
            topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0])],
            groups=[OffsetFetchRequestGroup(group_id="g", topics=None)],
        ),
        JOIN: JoinGroupRequest(group_id="g", session_timeout_ms=6_000),
        HEARTBEAT: HeartbeatRequest(group_id="g"),
        LEAVE: LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="m")]),
        SYNC: SyncGroupRequest(group_id="g", protocol_type="consumer", protocol_name="range"),
        DESCRIBE: DescribeGroupsRequest(groups=["g"]),
        DELETE: DeleteGroupsRequest(groups_names=["g"]),
        OFFSET_DELETE: OffsetDeleteRequest(group_id="g"),
    }
    if key in requests:
        response = await ask(broker, key, version, requests[key])
        assert ErrorCode.NOT_COORDINATOR.value in errors_of(response)


def errors_of(message: object) -> set[int]:
    """Every error code anywhere in `message`."""
    if isinstance(message, Message):
        values = {field.name: getattr(message, field.name) for field in message.FIELDS}
        return {values.get("error_code", 0)}.union(*(errors_of(value) for value in values.values()))
    return set().union(*(errors_of(item) for item in message)) if isinstance(message, list | tuple) else set()


def commit_of(name: str, broker: Broker, partitions: list[int], group_id: str = "g") -> OffsetCommitRequest:
    committed = [
        OffsetCommitRequestPartition(partition_index=p, committed_offset=p + 5, committed_metadata="m") for p in partitions
    ]
    topic_id = broker.metadata.topic_id(name) or ELSEWHERE
    return OffsetCommitRequest(
        group_id=group_id, topics=[OffsetCommitRequestTopic(name=name, topic_id=topic_id, partitions=committed)]
    )


@pytest.mark.parametrize("key", [DESCRIBE, DELETE])
async def test_many_groups_take_several_turns_of_the_loop(broker: Broker, monkeypatch: pytest.MonkeyPatch, key: int) -> None:
    names = [f"g{number}" for number in range(9)]
    for name in names:
        await ask(broker, COMMIT, 9, commit_of("t", broker, [0], name))
    request = DescribeGroupsRequest(groups=names) if key == DESCRIBE else DeleteGroupsRequest(groups_names=names)
    last = APIS[key][3]
    monkeypatch.setattr(groups, "GROUPS_PER_TURN", 2)
    answer, turns = await turns_of(ask(broker, key, last, request))
    assert [group.group_id for group in (answer.groups if key == DESCRIBE else answer.results)] == names
    assert errors_of(answer) == {0}
    assert turns >= 3


# -- FindCoordinator ------------------------------------------------------------------------------------------------------


async def test_one_coordinator_is_found(broker: Broker) -> None:
    found = await ask(broker, FIND, 3, FindCoordinatorRequest(key="g"))
    assert (found.error_code, found.node_id, found.host, found.port) == (0, 1, "localhost", 9092)


async def test_many_coordinators_are_found(broker: Broker) -> None:
    found = await ask(broker, FIND, 6, FindCoordinatorRequest(coordinator_keys=["g", ""]))
    assert [(c.key, c.node_id, c.error_code, c.error_message) for c in found.coordinators] == [("g", 1, 0, ""), ("", 1, 0, "")]


@pytest.mark.parametrize("key_type", [2, 9])
async def test_there_are_no_other_coordinators(broker: Broker, key_type: int) -> None:
    single = await ask(broker, FIND, 3, FindCoordinatorRequest(key="x", key_type=key_type))
    assert (single.error_code, single.node_id, single.port) == (ErrorCode.INVALID_REQUEST, -1, -1)
    batched = await ask(broker, FIND, 6, FindCoordinatorRequest(coordinator_keys=["x"], key_type=key_type))
    assert batched.coordinators[0].error_code == ErrorCode.INVALID_REQUEST


async def test_a_topic_that_cannot_be_made_has_no_coordinator_yet() -> None:
    async def prepare() -> None:
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR)

    broker = Broker(GroupCoordinator(MemoryLog(), Config(), ManualClock(), NoTopics(), prepare), Topics())
    found = await ask(broker, FIND, 3, FindCoordinatorRequest(key="g"))
    assert (found.error_code, found.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)


# -- membership -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "name"), [(6, ""), (7, None)])
async def test_older_clients_get_an_empty_protocol_for_none(broker: Broker, version: int, name: str | None) -> None:
    refused = await ask(broker, JOIN, version, JoinGroupRequest(member_id="m", session_timeout_ms=6_000))
    assert (refused.error_code, refused.protocol_name, refused.member_id) == (ErrorCode.INVALID_GROUP_ID, name, "m")


@pytest.mark.parametrize(("version", "timeout_ms"), [(0, -1), (3, 0), (3, -1), (3, -(2**31))])
async def test_a_member_without_a_rebalance_timeout_has_its_session_s(broker: Broker, version: int, timeout_ms: int) -> None:
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=7_000,
        rebalance_timeout_ms=timeout_ms,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    joined = await ask(broker, JOIN, version, request)
    shard = broker.groups.shards[broker.groups.partition_of("g")]
    group = shard.groups["g"]
    assert isinstance(group, ClassicGroup)
    (member,) = group.members.values()
    assert (member.rebalance_timeout_ms, member.client_host) == (7_000, "/127.0.0.1")
    sync = SyncGroupRequest(group_id="g", generation_id=joined.generation_id, member_id=joined.member_id)
    assert (await ask(broker, SYNC, 3, sync)).error_code == ErrorCode.NONE
    beat = HeartbeatRequest(group_id="g", generation_id=joined.generation_id, member_id=joined.member_id)
    assert (await ask(broker, HEARTBEAT, 3, beat)).error_code == ErrorCode.NONE


@pytest.mark.parametrize(("version", "code"), [(4, ErrorCode.UNKNOWN_MEMBER_ID), (5, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)])
async def test_newer_clients_must_name_their_protocol(broker: Broker, version: int, code: ErrorCode) -> None:
    assert (await ask(broker, SYNC, version, SyncGroupRequest(group_id="g", member_id="m"))).error_code == code


async def test_leaving_one_by_one_or_together(broker: Broker) -> None:
    single = await ask(broker, LEAVE, 2, LeaveGroupRequest(group_id="g", member_id="m"))
    assert single.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    batched = await ask(broker, LEAVE, 5, LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="m")]))
    assert (batched.error_code, batched.members[0].error_code) == (0, ErrorCode.UNKNOWN_MEMBER_ID)


# -- offsets --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(11))
async def test_commits_are_fetched_by_every_version(broker: Broker, version: int) -> None:
    committed = await ask(broker, COMMIT, version, commit_of("t", broker, [0, 1]))
    assert [(p.partition_index, p.error_code) for p in committed.topics[0].partitions] == [(0, 0), (1, 0)]
    assert committed.topics[0].name == ("t" if version < 10 else "")
    for fetch_version in range(8):
        request = OffsetFetchRequest(group_id="g", topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[1])])
        fetched = await ask(broker, FETCH, fetch_version, request)
        assert [(p.committed_offset, p.metadata) for p in fetched.topics[0].partitions] == [(6, "m")]
    for fetch_version in range(8, 11):
        topics = OffsetFetchRequestTopics(name="t", topic_id=broker.metadata.topic_id("t") or ELSEWHERE, partition_indexes=[1])
        fetched = await ask(
            broker, FETCH, fetch_version, OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=[topics])])
        )
        assert [p.committed_offset for p in fetched.groups[0].topics[0].partitions] == [6]


@pytest.mark.parametrize(("version", "code"), [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (1, ErrorCode.NONE)])
async def test_an_offset_that_is_not_there_is_an_error_to_the_oldest_clients(
    broker: Broker, version: int, code: ErrorCode
) -> None:
    request = OffsetFetchRequest(group_id="g", topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0])])
    (found,) = (await ask(broker, FETCH, version, request)).topics[0].partitions
    assert (found.error_code, found.committed_offset) == (code, -1)


async def test_what_does_not_exist_is_refused_and_the_rest_committed(broker: Broker) -> None:
    request = commit_of("nope", broker, [0])
    request.topics = [*request.topics, *commit_of("t", broker, [0, 9, -1]).topics, *commit_of("u", broker, [0]).topics]
    committed = await ask(broker, COMMIT, 9, request)
    answers = {t.name: [(p.partition_index, p.error_code) for p in t.partitions] for t in committed.topics}
    assert list(answers) == ["nope", "t", "u"]
    assert answers == {"nope": [(0, 3)], "t": [(9, 3), (-1, 3), (0, 0)], "u": [(0, 0)]}


async def test_unknown_topic_ids_are_refused(broker: Broker) -> None:
    committed = await ask(broker, COMMIT, 10, commit_of("nope", broker, [0]))
    assert (committed.topics[0].topic_id, committed.topics[0].partitions[0].error_code) == (ELSEWHERE, ErrorCode.UNKNOWN_TOPIC_ID)
    asked = [OffsetFetchRequestTopics(topic_id=ELSEWHERE, partition_indexes=[0])]
    fetched = await ask(broker, FETCH, 10, OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=asked)]))
    partition = fetched.groups[0].topics[0].partitions[0]
    assert (partition.committed_offset, partition.error_code) == (-1, ErrorCode.UNKNOWN_TOPIC_ID)


async def test_all_offsets_with_ids_leave_out_topics_that_are_gone(broker: Broker) -> None:
    for name in ("t", "u"):
        await ask(broker, COMMIT, 9, commit_of(name, broker, [0]))
    del broker.metadata.counts["u"]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    fetched = await ask(broker, FETCH, 10, request)
    assert [t.topic_id for t in fetched.groups[0].topics] == [broker.metadata.topic_id("t")]
    fetched = await ask(broker, FETCH, 8, request)
    assert [t.name for t in fetched.groups[0].topics] == ["t", "u"]


async def test_a_refused_commit_names_every_partition(broker: Broker) -> None:
    request = commit_of("t", broker, [0, 1])
    request.generation_id_or_member_epoch = 3
    committed = await ask(broker, COMMIT, 9, request)
    assert [p.error_code for p in committed.topics[0].partitions] == [ErrorCode.GROUP_ID_NOT_FOUND] * 2


async def test_the_oldest_fetch_has_errors_on_partitions_only() -> None:
    broker = Broker(GroupCoordinator(MemoryLog(), Config(), ManualClock(), NoTopics()), Topics({"t": 1}))
    request = OffsetFetchRequest(group_id="g", topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])])
    fetched = await ask(broker, FETCH, 1, request)
    assert [p.error_code for p in fetched.topics[0].partitions] == [ErrorCode.NOT_COORDINATOR] * 2


@pytest.mark.parametrize("version", range(1, 11))
async def test_a_fetch_that_waits_too_long_looks_for_the_coordinator_anew(version: int) -> None:
    """Java's consumers before 3.9 stop at any other code that would fit."""
    log = MemoryLog()
    coordinator = GroupCoordinator(log, Config(offsets_commit_timeout_ms=1), ManualClock(), NoTopics())
    broker = Broker(coordinator, Topics({"t": 1}))
    await coordinator.load(coordinator.partition_of("g"))
    log.hold = True
    committed = await ask(broker, COMMIT, 9, commit_of("t", broker, [0]))
    assert committed.topics[0].partitions[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    request = OffsetFetchRequest(
        group_id="g",
        topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0])],
        groups=[OffsetFetchRequestGroup(group_id="g", topics=None)],
        require_stable=version >= 7,
    )
    assert errors_of(await ask(broker, FETCH, version, request)) - {0} == {ErrorCode.NOT_COORDINATOR.value}
    coordinator.close()


# -- administration of groups ---------------------------------------------------------------------------------------------


async def test_groups_are_filtered_whatever_the_case(broker: Broker) -> None:
    await ask(broker, COMMIT, 9, commit_of("t", broker, [0]))

    async def listed(**filters: list[str]) -> list[str]:
        return [g.group_id for g in (await ask(broker, LIST, 5, ListGroupsRequest(**filters))).groups]

    assert await listed() == await listed(states_filter=["EMPTY"]) == await listed(types_filter=["bogus", "Classic"]) == ["g"]
    assert await listed(states_filter=["stable"]) == await listed(types_filter=["consumer"]) == []


@pytest.mark.parametrize(
    ("version", "expected"),
    [(5, (0, None, "Dead", 3400)), (6, (ErrorCode.GROUP_ID_NOT_FOUND, "Group g not found.", "Dead", -(2**31)))],
)
async def test_a_group_that_is_not_there_is_dead_or_not_found(broker: Broker, version: int, expected: tuple[object, ...]) -> None:
    request = DescribeGroupsRequest(groups=["g"], include_authorized_operations=True)
    group = (await ask(broker, DESCRIBE, version, request)).groups[0]
    assert (group.error_code, group.error_message, group.group_state, group.authorized_operations) == expected


async def test_groups_are_deleted_each_for_itself(broker: Broker) -> None:
    for group_id in ("g", ""):
        await ask(broker, COMMIT, 9, commit_of("t", broker, [0], group_id))
    deleted = await ask(broker, DELETE, 2, DeleteGroupsRequest(groups_names=["g", "none", "", "g"]))
    assert [(r.group_id, r.error_code) for r in deleted.results] == [("g", 0), ("none", ErrorCode.GROUP_ID_NOT_FOUND), ("", 0)]


async def test_offsets_are_deleted_where_they_can_be(broker: Broker) -> None:
    await ask(broker, COMMIT, 9, commit_of("t", broker, [0]))

    def topic(name: str, *partitions: int) -> OffsetDeleteRequestTopic:
        return OffsetDeleteRequestTopic(
            name=name, partitions=[OffsetDeleteRequestPartition(partition_index=p) for p in partitions]
        )

    deleted = await ask(broker, OFFSET_DELETE, 0, OffsetDeleteRequest(group_id="g", topics=[topic("t", 0, 7), topic("nope", 0)]))
    answers = {t.name: [(p.partition_index, p.error_code) for p in t.partitions] for t in deleted.topics}
    assert answers == {"t": [(7, 3), (0, 0)], "nope": [(0, 3)]}
    for group_id, code in (("", ErrorCode.INVALID_GROUP_ID), ("none", ErrorCode.GROUP_ID_NOT_FOUND)):
        refused = await ask(broker, OFFSET_DELETE, 0, OffsetDeleteRequest(group_id=group_id, topics=[topic("nope", 0)]))
        assert (refused.error_code, refused.topics) == (code, [])
