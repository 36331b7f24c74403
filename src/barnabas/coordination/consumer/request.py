"""ConsumerGroupHeartbeat: checks that do not depend on the group, and the member's properties in the request."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from barnabas import limits
from barnabas.coordination.consumer.member import JOINING_EPOCH, LEAVING_EPOCH, LEAVING_STATIC_EPOCH, ConsumerMember
from barnabas.coordination.consumer.reconciliation import Reported
from barnabas.coordination.group_records import is_too_long
from barnabas.coordination.result import Caller
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

OWN_MEMBER_ID_FROM_VERSION = 1  # KIP-1082: the client creates its member id
UNCHANGED_TIMEOUT = -1


def check_request(request: ConsumerGroupHeartbeatRequest, api_version: int, assignors: Sequence[str]) -> None:
    """Raises KafkaError with Kafka's words."""
    epoch = request.member_epoch
    if api_version >= OWN_MEMBER_ID_FROM_VERSION or epoch > 0 or epoch == LEAVING_EPOCH:
        _check_not_blank(request.member_id, "MemberId")
    _check_not_blank(request.group_id, "GroupId")
    _check_not_blank(request.instance_id, "InstanceId")
    _check_not_blank(request.rack_id, "RackId")
    if epoch == JOINING_EPOCH:
        _check_joining(request)
    elif epoch == LEAVING_STATIC_EPOCH:
        if request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
    elif epoch < LEAVING_STATIC_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        supported = ", ".join(assignors)
        reason = f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {supported}."
        raise KafkaError(ErrorCode.UNSUPPORTED_ASSIGNOR, reason)
    _check_size(request)


def _check_joining(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == UNCHANGED_TIMEOUT:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or len(request.topic_partitions):
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise _invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")


def _check_size(request: ConsumerGroupHeartbeatRequest) -> None:
    """Refuse a member that does not fit into its records."""
    names = (request.group_id, request.member_id, request.instance_id, request.rack_id, request.subscribed_topic_regex)
    if any(name is not None and is_too_long(name) for name in names):
        raise _invalid("A name is too long.")
    if sum(map(len, request.subscribed_topic_names or ())) > limits.MAX_SUBSCRIPTION_CHARACTERS:
        raise _invalid(f"SubscribedTopicNames must not have more than {limits.MAX_SUBSCRIPTION_CHARACTERS} characters.")


def _check_not_blank(text: str | None, name: str) -> None:
    if text is not None and not text.strip():
        raise _invalid(f"{name} can't be empty.")


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)


def declared(member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, caller: Caller) -> ConsumerMember:
    """The member after the request; a null field means unchanged. Returns the same object if nothing has changed."""
    names, regex, timeout_ms = request.subscribed_topic_names, request.subscribed_topic_regex, request.rebalance_timeout_ms
    after = replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == UNCHANGED_TIMEOUT else timeout_ms,
        server_assignor=member.server_assignor if request.server_assignor is None else request.server_assignor,
        topics=member.topics if names is None else frozenset(names),
        regex=member.regex if regex is None else regex,
        client_id=caller.client_id,
        client_host=caller.client_host,
        classic=None,
    )
    return member if after == member else after


def reported(request: ConsumerGroupHeartbeatRequest) -> Reported | None:
    """The partitions that the member reports as owned; None without a report."""
    if request.topic_partitions is None:
        return None
    return {t.topic_id: frozenset(t.partitions) for t in request.topic_partitions}


def is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether the request has all fields, as when a member joins and after any error. The response to such a request has the
    assignment."""
    names_topics = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    says_all = request.rebalance_timeout_ms != UNCHANGED_TIMEOUT and names_topics and request.topic_partitions is not None
    return request.member_epoch == JOINING_EPOCH or says_all
