"""The APIs that consumers of a group use: FindCoordinator, the membership of the classic protocol, committed offsets.

Thin: what older versions cannot say is put right here, topic ids are turned into names, partitions that do not exist are refused,
and the rest is the coordinator's. Topics with refused partitions come first in an answer, as in Kafka's.

FindCoordinator answers for groups and transactions. Share groups have no coordinator here, now or after a retry, so they get
INVALID_REQUEST, which Kafka gives for a kind of coordinator that is switched off; COORDINATOR_NOT_AVAILABLE would have a client ask again
and again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol
from uuid import UUID

from barnabas.coordination.group_coordinator import GroupCoordinator
from barnabas.coordination.result import Caller
from barnabas.coordination.transactions.coordinator import TransactionCoordinator
from barnabas.errors import ErrorCode, InvariantViolated, KafkaError
from barnabas.protocol.base_message import ZERO_UUID, Message
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class GroupTopics(Protocol):
    """What is asked of the metadata image."""

    def topic_id(self, name: str) -> UUID | None: ...
    def topic_name(self, topic_id: UUID) -> str | None: ...
    def partition_count(self, name: str) -> int:
        """0 for a topic that does not exist."""
        ...


class Context(Protocol):
    """What is asked of a request's context."""

    @property
    def api_version(self) -> int: ...
    @property
    def client_id(self) -> str | None: ...
    @property
    def client_host(self) -> str: ...


Node = tuple[int, str, int]  # its id, host and port


class GroupBroker(Protocol):
    """What is asked of the broker."""

    @property
    def groups(self) -> GroupCoordinator: ...
    @property
    def transactions(self) -> TransactionCoordinator: ...
    @property
    def metadata(self) -> GroupTopics: ...
    def new_id(self) -> UUID: ...
    async def find_coordinators(self, context: Any, names: Sequence[str], *, of_transactions: bool) -> Sequence[Node | None]:
        """How the client of `context` reaches the coordinators of groups or transactional ids; None while there is none that leads."""
        ...


Handler = Callable[[Any, Any, Any], Message | Awaitable[Message]]
GROUPS_PER_TURN = 100  # of a request, for 10 us each, and more where they have many members


async def in_turns(group_ids: Iterable[str]) -> AsyncIterator[str]:
    """The groups of a request, with turns of the loop for others in between: what is awaited for each mostly comes at once."""
    for count, group_id in enumerate(group_ids):
        if count % GROUPS_PER_TURN == GROUPS_PER_TURN - 1:
            await asyncio.sleep(0)
        yield group_id


def error_of(error: KafkaError | InvariantViolated) -> ErrorCode:
    """What a client is told; a broken invariant is ours to know, and the coordinator has logged it."""
    return error.code if isinstance(error, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR


# -- FindCoordinator ------------------------------------------------------------------------------------------------------

GROUP_KEY, TRANSACTION_KEY, SHARE_KEY = 0, 1, 2
BATCHED_FROM_VERSION = 4
NO_NODE: Node = (-1, "", -1)
UNAVAILABLE_MESSAGE = "The coordinator is not available."
NOT_SERVED_MESSAGE = "This broker has no coordinator of that kind."


async def find_coordinator(broker: GroupBroker, context: Context, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    error, message = ErrorCode.NONE, "NONE"
    batched = context.api_version >= BATCHED_FROM_VERSION
    keys = request.coordinator_keys if batched else [request.key]
    of_transactions = request.key_type == TRANSACTION_KEY
    found: Sequence[Node | None] = [None] * len(keys)
    if request.key_type not in (GROUP_KEY, TRANSACTION_KEY):
        error, message = ErrorCode.INVALID_REQUEST, NOT_SERVED_MESSAGE
    else:
        try:
            if of_transactions:
                await broker.transactions.prepare()
            else:
                await broker.groups.prepare()
            found = await broker.find_coordinators(context, keys, of_transactions=of_transactions)
        except KafkaError:
            error, message = ErrorCode.COORDINATOR_NOT_AVAILABLE, UNAVAILABLE_MESSAGE
    if batched:
        return FindCoordinatorResponse(
            coordinators=[_coordinator(key, node, error) for key, node in zip(keys, found, strict=True)]
        )
    if not error and found[0] is None:
        error, message = ErrorCode.COORDINATOR_NOT_AVAILABLE, UNAVAILABLE_MESSAGE
    node_id, host, port = found[0] or NO_NODE
    return FindCoordinatorResponse(error_code=error, error_message=message, node_id=node_id, host=host, port=port)


def _coordinator(key: str, node: Node | None, error: ErrorCode) -> Coordinator:
    node_id, host, port = node or NO_NODE
    if node is None and not error:
        error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    message = NOT_SERVED_MESSAGE if error is ErrorCode.INVALID_REQUEST else ""
    return Coordinator(key=key, node_id=node_id, host=host, port=port, error_code=error, error_message=message)


# -- membership -----------------------------------------------------------------------------------------------------------

NULLABLE_PROTOCOL_FROM_VERSION = 7
PROTOCOL_REQUIRED_FROM_VERSION = 5
BATCHED_LEAVE_FROM_VERSION = 3


async def join_group(broker: GroupBroker, context: Context, request: JoinGroupRequest) -> JoinGroupResponse:
    if request.rebalance_timeout_ms <= 0:  # version 0 cannot say it, and some clients give 0: no time to do anything in
        request.rebalance_timeout_ms = request.session_timeout_ms
    caller = Caller(context.api_version, context.client_id or "", java_address(context.client_host), str(broker.new_id()))
    try:
        response = await broker.groups.join(request, caller)
    except (KafkaError, InvariantViolated) as error:
        response = JoinGroupResponse(error_code=error_of(error), member_id=request.member_id, protocol_name=None)
    if response.protocol_name is None and context.api_version < NULLABLE_PROTOCOL_FROM_VERSION:
        response.protocol_name = ""
    return response


def java_address(host: str) -> str:
    """As Java writes addresses."""
    return host if host.startswith("/") else f"/{host}"


async def sync_group(broker: GroupBroker, context: Context, request: SyncGroupRequest) -> SyncGroupResponse:
    incomplete = not request.protocol_type or not request.protocol_name
    if incomplete and context.api_version >= PROTOCOL_REQUIRED_FROM_VERSION:  # KIP-559
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    try:
        return await broker.groups.sync(request)
    except (KafkaError, InvariantViolated) as error:
        return SyncGroupResponse(error_code=error_of(error))


async def heartbeat(broker: GroupBroker, context: Context, request: HeartbeatRequest) -> HeartbeatResponse:
    try:
        return await broker.groups.heartbeat(request)
    except (KafkaError, InvariantViolated) as error:
        return HeartbeatResponse(error_code=error_of(error))


async def leave_group(broker: GroupBroker, context: Context, request: LeaveGroupRequest) -> LeaveGroupResponse:
    single = context.api_version < BATCHED_LEAVE_FROM_VERSION
    if single:
        request.members = [MemberIdentity(member_id=request.member_id)]
    try:
        response = await broker.groups.leave(request)
    except (KafkaError, InvariantViolated) as error:
        return LeaveGroupResponse(error_code=error_of(error))
    return LeaveGroupResponse(error_code=response.members[0].error_code) if single else response


# -- OffsetCommit ---------------------------------------------------------------------------------------------------------

TOPIC_IDS_FROM_VERSION = 10  # of OffsetCommit and of OffsetFetch


async def offset_commit(broker: GroupBroker, context: Context, request: OffsetCommitRequest) -> OffsetCommitResponse:
    accepted: list[OffsetCommitRequestTopic] = []
    refused: list[OffsetCommitResponseTopic] = []
    by_id = context.api_version >= TOPIC_IDS_FROM_VERSION
    for topic in request.topics:
        _sort_out(broker.metadata, topic, accepted, refused, by_id=by_id)
    request.topics = accepted
    if not accepted and refused:
        return OffsetCommitResponse(topics=refused)
    try:
        response = await broker.groups.commit_offsets(request, context.api_version)
    except (KafkaError, InvariantViolated) as error:
        response = OffsetCommitResponse(topics=[_all_refused(topic, error_of(error)) for topic in accepted])
    if refused:
        response.topics = _merged(refused, response.topics)
    return response


def _sort_out(
    topics: GroupTopics,
    topic: OffsetCommitRequestTopic,
    accepted: list[OffsetCommitRequestTopic],
    refused: list[OffsetCommitResponseTopic],
    *,
    by_id: bool,
) -> None:
    """Complete name and id of a topic, and set aside what does not exist of it."""
    if by_id:
        name = topics.topic_name(topic.topic_id)
        if name is None:
            refused.append(_all_refused(topic, ErrorCode.UNKNOWN_TOPIC_ID))
            return
        topic.name = name
    else:
        topic.topic_id = topics.topic_id(topic.name) or ZERO_UUID
    count = topics.partition_count(topic.name)
    missing = [p.partition_index for p in topic.partitions if not 0 <= p.partition_index < count]
    if missing:
        refused.append(_refused(topic, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        topic.partitions = [p for p in topic.partitions if 0 <= p.partition_index < count]
        if not topic.partitions:
            return
    accepted.append(topic)


def _all_refused(topic: OffsetCommitRequestTopic, error: ErrorCode) -> OffsetCommitResponseTopic:
    return _refused(topic, [p.partition_index for p in topic.partitions], error)


def _refused(topic: OffsetCommitRequestTopic, partitions: Iterable[int], error: ErrorCode) -> OffsetCommitResponseTopic:
    answers = [OffsetCommitResponsePartition(partition_index=p, error_code=error) for p in partitions]
    return OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=answers)


def _merged(
    first: Sequence[OffsetCommitResponseTopic], second: Sequence[OffsetCommitResponseTopic]
) -> list[OffsetCommitResponseTopic]:
    """Both, with one entry for each topic."""
    topics = {(t.name, t.topic_id): t for t in first}
    for topic in second:
        known = topics.setdefault((topic.name, topic.topic_id), topic)
        if known is not topic:
            known.partitions = [*known.partitions, *topic.partitions]
    return list(topics.values())


# -- OffsetFetch ----------------------------------------------------------------------------------------------------------

GROUPS_FROM_VERSION = 8
ERROR_FROM_VERSION = 2  # before it only partitions have one
NO_OFFSET = -1
GROUPS_OFFSETS_FROM_VERSION = 1  # before it Kafka asked ZooKeeper, and an offset that was not there was an error
FATAL_TO_OLDER = {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.REQUEST_TIMED_OUT}  # Java's consumers before 3.9 stop at these


async def offset_fetch(broker: GroupBroker, context: Context, request: OffsetFetchRequest) -> OffsetFetchResponse:
    if context.api_version >= GROUPS_FROM_VERSION:
        by_id, stable = context.api_version >= TOPIC_IDS_FROM_VERSION, request.require_stable
        fetches = [_fetch_group(broker, group, by_id=by_id, require_stable=stable) for group in request.groups]
        return OffsetFetchResponse(groups=await asyncio.gather(*fetches))
    topics = request.topics
    asked = None if topics is None else [_newer(topic.name, topic.partition_indexes) for topic in topics]
    wanted = OffsetFetchRequestGroup(group_id=request.group_id, topics=asked)
    group = await _fetch_group(broker, wanted, by_id=False, require_stable=request.require_stable)
    if group.error_code and context.api_version < ERROR_FROM_VERSION:
        group.topics = [_unfetched(topic, group.error_code) for topic in asked or ()]
    answered = [_older(topic) for topic in group.topics]
    if context.api_version < GROUPS_OFFSETS_FROM_VERSION:
        _mark_absent(answered)
    return OffsetFetchResponse(topics=answered, error_code=group.error_code)


def _mark_absent(topics: Iterable[OffsetFetchResponseTopic]) -> None:
    for topic in topics:
        for partition in topic.partitions:
            if not partition.error_code and partition.committed_offset == NO_OFFSET:
                partition.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def _fetch_group(
    broker: GroupBroker, group: OffsetFetchRequestGroup, *, by_id: bool, require_stable: bool
) -> OffsetFetchResponseGroup:
    unknown: list[OffsetFetchResponseTopics] = []
    if group.topics is not None:
        for topic in group.topics:
            _identify(broker.metadata, topic, by_id=by_id)
        unknown = [_unfetched(topic, ErrorCode.UNKNOWN_TOPIC_ID) for topic in group.topics if not topic.name and by_id]
        group.topics = [topic for topic in group.topics if topic.name or not by_id]
    try:
        response = await broker.groups.fetch_offsets(group, require_stable=require_stable)
    except (KafkaError, InvariantViolated) as error:
        code = error_of(error)
        return OffsetFetchResponseGroup(
            group_id=group.group_id, error_code=ErrorCode.NOT_COORDINATOR if code in FATAL_TO_OLDER else code
        )
    if by_id and group.topics is None:
        for fetched in response.topics:
            fetched.topic_id = broker.metadata.topic_id(fetched.name) or ZERO_UUID
        response.topics = [t for t in response.topics if t.topic_id != ZERO_UUID]
    response.topics = [*response.topics, *unknown]
    return response


def _identify(topics: GroupTopics, topic: OffsetFetchRequestTopics, *, by_id: bool) -> None:
    if by_id:
        topic.name = topics.topic_name(topic.topic_id) or ""


def _unfetched(topic: OffsetFetchRequestTopics, error: int) -> OffsetFetchResponseTopics:
    answers = [
        OffsetFetchResponsePartitions(partition_index=p, committed_offset=NO_OFFSET, error_code=error)
        for p in topic.partition_indexes
    ]
    return OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=answers)


def _newer(name: str, partitions: Sequence[int]) -> OffsetFetchRequestTopics:
    return OffsetFetchRequestTopics(name=name, partition_indexes=partitions)


def _older(topic: OffsetFetchResponseTopics) -> OffsetFetchResponseTopic:
    """In the shape of versions before 8."""
    partitions = [
        OffsetFetchResponsePartition(
            partition_index=p.partition_index,
            committed_offset=p.committed_offset,
            committed_leader_epoch=p.committed_leader_epoch,
            metadata=p.metadata,
            error_code=p.error_code,
        )
        for p in topic.partitions
    ]
    return OffsetFetchResponseTopic(name=topic.name, partitions=partitions)


HANDLERS: dict[int, Handler] = {
    ApiKey.OFFSET_COMMIT: offset_commit,
    ApiKey.OFFSET_FETCH: offset_fetch,
    ApiKey.FIND_COORDINATOR: find_coordinator,
    ApiKey.JOIN_GROUP: join_group,
    ApiKey.HEARTBEAT: heartbeat,
    ApiKey.LEAVE_GROUP: leave_group,
    ApiKey.SYNC_GROUP: sync_group,
}
