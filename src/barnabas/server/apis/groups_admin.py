"""The APIs for the administration of groups: ListGroups, DescribeGroups, DeleteGroups."""

from __future__ import annotations

from barnabas.errors import ErrorCode, InvariantViolated, KafkaError
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from barnabas.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from barnabas.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from barnabas.server.apis.groups import Context, GroupBroker, error_of, in_turns
from barnabas.server.apis.operations import ALL_ON_GROUP
from barnabas.server.handlers import Handler, takes

UNKNOWN_IS_ERROR_FROM_VERSION = 6  # KIP-1043; before it, a group that does not exist is described as dead


async def list_groups(broker: GroupBroker, context: Context, request: ListGroupsRequest) -> ListGroupsResponse:
    try:
        groups = await broker.groups.list_groups()
    except (KafkaError, InvariantViolated) as error:
        return ListGroupsResponse(error_code=error_of(error))
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    return ListGroupsResponse(groups=[group for group in groups if _passes(group, states, types)])


def _passes(group: ListedGroup, states: set[str], types: set[str]) -> bool:
    """Whether a group passes both filters. An empty filter lets every group pass; an unknown name in a filter matches no group."""
    return (not states or group.group_state.lower() in states) and (not types or group.group_type in types)


async def describe_groups(broker: GroupBroker, context: Context, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    described = []
    async for group_id in in_turns(request.groups):
        try:
            group = await broker.groups.describe(group_id)
        except (KafkaError, InvariantViolated) as error:
            group = _undescribed(group_id, error, context.api_version)
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = ALL_ON_GROUP
        described.append(group)
    return DescribeGroupsResponse(groups=described)


def _undescribed(group_id: str, error: KafkaError | InvariantViolated, api_version: int) -> DescribedGroup:
    code = error_of(error)
    if code is not ErrorCode.GROUP_ID_NOT_FOUND:
        return DescribedGroup(group_id=group_id, error_code=code)
    if api_version < UNKNOWN_IS_ERROR_FROM_VERSION:
        return DescribedGroup(group_id=group_id, group_state="Dead")
    message = error.message if isinstance(error, KafkaError) else None
    return DescribedGroup(group_id=group_id, group_state="Dead", error_code=code, error_message=message)


async def delete_groups(broker: GroupBroker, context: Context, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    results = []
    async for group_id in in_turns(dict.fromkeys(request.groups_names)):
        code = ErrorCode.NONE
        try:
            await broker.groups.delete_group(group_id)
        except (KafkaError, InvariantViolated) as error:
            code = error_of(error)
        results.append(DeletableGroupResult(group_id=group_id, error_code=code))
    return DeleteGroupsResponse(results=results)


HANDLERS: dict[int, Handler[GroupBroker]] = {
    ApiKey.DESCRIBE_GROUPS: takes(DescribeGroupsRequest, describe_groups),
    ApiKey.LIST_GROUPS: takes(ListGroupsRequest, list_groups),
    ApiKey.DELETE_GROUPS: takes(DeleteGroupsRequest, delete_groups),
}
