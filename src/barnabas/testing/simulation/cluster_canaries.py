"""The classical faults of replication in simulated brokers: the simulator must find each of them.

As in `canaries.py`, the product's code does not contain them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

from msgspec.structs import replace

from barnabas.cluster.controller.core import Controller
from barnabas.cluster.metadata.image import Kept, PartitionState
from barnabas.cluster.planning import leadership, partitions, plan
from barnabas.cluster.planning.partitions import PartitionOutcome
from barnabas.cluster.planning.plan import Plan
from barnabas.cluster.store.interface import Put
from barnabas.coordination.classic import group
from barnabas.replication import in_sync
from barnabas.replication.leader_partition import LeaderPartition
from barnabas.server.cluster import cluster_session
from barnabas.server.logs import replica_manager
from barnabas.storage.log import truncator


@contextmanager
def acknowledging_before_the_others_have_it() -> Iterator[None]:
    """A leader commits records that no other replica has."""

    def high_watermark(_: Any, current: int, leader_end: int, **__: Any) -> int:
        return max(current, leader_end)

    with mock.patch.object(in_sync.InSyncReplicas, "high_watermark", high_watermark):
        yield


@contextmanager
def followers_that_do_not_truncate() -> Iterator[None]:
    """A follower keeps records that the leader of a later epoch has replaced.

    Leaders do not send the diverging epoch: a follower that gets it and does not truncate refuses to continue
    (`replication/follower_state.py`).
    """
    silent = mock.patch.object(LeaderPartition, "diverging_epoch", return_value=None)
    with silent, mock.patch.object(truncator.LogTruncator, "truncate_to", return_value=None):
        yield


@contextmanager
def truncating_to_the_high_watermark() -> Iterator[None]:
    """A broker that starts truncates its logs to the high watermarks that it knows (KIP-101 fixed this)."""
    host_all = replica_manager.ReplicaManager.host_all

    def cut_all(self: replica_manager.ReplicaManager) -> None:
        host_all(self)
        for replica in self._services.partitions:
            if not replica.is_offline and replica.log.log_end_offset > replica.high_watermark:
                replica.log.truncator.truncate_to(replica.high_watermark)

    with mock.patch.object(replica_manager.ReplicaManager, "host_all", cut_all):
        yield


@contextmanager
def a_controller_without_a_fence() -> Iterator[None]:
    """A deposed controller that writes its plans without the fence and without checking versions."""

    def put(self: plan.PlanBuilder, path: str, value: bytes) -> None:
        self._operations.append(Put(path, value))

    def build(self: plan.PlanBuilder) -> Plan:
        built = original(self)
        return replace(built, operations=tuple(self._operations))

    original = plan.PlanBuilder.build
    with mock.patch.multiple(plan.PlanBuilder, put=put, build=build):
        yield


@contextmanager
def in_sync_changes_that_are_lost() -> Iterator[None]:
    """The controller confirms that a replica is out of sync without writing it, and the leader treats this answer as the
    metadata."""
    alter_partitions = Controller.alter_partitions

    def forgetful(self: Controller, *args: Any) -> tuple[Sequence[PartitionOutcome], Plan]:
        outcomes, planned = alter_partitions(self, *args)
        states = [(self.image.partition(each.topic, each.partition), each.state) for each in outcomes]
        shrinks = any(before is not None and after is not None and len(after.isr) < len(before.isr) for before, after in states)
        return outcomes, Plan() if shrinks else planned

    trusting = mock.patch.object(LeaderPartition, "is_within_isr", return_value=True)
    with trusting, mock.patch.object(Controller, "alter_partitions", forgetful):
        yield


@contextmanager
def elections_in_the_same_epoch() -> Iterator[None]:
    """The election of another leader does not change the leader epoch."""
    change = leadership.change

    def same_epoch(state: PartitionState, *args: Any, **named: Any) -> PartitionState:
        return replace(change(state, *args, **named), leader_epoch=state.leader_epoch)

    with mock.patch.object(leadership, "change", same_epoch):
        yield


@contextmanager
def the_last_replica_standing() -> Iterator[None]:
    """A leader that is the only replica in sync continues to commit, against min.insync.replicas (KIP-966 fixed this)."""
    high_watermark = in_sync.InSyncReplicas.high_watermark

    def of_one(self: in_sync.InSyncReplicas, *args: Any, **named: Any) -> int:
        return high_watermark(self, *args, **{**named, "min_insync_replicas": 1})

    with mock.patch.object(in_sync.InSyncReplicas, "high_watermark", of_one):
        yield


@contextmanager
def losing_the_end_in_silence() -> Iterator[None]:
    """A broker whose machine lost power reports that its logs are complete."""
    with mock.patch.object(cluster_session, "what_was_kept", return_value=Kept.ALL):
        yield


@contextmanager
def leading_before_all_are_back() -> Iterator[None]:
    """After a power cut of all machines, the first replica that reports its log end becomes leader."""

    def recover(state: PartitionState, electorate: leadership.Electorate, ends: leadership.LogEnds) -> PartitionState:
        known = tuple(replica for replica in state.last_known if replica in ends and replica in electorate.active)
        return leadership.recover(replace(state, last_known=known), electorate, ends) if known else state

    with mock.patch.object(partitions, "recover", recover):
        yield


@contextmanager
def members_that_are_not_fenced() -> Iterator[None]:
    """A coordinator accepts commits of every former member of the group."""
    with mock.patch.object(group.ClassicGroup, "check_offset_commit", return_value=None):
        yield
