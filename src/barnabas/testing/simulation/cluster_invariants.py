"""The invariants of a cluster at every moment, checked from outside of the brokers.

After every event of a broker, for the partitions that this broker leads:
    - one leader for each partition and epoch;
    - the high watermark is never above the log end, and never goes back while the same broker leads in the same epoch.
After every write to the store, for the entry that was written:
    - the leader is in sync, the replicas in sync have the partition, and at least one replica is in sync;
    - another leader has a higher epoch; epochs never go back;
    - a lost partition is led by the replica whose log goes furthest, among those that were last known.
Every PULSE_S of virtual time: a replica that is active, and in sync according to the store, has all records below the leader's
high watermark.

The histories and `convergence.py` check that acknowledged records stay and are the same everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from barnabas.cluster.metadata import store_entries
from barnabas.cluster.metadata.image import PartitionState
from barnabas.protocol.values import NO_LEADER
from barnabas.testing.simulation.history import Violation

if TYPE_CHECKING:
    from barnabas.replication.partition import OnlinePartition
    from barnabas.testing.simulation.afflicted import Afflicted
    from barnabas.testing.simulation.loop import VirtualLoop
    from barnabas.testing.simulation.node import Node

PULSE_S = 0.05
Term = tuple[UUID, int, int]  # topic id, partition, leader epoch


class InvariantChecker:
    """Checks the rules of the module. Raises Violation, or reports it where other code would catch the exception."""

    def __init__(self, simulation: Afflicted) -> None:
        self._simulation = simulation
        self._leaders: dict[Term, str] = {}
        self._marks: dict[Term, int] = {}  # high watermark of each term
        self._states: dict[tuple[str, int], PartitionState] = {}
        self._heads: dict[str, bytes] = {}
        self._tree = simulation.ensemble.tree
        self._hosts = {node.host: node for node in simulation.nodes}
        self._pulse_s = 0.0
        self._tree.observers.append(self._written)

    # --- after an event of a broker

    def look(self, loop: VirtualLoop) -> None:
        node = self._hosts.get(loop.host)
        process = None if node is None else node.process
        if node is None or process is None or process.loop is not loop or process.files.dead:
            return
        for partition in process.broker.partitions:
            if partition.is_leader:
                self._look_at(node, partition)
        now_s = self._simulation.world.now_s
        if now_s - self._pulse_s >= PULSE_S:
            self._pulse_s = now_s
            self._compare()

    def _look_at(self, node: Node, partition: OnlinePartition) -> None:
        term = partition.topic_id, partition.index, partition.leader_epoch
        mark = partition.high_watermark
        before = self._marks.get(term)
        if before == mark:
            if self._leaders[term] == node.host:
                return
        elif before is not None and mark < before and self._leaders[term] == node.host:
            raise Violation(f"{_name(partition)}: the high watermark went back from {before} to {mark} in epoch {term[2]}")
        self._marks[term] = mark
        leader = self._leaders.setdefault(term, node.host)
        if leader != node.host:
            raise Violation(f"{_name(partition)}: two leaders in epoch {term[2]}, {leader} and {node.host}")
        if mark > partition.log.log_end_offset:
            raise Violation(f"{_name(partition)}: the high watermark {mark} is above the log's end on {node.host}")

    # --- after a write to the store

    def _written(self, paths: tuple[str, ...]) -> None:
        try:
            for path in paths:
                if path.startswith(store_entries.TOPICS):
                    self._head_written(path)
                elif path.startswith(store_entries.PARTITIONS):
                    self._chunk_written(path)
        except Violation as violation:  # report it to the run: the writing broker would catch the exception
            self._simulation.report_violation(violation)

    def _head_written(self, path: str) -> None:
        """If another topic has this name now, forget the states of the former one."""
        entry = self._tree.entries.get(path)
        name = store_entries.topic_of_path(path)
        identity = b"" if entry is None else store_entries.decode_head(entry.value)[0].bytes
        if self._heads.get(name) != identity:
            self._heads[name] = identity
            for key in [key for key in self._states if key[0] == name]:
                del self._states[key]

    def _chunk_written(self, path: str) -> None:
        entry = self._tree.entries.get(path)
        if entry is None:
            return
        topic, chunk = store_entries.topic_of_path(path), int(path.rpartition("/")[2])
        for index, state in enumerate(store_entries.decode_chunk(entry.value), chunk * store_entries.CHUNK):
            before = self._states.get((topic, index))
            self._states[topic, index] = state
            if before != state:
                _check(f"{topic}-{index}", before, state)
                self._check_recovery(topic, index, before, state)

    def _check_recovery(self, topic: str, index: int, before: PartitionState | None, state: PartitionState) -> None:
        """If another replica's log goes further than the leader's, its last records would be truncated. The histories cannot
        detect it: after a loss of power everywhere they expect that an end of the log is missing."""
        if before is None or not before.is_lost or state.leader == NO_LEADER:
            return
        ends = {}
        for number in before.last_known:
            process = self._simulation.nodes[number - 1].process
            found = None if process is None else process.broker.partitions.get(topic, index)
            if found is not None and not found.is_offline:
                ends[number] = found.log.reader.epoch_of_end, found.log.log_end_offset
        furthest = max(ends, key=ends.__getitem__, default=state.leader)
        if state.leader in ends and ends[state.leader] < ends[furthest]:
            told = f"{state.leader} leads with {ends[state.leader]}, and {furthest} has {ends[furthest]} (epoch, end)"
            raise Violation(f"{topic}-{index} was lost: {told}")

    # --- from time to time

    def _compare(self) -> None:
        """Check that replicas in sync have all committed records, and that no log contradicts itself."""
        for node in self._simulation.nodes:
            process = node.process
            if process is None or process.files.dead:
                continue
            for partition in process.broker.partitions:
                partition.log.validate()
                if not partition.is_leader or self._heads.get(partition.topic) != partition.topic_id.bytes:
                    continue  # the topic was deleted, and may have been created again
                state = self._states.get((partition.topic, partition.index))
                if state is not None and state.leader == node.number and state.leader_epoch == partition.leader_epoch:
                    self._compare_with(partition, state)

    def _compare_with(self, leading: OnlinePartition, state: PartitionState) -> None:
        for number in state.isr:
            process = self._simulation.nodes[number - 1].process
            broker = None if process is None or process.files.dead else process.broker
            if broker is None or broker.member is None or broker.member.is_down:
                continue  # a broker that lost data leaves the in-sync replicas before it becomes active
            other = broker.partitions.get(leading.topic, leading.index)
            if other is None or other.is_offline or other.topic_id != leading.topic_id:
                continue
            # A copy of another cluster starts again empty at an offset past its replicas, if the source has deleted all before.
            if max(other.log.log_end_offset, leading.log.log_start_offset) < leading.high_watermark:
                end, mark = other.log.log_end_offset, leading.high_watermark
                raise Violation(f"{_name(leading)}: broker {number} is in sync with {end} records, and {mark} are committed")


def _check(name: str, before: PartitionState | None, state: PartitionState) -> None:
    if not state.isr:
        raise Violation(f"{name}: nobody is in sync")
    if not set(state.isr) <= set(state.replicas) or len(set(state.replicas)) < len(state.replicas):
        raise Violation(f"{name}: in sync are {state.isr}, replicas are {state.replicas}")
    if state.leader != NO_LEADER and state.leader not in state.isr:
        raise Violation(f"{name}: {state.leader} leads and is not in sync ({state.isr})")
    if before is None:
        return
    if state.leader_epoch < before.leader_epoch or state.partition_epoch < before.partition_epoch:
        raise Violation(f"{name}: epochs went back from {before} to {state}")
    if state.leader != before.leader and state.leader_epoch == before.leader_epoch:
        raise Violation(f"{name}: two leaders in epoch {state.leader_epoch}, {before.leader} and {state.leader}")


def _name(partition: OnlinePartition) -> str:
    return f"{partition.topic}-{partition.index}"
