"""Checks the member id, instance id and epoch of a request."""

from __future__ import annotations

from barnabas.coordination.consumer.group import ConsumerGroup
from barnabas.coordination.consumer.member import ConsumerMember
from barnabas.coordination.consumer.reconciliation import Reported
from barnabas.errors import ErrorCode, KafkaError


def check_static(group: ConsumerGroup, known: ConsumerMember | None, member_id: str, instance_id: str) -> ConsumerMember:
    """Refuse an instance id that is unknown or belongs to another member."""
    if known is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if known.member_id != member_id:
        reason = f"Static member {member_id} with instance id {instance_id} was fenced by member {known.member_id}."
        raise KafkaError(ErrorCode.FENCED_INSTANCE_ID, reason)
    return known


def check_released(static: ConsumerMember, member_id: str, instance_id: str | None) -> None:
    """Refuse a second process of an instance before the first one has left. A classic member may be replaced at once: it does
    not announce that it leaves."""
    if not static.has_left_for_now and not static.is_classic:
        reason = (
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id is"
            f" owned by {static.member_id} member."
        )
        raise KafkaError(ErrorCode.UNRELEASED_INSTANCE_ID, reason)


def check_epoch(member: ConsumerMember, epoch: int, owned: Reported | None) -> None:
    """Fence a member whose epoch differs from the epoch that the group has for it. The previous epoch is accepted if the member
    owns only assigned partitions: then the response with the current epoch may have been lost."""
    if epoch == member.epoch:
        return
    if epoch < member.epoch:
        assigned = member.assigned
        holds = owned is not None and all(partitions <= assigned.get(t, {}).keys() for t, partitions in owned.items())
        if epoch == member.previous_epoch and holds:
            return
    size = "greater" if epoch > member.epoch else "smaller"
    reason = (
        f"The consumer group member has a {size} member epoch ({epoch}) than the one known by the group coordinator"
        f" ({member.epoch}). The member must abandon all its partitions and rejoin."
    )
    raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, reason)
