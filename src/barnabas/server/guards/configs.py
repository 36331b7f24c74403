"""Guards of settings: settings of topics and groups need rights on these, all others need rights on the cluster.

A failback needs more: a topic gets a mirror link only with rights on the cluster, whose links these are, and its records are cut off only
with the right to delete records of the topic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.config.mirror_settings import MIRROR_LINK, MIRROR_STATE, TRUNCATING
from barnabas.error_codes import ErrorCode
from barnabas.protocol.base_message import Message
from barnabas.protocol.messages import alter_configs as legacy
from barnabas.protocol.messages import incremental_alter_configs as incremental
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.describe_configs import DescribeConfigsResult
from barnabas.protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from barnabas.protocol.values import ResourceType as ConfigResourceType
from barnabas.security.acls import CLUSTER, Operation, Resource, ResourceType
from barnabas.server.guards.guard import Answer, Asked, GoOn, Guard, on_cluster, then

REFUSALS = {
    ResourceType.TOPIC: (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed."),
    ResourceType.GROUP: (ErrorCode.GROUP_AUTHORIZATION_FAILED, "Group authorization failed."),
    ResourceType.CLUSTER: (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."),
}
Refused = Callable[[Any, ErrorCode, str], Message]


def _owner_of(kind: int, name: str) -> Resource | None:
    """The resource that the client needs a right on; None for an unknown kind, which the handler refuses."""
    if kind not in ConfigResourceType.__members__.values():
        return None
    if kind == ConfigResourceType.TOPIC:
        return Resource(ResourceType.TOPIC, name)
    if kind == ConfigResourceType.GROUP:
        return Resource(ResourceType.GROUP, name)
    return CLUSTER


def _on_resources(operation: Operation, field: str, refused: Refused) -> Guard:
    """A guard of requests whose answers have one entry for each resource, in `field`."""

    def guard(asked: Asked, request: Any, go_on: GoOn) -> Answer:
        kept, refusals = [], []
        for resource in request.resources:
            owner = _owner_of(resource.resource_type, resource.resource_name)
            lacking = _lacking_for_failback(asked, resource) if operation is Operation.ALTER_CONFIGS else None
            if lacking is not None:
                refusals.append(refused(resource, *REFUSALS[lacking]))
            elif owner is None or asked.access.allows(operation, *owner):
                kept.append(resource)
            else:
                refusals.append(refused(resource, *REFUSALS[owner.type]))
        request.resources = kept

        def add(response: Any) -> None:
            setattr(response, field, [*getattr(response, field), *refusals])

        return then(go_on(request), add) if refusals else go_on(request)

    return guard


def _lacking_for_failback(asked: Asked, resource: Any) -> ResourceType | None:
    """The type of the resource that a client lacks a right on to change the mirror settings of a topic; None if it lacks none."""
    if resource.resource_type != ConfigResourceType.TOPIC:
        return None
    settings = {each.name: each.value for each in resource.configs}
    if settings.get(MIRROR_LINK) and not asked.access.allows_cluster(Operation.ALTER_CONFIGS):
        return ResourceType.CLUSTER
    if settings.get(MIRROR_STATE) == TRUNCATING and not asked.access.allows(
        Operation.DELETE, ResourceType.TOPIC, resource.resource_name
    ):
        return ResourceType.TOPIC
    return None


def _undescribed(resource: Any, code: ErrorCode, message: str) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        resource_type=resource.resource_type, resource_name=resource.resource_name, error_code=code, error_message=message
    )


def _unaltered(resource: Any, code: ErrorCode, message: str) -> legacy.AlterConfigsResourceResponse:
    return legacy.AlterConfigsResourceResponse(
        resource_type=resource.resource_type, resource_name=resource.resource_name, error_code=code, error_message=message
    )


def _unchanged(resource: Any, code: ErrorCode, message: str) -> incremental.AlterConfigsResourceResponse:
    return incremental.AlterConfigsResourceResponse(
        resource_type=resource.resource_type, resource_name=resource.resource_name, error_code=code, error_message=message
    )


def _unlisted(_request: ListConfigResourcesRequest, code: ErrorCode) -> ListConfigResourcesResponse:
    return ListConfigResourcesResponse(error_code=code)


GUARDS: dict[int, Guard] = {
    ApiKey.DESCRIBE_CONFIGS: _on_resources(Operation.DESCRIBE_CONFIGS, "results", _undescribed),
    ApiKey.ALTER_CONFIGS: _on_resources(Operation.ALTER_CONFIGS, "responses", _unaltered),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _on_resources(Operation.ALTER_CONFIGS, "responses", _unchanged),
    ApiKey.LIST_CONFIG_RESOURCES: on_cluster(Operation.DESCRIBE_CONFIGS, _unlisted),
}
