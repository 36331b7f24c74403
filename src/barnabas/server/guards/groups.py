"""Guards of groups and of their committed offsets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from barnabas.error_codes import ErrorCode
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from barnabas.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from barnabas.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.heartbeat import HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.leave_group import LeaveGroupResponse
from barnabas.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from barnabas.protocol.messages.sync_group import SyncGroupResponse
from barnabas.security.acls import Operation, ResourceType
from barnabas.server.apis.committed_offsets import TOPIC_IDS_FROM_VERSION
from barnabas.server.apis.groups import (
    BATCHED_FROM_VERSION,
    GROUP_KEY,
    NO_NODE,
    NULLABLE_PROTOCOL_FROM_VERSION,
    SHARE_KEY,
    TRANSACTION_KEY,
)
from barnabas.server.guards.guard import Answer, Asked, GoOn, Guard, itself, split, then

GROUP_REFUSED, TOPIC_REFUSED = ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED
COORDINATOR_REFUSALS = {
    GROUP_KEY: (GROUP_REFUSED, "Group authorization failed."),
    TRANSACTION_KEY: (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "Transactional Id authorization failed."),
    SHARE_KEY: (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."),
}


# -- FindCoordinator --------------------------------------------------------------------------------------------------------


def guard_find_coordinator(asked: Asked, request: FindCoordinatorRequest, go_on: GoOn) -> Answer:
    """FindCoordinator (api 10)."""
    if request.key_type not in COORDINATOR_REFUSALS:
        return go_on(request)
    code, message = COORDINATOR_REFUSALS[request.key_type]
    node_id, host, port = NO_NODE
    if asked.version < BATCHED_FROM_VERSION:
        if _may_find(asked, request.key_type, request.key):
            return go_on(request)
        return FindCoordinatorResponse(error_code=code, error_message=message, node_id=node_id, host=host, port=port)
    request.coordinator_keys, denied = split(
        request.coordinator_keys, lambda key: _may_find(asked, request.key_type, key), name_of=itself
    )
    refusals = [Coordinator(key=key, error_code=code, error_message="", node_id=node_id, host=host, port=port) for key in denied]

    def add(response: FindCoordinatorResponse) -> None:
        response.coordinators = [*refusals, *response.coordinators]

    return then(go_on(request), add) if refusals else go_on(request)


def _may_find(asked: Asked, key_type: int, key: str) -> bool:
    if key_type == TRANSACTION_KEY:
        return asked.access.allows_transaction(Operation.DESCRIBE, key)
    if key_type == SHARE_KEY:
        return asked.access.allows_cluster(Operation.CLUSTER_ACTION)
    return asked.access.allows_group(Operation.DESCRIBE, key)


# -- membership -------------------------------------------------------------------------------------------------------------


def _no_join(version: int) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=GROUP_REFUSED, generation_id=-1, protocol_name=None if version >= NULLABLE_PROTOCOL_FROM_VERSION else ""
    )


MEMBERSHIP_REFUSALS: dict[int, type[HeartbeatResponse | LeaveGroupResponse | SyncGroupResponse]] = {
    ApiKey.HEARTBEAT: HeartbeatResponse,
    ApiKey.LEAVE_GROUP: LeaveGroupResponse,
    ApiKey.SYNC_GROUP: SyncGroupResponse,
}


def guard_membership(asked: Asked, request: Any, go_on: GoOn) -> Answer:
    """JoinGroup, Heartbeat, LeaveGroup, SyncGroup (apis 11 to 14)."""
    if asked.access.allows_group(Operation.READ, request.group_id):
        return go_on(request)
    if asked.context.api_key == ApiKey.JOIN_GROUP:
        return _no_join(asked.version)
    return MEMBERSHIP_REFUSALS[asked.context.api_key](error_code=GROUP_REFUSED)


# -- administration ---------------------------------------------------------------------------------------------------------


def guard_describe_groups(asked: Asked, request: DescribeGroupsRequest, go_on: GoOn) -> Answer:
    """DescribeGroups (api 15)."""
    access = asked.access
    request.groups, denied = split(request.groups, lambda group: access.allows_group(Operation.DESCRIBE, group), name_of=itself)

    def finish(response: DescribeGroupsResponse) -> None:
        if request.include_authorized_operations:
            for group in response.groups:
                if not group.error_code:
                    group.authorized_operations = access.operations(ResourceType.GROUP, group.group_id)
        refusals = [DescribedGroup(group_id=group, error_code=GROUP_REFUSED, error_message=None) for group in denied]
        response.groups = [*refusals, *response.groups]

    return then(go_on(request), finish)


def guard_list_groups(asked: Asked, request: ListGroupsRequest, go_on: GoOn) -> Answer:
    """ListGroups (api 16): all groups for clients that may describe the cluster; for others, the groups that they may describe."""
    access = asked.access.silent
    if access.allows_cluster(Operation.DESCRIBE):
        return go_on(request)

    def finish(response: ListGroupsResponse) -> None:
        response.groups = [group for group in response.groups if access.allows_group(Operation.DESCRIBE, group.group_id)]

    return then(go_on(request), finish)


def guard_delete_groups(asked: Asked, request: DeleteGroupsRequest, go_on: GoOn) -> Answer:
    """DeleteGroups (api 42)."""
    request.groups_names, denied = split(
        dict.fromkeys(request.groups_names), lambda group: asked.access.allows_group(Operation.DELETE, group), name_of=itself
    )

    def add(response: DeleteGroupsResponse) -> None:
        refusals = [DeletableGroupResult(group_id=group, error_code=GROUP_REFUSED) for group in denied]
        response.results = [*response.results, *refusals]

    return then(go_on(request), add) if denied else go_on(request)


def guard_offset_delete(asked: Asked, request: OffsetDeleteRequest, go_on: GoOn) -> Answer:
    """OffsetDelete (api 47)."""
    if not asked.access.allows_group(Operation.DELETE, request.group_id):
        return OffsetDeleteResponse(error_code=GROUP_REFUSED)
    request.topics, denied = split(request.topics, lambda name: asked.access.allows_topic(Operation.READ, name))
    refusals = [
        OffsetDeleteResponseTopic(
            name=topic.name,
            partitions=[
                OffsetDeleteResponsePartition(partition_index=p.partition_index, error_code=TOPIC_REFUSED)
                for p in topic.partitions
            ],
        )
        for topic in denied
    ]

    def add(response: OffsetDeleteResponse) -> None:
        if not response.error_code:
            response.topics = [*refusals, *response.topics]

    return then(go_on(request), add) if refusals else go_on(request)


# -- OffsetCommit -----------------------------------------------------------------------------------------------------------


def guard_offset_commit(asked: Asked, request: OffsetCommitRequest, go_on: GoOn) -> Answer:
    """OffsetCommit (api 8)."""
    if not asked.access.allows_group(Operation.READ, request.group_id):
        return OffsetCommitResponse(topics=[_uncommitted(topic, GROUP_REFUSED) for topic in request.topics])
    allowed: list[OffsetCommitRequestTopic] = []
    denied: list[OffsetCommitRequestTopic] = []
    for topic in request.topics:
        name: str | None = topic.name
        if asked.version >= TOPIC_IDS_FROM_VERSION:
            name = asked.broker.metadata.topic_name(topic.topic_id)
        (allowed if name is None or asked.access.allows_topic(Operation.READ, name) else denied).append(topic)
    refusals = [_uncommitted(topic, TOPIC_REFUSED) for topic in denied]
    if refusals and not allowed:
        return OffsetCommitResponse(topics=refusals)
    request.topics = allowed

    def add(response: OffsetCommitResponse) -> None:
        response.topics = [*refusals, *response.topics]

    return then(go_on(request), add) if refusals else go_on(request)


def _uncommitted(topic: Any, code: ErrorCode) -> OffsetCommitResponseTopic:
    partitions: Iterable[Any] = topic.partitions
    answers = [OffsetCommitResponsePartition(partition_index=p.partition_index, error_code=code) for p in partitions]
    return OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=answers)


GUARDS: dict[int, Guard] = {
    ApiKey.OFFSET_COMMIT: guard_offset_commit,
    ApiKey.FIND_COORDINATOR: guard_find_coordinator,
    ApiKey.JOIN_GROUP: guard_membership,
    ApiKey.HEARTBEAT: guard_membership,
    ApiKey.LEAVE_GROUP: guard_membership,
    ApiKey.SYNC_GROUP: guard_membership,
    ApiKey.DESCRIBE_GROUPS: guard_describe_groups,
    ApiKey.LIST_GROUPS: guard_list_groups,
    ApiKey.DELETE_GROUPS: guard_delete_groups,
    ApiKey.OFFSET_DELETE: guard_offset_delete,
}
