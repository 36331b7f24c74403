"""The APIs of the consumer protocol (KIP-848): ConsumerGroupHeartbeat, ConsumerGroupDescribe. They are thin; the coordinator decides."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from barnabas.coordination.group import GroupType
from barnabas.coordination.result import Caller
from barnabas.errors import ErrorCode, InvariantViolated, KafkaError
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from barnabas.security.acls import Operation
from barnabas.server.apis.groups import error_of, in_turns, java_address
from barnabas.server.apis.operations import ALL_ON_GROUP
from barnabas.server.handlers import Handler, takes

if TYPE_CHECKING:
    from barnabas.config.broker import BrokerConfig
    from barnabas.coordination.group_coordinator import GroupCoordinator
    from barnabas.server.authorization.access_control import AccessControl
    from barnabas.server.requests import RequestContext


class ConsumerGroupBroker(Protocol):
    """The parts of the broker that this module uses."""

    authorizer: AccessControl | None
    config: BrokerConfig
    groups: GroupCoordinator

    def new_id(self) -> UUID: ...


async def consumer_group_heartbeat(
    broker: ConsumerGroupBroker, context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    """ConsumerGroupHeartbeat (api 68)."""

    def may_describe(names: Collection[str]) -> Collection[str]:
        """Of the topics that a regular expression matches, those that the client may describe. These decisions are not in the audit log."""
        if broker.authorizer is None:
            return names
        access = broker.authorizer.of_request(context).silent
        return [name for name in names if access.allows_topic(Operation.DESCRIBE, name)]

    caller = Caller(
        context.api_version, context.client_id or "", java_address(context.client_host), _text(broker.new_id()), may_describe
    )
    try:
        return await broker.groups.consumer_heartbeat(request, caller)
    except (KafkaError, InvariantViolated) as error:
        return ConsumerGroupHeartbeatResponse(error_code=error_of(error), error_message=_message(error))


async def consumer_group_describe(
    broker: ConsumerGroupBroker, context: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    """ConsumerGroupDescribe (api 69)."""
    described = [await _described(broker, group_id, request) async for group_id in in_turns(request.group_ids)]
    return ConsumerGroupDescribeResponse(groups=described)


async def _described(broker: ConsumerGroupBroker, group_id: str, request: ConsumerGroupDescribeRequest) -> DescribedGroup:
    if GroupType.CONSUMER not in broker.config.group_coordinator_rebalance_protocols:
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not group_id:
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
    try:
        group = await broker.groups.describe_consumers(group_id)
    except (KafkaError, InvariantViolated) as error:
        return DescribedGroup(group_id=group_id, error_code=error_of(error), error_message=_message(error))
    if request.include_authorized_operations:
        group.authorized_operations = ALL_ON_GROUP
    return group


def _text(random_id: UUID) -> str:
    """An id in the text form that Kafka uses for the ids that it makes."""
    return urlsafe_b64encode(random_id.bytes).decode().rstrip("=")


def _message(error: KafkaError | InvariantViolated) -> str | None:
    return error.message if isinstance(error, KafkaError) else None


HANDLERS: dict[int, Handler[ConsumerGroupBroker]] = {
    ApiKey.CONSUMER_GROUP_HEARTBEAT: takes(ConsumerGroupHeartbeatRequest, consumer_group_heartbeat),
    ApiKey.CONSUMER_GROUP_DESCRIBE: takes(ConsumerGroupDescribeRequest, consumer_group_describe),
}
