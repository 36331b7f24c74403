"""Guards of the consumer protocol. A group does not reveal the existence of a topic that the client may not describe."""

from __future__ import annotations

from barnabas.error_codes import ErrorCode
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from barnabas.security.acls import Operation, ResourceType
from barnabas.server.guards.guard import Answer, Asked, GoOn, Guard, itself, split, then

GROUP_REFUSED, TOPIC_REFUSED = ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED
HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


def guard_consumer_heartbeat(asked: Asked, request: ConsumerGroupHeartbeatRequest, go_on: GoOn) -> Answer:
    """ConsumerGroupHeartbeat (api 68): the client needs the right to describe every topic that it names."""
    if not asked.access.allows_group(Operation.READ, request.group_id):
        return ConsumerGroupHeartbeatResponse(error_code=GROUP_REFUSED)
    names = dict.fromkeys(request.subscribed_topic_names or ())
    _, denied = split(names, lambda name: asked.access.allows_topic(Operation.DESCRIBE, name), name_of=itself)
    if denied:
        return ConsumerGroupHeartbeatResponse(error_code=TOPIC_REFUSED)
    return go_on(request)


def guard_consumer_describe(asked: Asked, request: ConsumerGroupDescribeRequest, go_on: GoOn) -> Answer:
    """ConsumerGroupDescribe (api 69): a group is not described at all if one of its topics is hidden from the client."""
    access = asked.access
    request.group_ids, denied = split(
        request.group_ids, lambda group: access.allows_group(Operation.DESCRIBE, group), name_of=itself
    )
    refusals = [DescribedGroup(group_id=group, error_code=GROUP_REFUSED) for group in denied]

    def finish(response: ConsumerGroupDescribeResponse) -> None:
        if request.include_authorized_operations:
            for group in response.groups:
                if not group.error_code:
                    group.authorized_operations = access.operations(ResourceType.GROUP, group.group_id)
        known: dict[str, bool] = {}
        shown = []
        for group in response.groups:
            hidden = False
            for name in _topics_of(group):
                if name not in known:
                    known[name] = access.allows_topic(Operation.DESCRIBE, name)
                hidden = hidden or not known[name]
            if hidden:
                group = DescribedGroup(group_id=group.group_id, error_code=TOPIC_REFUSED, error_message=HIDDEN_TOPICS)
            shown.append(group)
        response.groups = [*refusals, *shown]

    return then(go_on(request), finish)


def _topics_of(group: DescribedGroup) -> set[str]:
    return {
        part.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for part in assignment.topic_partitions
    }


GUARDS: dict[int, Guard] = {
    ApiKey.CONSUMER_GROUP_HEARTBEAT: guard_consumer_heartbeat,
    ApiKey.CONSUMER_GROUP_DESCRIBE: guard_consumer_describe,
}
