"""The leader and the in-sync replicas of a partition after an event: pure functions from one state to the next.

Rules
  1. A leader is in sync and active, or it is shutting down and no other replica can lead.
  2. The set of in-sync replicas is never empty: if all of them are down, they stay in it, because one of them has every
     acknowledged record. Only an unclean election (`unclean.leader.election.enable`) makes another replica leader.
  3. Eligible replicas (KIP-966) left the in-sync set when it was, or became, smaller than min.insync.replicas. From then on
     nothing is acknowledged (below min.insync.replicas the high watermark does not advance). So each of them has every
     acknowledged record and may lead if no in-sync replica can. They are dropped as soon as the in-sync set is large enough.
  4. A broker that registers without proof that its logs are complete (`Kept`) leaves the in-sync and eligible replicas before
     it is active again. If only eligible replicas are left, they become the in-sync ones, by rule 3. If none is left, the
     partition is lost: the last in-sync replica stays recorded, and there is no leader. There are two exceptions: a partition
     with no other replica keeps its leader with the remaining records; and after a power failure, topics that sync each record
     before a replica counts as having it are not affected.
  5. A replica that leaves by rule 4 because its machine lost power, and not its disk, stays among the last known replicas
     (KIP-966) until min.insync.replicas replicas are in sync. Each last known replica has the acknowledged records, except an
     unsynced end. A lost partition gets a leader again when all last known replicas are back and have reported the ends of
     their logs: the replica with the furthest end leads. Records that are missing then were lost on more replicas than the
     guarantee covers. While a last known replica is down, or if none is left, only an operator can decide whether to wait: an
     unclean election gives the partition a leader at once.
  6. A broker whose log of a partition is on a failed disk (KIP-112) counts as dead for that partition and as alive for others.
  7. Each change of a state raises its partition epoch by one. A change of the leader or a removal of replicas also raises its
     leader epoch by one. An unclean election, and one by rule 5, raises both, even if it confirms the last leader.

Ugly: rule 3 relies on the behaviour of leaders in replication/.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from msgspec import Struct, field
from msgspec.structs import replace

from barnabas.cluster.metadata.image import BrokerRegistration, BrokerState, Kept, LogEnd, PartitionState
from barnabas.protocol.values import NO_LEADER

LogEnds = Mapping[int, LogEnd]
NO_ENDS: LogEnds = {}


class Electorate(Struct, frozen=True):
    """The live brokers, by their states."""

    active: frozenset[int]  # may lead and be in sync
    leaving: frozenset[int] = frozenset()  # shutting down: keep only leaderships that no other broker can take
    doubtful: frozenset[int] = frozenset()  # not active yet; these logs may lack unsynced records, or all records (`unknown`)
    unknown: frozenset[int] = frozenset()
    ends: Mapping[tuple[UUID, int], LogEnds] = field(default_factory=dict)  # log ends of lost partitions
    offline: Mapping[tuple[UUID, int], frozenset[int]] = field(
        default_factory=dict
    )  # brokers whose log of the partition is on a failed disk

    @classmethod
    def of(cls, brokers: Iterable[BrokerRegistration]) -> Electorate:
        everyone = tuple(brokers)
        active = frozenset(broker.broker_id for broker in everyone if broker.is_active)
        leaving = frozenset(broker.broker_id for broker in everyone if broker.state is BrokerState.SHUTTING_DOWN)
        doubtful = [each for each in everyone if each.state is BrokerState.FENCED and each.kept is not Kept.ALL]
        unknown = frozenset(broker.broker_id for broker in doubtful if broker.kept is Kept.UNKNOWN)
        ends: dict[tuple[UUID, int], dict[int, LogEnd]] = {}
        for broker in everyone:
            for end in broker.log_ends if broker.is_active else ():
                ends.setdefault((end.topic_id, end.partition), {})[broker.broker_id] = end
        offline: dict[tuple[UUID, int], frozenset[int]] = {}
        for broker in everyone:
            for topic_id, partitions in broker.offline.items():
                for partition in partitions:
                    key = topic_id, partition
                    offline[key] = offline.get(key, frozenset()) | {broker.broker_id}
        return cls(active, leaving, frozenset(broker.broker_id for broker in doubtful), unknown, ends, offline)

    def of_partition(self, topic_id: UUID, partition: int) -> Electorate:
        """The electorate of one partition, without the brokers whose log of it is on a failed disk."""
        offline = self.offline.get((topic_id, partition)) if self.offline else None
        return self if offline is None else replace(self, active=self.active - offline, leaving=self.leaving - offline)

    def log_ends(self, topic_id: UUID, partition: int) -> LogEnds:
        """The ends of the logs of a lost partition, by broker."""
        return self.ends.get((topic_id, partition), {})

    def lossy(self, policy: Policy) -> frozenset[int]:
        """The brokers whose logs of a topic with this policy may have lost committed records."""
        return self.unknown if policy.is_synced else self.doubtful


class Policy(Struct, frozen=True):
    """The election settings of a topic."""

    min_in_sync: int = 1
    unclean: bool = False
    is_synced: bool = False  # each record is synced before a replica counts as having it


def is_settled(state: PartitionState, electorate: Electorate) -> bool:
    """Whether `settle` would change nothing: a fast check for the many partitions that an event does not affect."""
    return (
        state.leader in electorate.active
        and electorate.active.issuperset(state.isr)
        and (not state.eligible or electorate.doubtful.isdisjoint(state.eligible))
        and (not state.last_known or electorate.unknown.isdisjoint(state.last_known))
    )


def counts_on(state: PartitionState, broker_id: int, *, lossy: bool, unknown: bool = False) -> bool:
    """Whether a registered broker must not be active yet, because this partition still relies on its former state.

    Args:
        lossy: records of this topic may be lost.
        unknown: all records of this topic may be lost.
    """
    if unknown and broker_id in state.last_known:
        return True
    if broker_id not in state.isr:
        return lossy and broker_id in state.eligible
    return state.leader != NO_LEADER or (lossy and not state.is_lost and len(_holders(state)) > 1)


def settle(state: PartitionState, electorate: Electorate, policy: Policy) -> PartitionState:
    """The state after brokers came, went or began to leave; `state` itself if nothing changes."""
    kept = _without(state, electorate.lossy(policy), electorate.unknown)
    after = _settle(kept, electorate, policy)
    # If replicas were only removed, the partition epoch must still grow.
    return after if after is not kept or kept is state else replace(kept, partition_epoch=state.partition_epoch + 1)


def _settle(state: PartitionState, electorate: Electorate, policy: Policy) -> PartitionState:
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
    """The state with the first replica as leader; None if it cannot lead."""
    preferred = state.replicas[0]
    if preferred not in electorate.active or preferred not in state.isr or state.is_lost:
        return None
    return change(state, policy, leader=preferred, in_sync=state.isr)


def recover(state: PartitionState, electorate: Electorate, ends: LogEnds) -> PartitionState:
    """The state of a lost partition with a leader again, by rule 5; `state` itself if that is not possible yet.

    Args:
        ends: the reported ends of the logs, by broker.
    """
    known = {broker_id: ends[broker_id] for broker_id in state.last_known if _is_told(state, electorate, ends, broker_id)}
    if not state.is_lost or not known or len(known) < len(state.last_known):
        return state
    return _led_with_loss(state, _furthest(state, known), last_known=state.last_known)


def _is_told(state: PartitionState, electorate: Electorate, ends: LogEnds, broker_id: int) -> bool:
    end = ends.get(broker_id)
    return end is not None and end.leader_epoch == state.leader_epoch and broker_id in electorate.active


def _furthest(state: PartitionState, ends: LogEnds) -> int:
    """The replica with the newest leader epoch in its log; among equals the one with the furthest end, then the first one."""
    return max(
        ends, key=lambda broker_id: (ends[broker_id].last_epoch, ends[broker_id].end_offset, -state.replicas.index(broker_id))
    )


def elect_unclean(
    state: PartitionState, electorate: Electorate, policy: Policy, ends: LogEnds = NO_ENDS
) -> PartitionState | None:
    """The state after a clean election if one is possible, otherwise after an unclean one, which loses records. None if no
    replica is alive.

    Args:
        ends: for a lost partition, the reported ends of the logs, by broker.
    """
    clean = settle(state, electorate, replace(policy, unclean=False))
    if clean.leader != NO_LEADER:
        return clean
    # For a lost partition the last known replicas come first: they have most of its records.
    told = {n: ends[n] for n in state.last_known if state.is_lost and _is_told(state, electorate, ends, n)}
    last_known = sorted(state.last_known, key=lambda n: n not in state.isr) if state.is_lost else []
    able = [*((_furthest(state, told),) if told else ()), *(state.isr if state.is_lost else ()), *last_known, *state.replicas]
    leader = next((replica for replica in able if replica in electorate.active), None)
    return None if leader is None else _led_with_loss(state, leader, last_known=())


def _led_with_loss(state: PartitionState, leader: int, *, last_known: tuple[int, ...]) -> PartitionState:
    return replace(
        state,
        leader=leader,
        isr=(leader,),
        eligible=(),
        is_lost=False,
        last_known=last_known,
        leader_epoch=state.leader_epoch + 1,
        partition_epoch=state.partition_epoch + 1,
    )


def change(
    state: PartitionState, policy: Policy, *, leader: int, in_sync: tuple[int, ...], replicas: tuple[int, ...] | None = None
) -> PartitionState:
    """`state` with these values and raised epochs; `state` itself if nothing changes."""
    replicas = state.replicas if replicas is None else replicas
    eligible = _eligible(state, in_sync, replicas, policy)
    last_known = state.last_known and _still_known(state, leader, in_sync, replicas, policy)
    moved = leader != state.leader
    if (
        not moved
        and in_sync == state.isr
        and replicas == state.replicas
        and eligible == state.eligible
        and last_known == state.last_known
    ):
        return state
    # Constructed directly, because `replace` is slower and a lost broker changes tens of thousands of states.
    return PartitionState(
        leader,
        state.leader_epoch + moved,
        replicas,
        in_sync,
        state.partition_epoch + 1,
        state.adding,
        state.removing,
        eligible,
        state.is_lost,
        last_known,
    )


def with_epochs(before: PartitionState, after: PartitionState) -> PartitionState:
    """`after` with the epochs that follow from `before`."""
    if after == before:
        return before
    # A removed replica loses its log. If it were added again before the leader sees either change, the leader would assume its
    # former state.
    raised = after.leader != before.leader or not set(before.replicas) <= set(after.replicas)
    return replace(after, leader_epoch=before.leader_epoch + raised, partition_epoch=before.partition_epoch + 1)


def _alive_in_sync(state: PartitionState, electorate: Electorate) -> tuple[int, ...]:
    """The replicas that stay in sync: those on active brokers, otherwise those on leaving brokers, otherwise all; never empty."""
    if state.is_lost:
        return state.isr
    for alive in (electorate.active, electorate.leaving):
        found = tuple(replica for replica in state.isr if replica in alive)
        if found:
            return found
    return state.isr


def candidate(state: PartitionState, in_sync: tuple[int, ...], electorate: Electorate) -> int | None:
    """The leader for these in-sync replicas: the current one if it can stay, otherwise the first replica that can lead."""
    if state.is_lost:
        return None
    for alive in (electorate.active, electorate.leaving):
        able = [replica for replica in state.replicas if replica in in_sync and replica in alive]
        if able:
            return state.leader if state.leader in able else able[0]
        if alive is electorate.active and any(replica in alive for replica in state.eligible):
            return None  # an eligible replica on a staying broker is better than a leader that shuts down
    return None


def _eligible(before: PartitionState, in_sync: tuple[int, ...], replicas: tuple[int, ...], policy: Policy) -> tuple[int, ...]:
    if len(in_sync) >= min(policy.min_in_sync, len(replicas)):
        return ()
    return tuple(r for r in replicas if r not in in_sync and (r in before.isr or r in before.eligible))


def _still_known(
    state: PartitionState, leader: int, in_sync: tuple[int, ...], replicas: tuple[int, ...], policy: Policy
) -> tuple[int, ...]:
    """The last known replicas; none of them once the leader may acknowledge records that they do not have."""
    if leader != NO_LEADER and len(in_sync) >= min(policy.min_in_sync, len(replicas)):
        return ()
    return tuple(replica for replica in state.last_known if replica in replicas)


def _without(state: PartitionState, lossy: frozenset[int], unknown: frozenset[int]) -> PartitionState:
    """Apply rules 4 and 5; epochs and leader stay unchanged."""
    if not unknown.isdisjoint(state.last_known):
        state = replace(state, last_known=tuple(replica for replica in state.last_known if replica not in unknown))
    if state.is_lost or (lossy.isdisjoint(state.isr) and lossy.isdisjoint(state.eligible)):
        return state
    in_sync = tuple(replica for replica in state.isr if replica not in lossy)
    eligible = tuple(replica for replica in state.eligible if replica not in lossy)
    if not in_sync and not eligible and len(_holders(state)) == 1:
        return replace(state, eligible=()) if state.eligible else state
    known = {*state.last_known, *(lossy - unknown).intersection((*state.isr, *state.eligible))}
    state = replace(state, last_known=tuple(replica for replica in state.replicas if replica in known))
    if in_sync:
        return replace(state, isr=in_sync, eligible=eligible)
    if eligible:
        return replace(state, isr=eligible, eligible=())
    return replace(state, eligible=(), is_lost=True)


def _holders(state: PartitionState) -> tuple[int, ...]:
    """The replicas that may have records; not those that a move adds and that have not caught up yet."""
    return tuple(r for r in state.replicas if r not in state.adding or r in state.isr or r in state.eligible)
