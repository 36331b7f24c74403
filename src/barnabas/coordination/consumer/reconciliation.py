"""One step of a member towards its target: the partitions to give up, the partitions to get, and its next epoch.

Rules
  1. Revocation comes first: while the member still owns revoked partitions, it stays in its epoch.
  2. The member gets free partitions at once. For the other ones it waits in the target's epoch.
  3. A revoked partition is free when a heartbeat with the member's owned partitions does not list it any more.
  4. Partitions of topics that the member does not subscribe to any more, or that do not exist, are revoked even if the target
     has them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import NamedTuple
from uuid import UUID

from barnabas.coordination.consumer.member import Assignment, ConsumerMember, MemberState, Owned
from barnabas.errors import ErrorCode, KafkaError

Reported = Mapping[UUID, frozenset[int]]  # the partitions that a member reports as owned


class Target(NamedTuple):
    """The target of a member."""

    epoch: int
    assignment: Assignment


def reconcile(
    member: ConsumerMember,
    target: Target,
    *,
    subscribed: Container[UUID],
    is_free: Callable[[UUID, int], bool],
    reported: Reported | None,
    subscription_changed: bool = False,
) -> ConsumerMember:
    """The member after one step; the same object if there is nothing to do.

    Args:
        subscribed: the topics whose partitions it may have.
        is_free: whether a partition has no owner.
        reported: the owned partitions in its heartbeat; None if the heartbeat has no such field.
    """
    match member.state:
        case MemberState.STABLE if member.epoch == target.epoch:
            return _strip(member, subscribed, reported) if subscription_changed else member
        case MemberState.UNREVOKED_PARTITIONS if _still_owns(member.pending_revocation, reported):
            return _strip(member, subscribed, reported) if subscription_changed else member
        case MemberState.UNKNOWN if reported is None or any(reported.values()):
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin.",
            )
        case _:
            return _step(member, target, subscribed, is_free, reported)


def _step(
    member: ConsumerMember,
    target: Target,
    subscribed: Container[UUID],
    is_free: Callable[[UUID, int], bool],
    reported: Reported | None,
) -> ConsumerMember:
    kept: dict[UUID, Mapping[int, int]] = {}
    revoked: dict[UUID, Mapping[int, int]] = {}
    unreleased = gained = False
    for topic_id in member.assigned.keys() | target.assignment.keys():
        wanted = target.assignment.get(topic_id, frozenset()) if topic_id in subscribed else frozenset()
        has = member.assigned.get(topic_id, {})
        stays = {p: epoch for p, epoch in has.items() if p in wanted}
        goes = {p: epoch for p, epoch in has.items() if p not in wanted}
        pending = member.pending_revocation.get(topic_id, ())
        comes = {p for p in wanted if p not in has and (p in pending or is_free(topic_id, p))}
        unreleased = unreleased or len(stays) + len(comes) < len(wanted)
        gained = gained or bool(comes)
        if goes:
            revoked[topic_id] = goes
        if stays or comes:
            kept[topic_id] = {**stays, **dict.fromkeys(comes, target.epoch)}
    if revoked and _still_owns(revoked, reported):
        without = {t: {p: e for p, e in epochs.items() if p in member.assigned.get(t, ())} for t, epochs in kept.items()}
        assigned = {t: epochs for t, epochs in without.items() if epochs}
        return _changed(member, member.moved(MemberState.UNREVOKED_PARTITIONS, member.epoch, assigned, revoked))
    state = MemberState.UNRELEASED_PARTITIONS if unreleased else MemberState.STABLE
    if not gained and not revoked and state is member.state and target.epoch == member.epoch and not member.pending_revocation:
        return member
    return member.moved(state, target.epoch, kept, {})


def _changed(before: ConsumerMember, after: ConsumerMember) -> ConsumerMember:
    same = (before.state, before.assigned, before.pending_revocation) == (after.state, after.assigned, after.pending_revocation)
    return before if same and before.epoch == after.epoch else after


def _strip(member: ConsumerMember, subscribed: Container[UUID], reported: Reported | None) -> ConsumerMember:
    """Remove partitions of topics that a member does not subscribe to any more."""
    gone = {topic_id: epochs for topic_id, epochs in member.assigned.items() if topic_id not in subscribed}
    if not gone:
        return member
    left = {topic_id: epochs for topic_id, epochs in member.assigned.items() if topic_id not in gone}
    pending: dict[UUID, Mapping[int, int]] = dict(member.pending_revocation)
    for topic_id, epochs in gone.items():
        pending[topic_id] = {**pending.get(topic_id, {}), **epochs}
    if _still_owns(pending, reported):
        return member.moved(MemberState.UNREVOKED_PARTITIONS, member.epoch, left, pending)
    return member.moved(member.state, member.epoch, left, member.pending_revocation)


def _still_owns(partitions: Owned, reported: Reported | None) -> bool:
    """Whether a member may still own some of `partitions`; True without a report."""
    if reported is None:
        return True
    return any(not reported.get(topic_id, frozenset()).isdisjoint(epochs) for topic_id, epochs in partitions.items())
