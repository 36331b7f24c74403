"""Who leads one partition, and who is in sync, after something happened: pure functions from one state to the next.

Rules
  1. A leader is in sync and active, or it is shutting down and nobody else can lead.
  2. The set of in-sync replicas is never emptied: when all of them are gone they stay in it, because one of them has every record that
     was acknowledged; only an unclean election (`unclean.leader.election.enable`) makes another replica leader.
  3. Eligible replicas (KIP-966) left the in-sync set when it was, or became, smaller than min.insync.replicas. From then on nothing
     is acknowledged (the high watermark stands still below min.insync.replicas), so each of them has every acknowledged record
     and may lead when nobody in sync can. They are forgotten as soon as the in-sync set is large enough.
  4. Each change of a state raises its partition epoch by one, each change of the leader its leader epoch by one. An unclean
     election raises both, also when it confirms who led last.

Ugly: rule 3 leans on a promise of the leaders, kept in replication/.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from barnabas.cluster.metadata import NO_LEADER, BrokerRegistration, BrokerState, PartitionState


@dataclass(frozen=True, slots=True)
class Electorate:
    """The live brokers, by what they may do."""

    active: frozenset[int]  # lead, and be in sync
    leaving: frozenset[int] = frozenset()  # shutting down: lead on what nobody else can

    @classmethod
    def of(cls, brokers: Iterable[BrokerRegistration]) -> Electorate:
        everyone = tuple(brokers)
        active = frozenset(broker.broker_id for broker in everyone if broker.is_active)
        leaving = frozenset(broker.broker_id for broker in everyone if broker.state is BrokerState.SHUTTING_DOWN)
        return cls(active, leaving)


@dataclass(frozen=True, slots=True)
class Policy:
    """What the topic's settings say of elections."""

    min_in_sync: int = 1
    unclean: bool = False


def is_settled(state: PartitionState, electorate: Electorate) -> bool:
    """Whether `settle` would change nothing, told quickly for the many partitions that an event does not touch."""
    return state.leader in electorate.active and electorate.active.issuperset(state.isr)


def settle(state: PartitionState, electorate: Electorate, policy: Policy) -> PartitionState:
    """After brokers came, went or began to leave; `state` itself when nothing is to change."""
    in_sync = _alive_in_sync(state, electorate)
    leader = candidate(state, in_sync, electorate)
    if leader is not None:
        return change(state, policy, leader=leader, in_sync=in_sync)
    eligible = next((r for r in state.replicas if r in electorate.active and r in state.eligible), None)
    if eligible is not None:
        return change(state, policy, leader=eligible, in_sync=(eligible,))
    if policy.unclean:
        return elect_unclean(state, electorate, policy) or change(state, policy, leader=NO_LEADER, in_sync=in_sync)
    return change(state, policy, leader=NO_LEADER, in_sync=in_sync)


def elect_preferred(state: PartitionState, electorate: Electorate, policy: Policy) -> PartitionState | None:
    """Led by the first replica; None where that cannot lead."""
    preferred = state.replicas[0]
    if preferred not in electorate.active or preferred not in state.isr:
        return None
    return change(state, policy, leader=preferred, in_sync=state.isr)


def elect_unclean(state: PartitionState, electorate: Electorate, policy: Policy) -> PartitionState | None:
    """Led by whoever is alive, at the price of records; None where nobody is, or where a clean election would do."""
    clean = settle(state, electorate, replace(policy, unclean=False))
    if clean.leader != NO_LEADER:
        return clean
    leader = next((replica for replica in state.replicas if replica in electorate.active), None)
    if leader is None:
        return None
    return replace(
        state,
        leader=leader,
        isr=(leader,),
        eligible=(),
        leader_epoch=state.leader_epoch + 1,
        partition_epoch=state.partition_epoch + 1,
    )


def change(
    state: PartitionState, policy: Policy, *, leader: int, in_sync: tuple[int, ...], replicas: tuple[int, ...] | None = None
) -> PartitionState:
    """`state` with these, its epochs raised as they must be; `state` itself where nothing changes."""
    replicas = state.replicas if replicas is None else replicas
    eligible = _eligible(state, in_sync, replicas, policy)
    moved = leader != state.leader
    if not moved and in_sync == state.isr and replicas == state.replicas and eligible == state.eligible:
        return state
    # Made at once, not by `replace`: a lost broker changes tens of thousands of them.
    return PartitionState(
        leader, state.leader_epoch + moved, replicas, in_sync, state.partition_epoch + 1, state.adding, state.removing, eligible
    )


def with_epochs(before: PartitionState, after: PartitionState) -> PartitionState:
    """`after` with the epochs that follow from `before`, whatever it was made of."""
    if after == before:
        return before
    moved = after.leader != before.leader
    return replace(after, leader_epoch=before.leader_epoch + moved, partition_epoch=before.partition_epoch + 1)


def _alive_in_sync(state: PartitionState, electorate: Electorate) -> tuple[int, ...]:
    """Who stays in sync; never nobody."""
    for alive in (electorate.active, electorate.leaving):
        found = tuple(replica for replica in state.isr if replica in alive)
        if found:
            return found
    return state.isr


def candidate(state: PartitionState, in_sync: tuple[int, ...], electorate: Electorate) -> int | None:
    """Who would lead if these were in sync: the leader where it can stay, else the first replica that can."""
    for alive in (electorate.active, electorate.leaving):
        able = [replica for replica in state.replicas if replica in in_sync and replica in alive]
        if able:
            return state.leader if state.leader in able else able[0]
        if alive is electorate.active and any(replica in alive for replica in state.eligible):
            return None  # an eligible replica that stays is better than a leader that goes
    return None


def _eligible(before: PartitionState, in_sync: tuple[int, ...], replicas: tuple[int, ...], policy: Policy) -> tuple[int, ...]:
    if len(in_sync) >= min(policy.min_in_sync, len(replicas)):
        return ()
    return tuple(r for r in replicas if r not in in_sync and (r in before.isr or r in before.eligible))
