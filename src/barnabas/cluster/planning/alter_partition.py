"""AlterPartition: a leader changes its in-sync replicas, and the controller accepts or refuses the change (KIP-497, KIP-841,
KIP-903).

The checks are in Kafka's order, because a leader acts on the first one that fails:
    NOT_CONTROLLER           the leader knows a later state than this controller
    FENCED_LEADER_EPOCH      the leader was deposed
    INVALID_REQUEST          the broker is not the leader, or the request is invalid
    INVALID_UPDATE_VERSION   the state changed after the leader had read it
    INELIGIBLE_REPLICA       a named replica is down, is leaving, or was restarted in the meantime
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from barnabas.cluster.metadata.image import BrokerRegistration, PartitionState
from barnabas.cluster.planning.leadership import Electorate, Policy, change, with_epochs
from barnabas.cluster.planning.reassignment import complete
from barnabas.errors import ErrorCode, KafkaError

ANY_EPOCH = -1  # broker epoch in versions of the request without this field


class InSyncChange(Struct, frozen=True):
    """A leader's request for one partition.

    Args:
        in_sync: broker ids with the epochs of their registrations.
    """

    leader_epoch: int
    partition_epoch: int
    in_sync: tuple[tuple[int, int], ...]


def check_broker_epoch(brokers: Mapping[int, BrokerRegistration], broker_id: int, epoch: int) -> None:
    """Raises KafkaError(STALE_BROKER_EPOCH) for a request of an earlier registration."""
    found = brokers.get(broker_id)
    if found is None or found.epoch != epoch:
        registered = "it is not registered" if found is None else f"its epoch is {found.epoch}"
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, f"Broker {broker_id} gave broker epoch {epoch}, but {registered}.")


def alter(
    state: PartitionState,
    asked: InSyncChange,
    *,
    leader: int,
    brokers: Mapping[int, BrokerRegistration],
    electorate: Electorate | None = None,
    policy: Policy,
) -> PartitionState:
    """The state that `leader` requests.

    Args:
        electorate: the brokers from the view of this partition, where some may count as dead.

    Raises:
        KafkaError: see the module. NEW_LEADER_ELECTED is not raised: if a move ended with another leader, the caller sees it
            in the state.
    """
    electorate = electorate or Electorate.of(brokers.values())
    _check(state, asked, leader, brokers, electorate)
    in_sync = tuple(broker_id for broker_id, _ in asked.in_sync)
    if set(in_sync) == set(state.isr):
        in_sync = state.isr
    after = change(state, policy, leader=leader, in_sync=in_sync)
    if after.is_moving:
        after = complete(after, electorate, policy)
    return with_epochs(state, replace(after, leader_epoch=state.leader_epoch, partition_epoch=state.partition_epoch))


def _check(
    state: PartitionState, asked: InSyncChange, leader: int, brokers: Mapping[int, BrokerRegistration], electorate: Electorate
) -> None:
    if asked.leader_epoch > state.leader_epoch or asked.partition_epoch > state.partition_epoch:
        raise KafkaError(ErrorCode.NOT_CONTROLLER)
    if asked.leader_epoch < state.leader_epoch:
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
    if leader != state.leader:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker {leader} is not the leader.")
    if asked.partition_epoch < state.partition_epoch:
        raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION)
    in_sync = [broker_id for broker_id, _ in asked.in_sync]
    if len(set(in_sync)) != len(in_sync) or not set(in_sync) <= set(state.replicas):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"The in-sync replicas {in_sync} are not all different replicas.")
    if leader not in in_sync:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"The in-sync replicas {in_sync} are without the leader.")
    for broker_id, epoch in asked.in_sync:
        found = brokers.get(broker_id)
        if broker_id != leader and (found is None or broker_id not in electorate.active or epoch not in {found.epoch, ANY_EPOCH}):
            raise KafkaError(ErrorCode.INELIGIBLE_REPLICA, f"Broker {broker_id} cannot be in sync now.")
