"""Commands on partitions: leaders, in-sync replicas, and placement.

Pure, like the other planners: takes an image and fills a `PlanBuilder`. Each partition of a request succeeds or fails
separately. Several changes of one topic become one change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from functools import partial
from typing import NamedTuple
from uuid import UUID

from msgspec.structs import replace

from barnabas.cluster.metadata.image import MetadataImage, PartitionState, Topic
from barnabas.cluster.metadata.store_entries import BROKER_EPOCH, CHUNK
from barnabas.cluster.planning import reassignment
from barnabas.cluster.planning.alter_partition import InSyncChange, alter, check_broker_epoch
from barnabas.cluster.planning.instructions import ChangeReplica
from barnabas.cluster.planning.leadership import Electorate, Policy, elect_preferred, elect_unclean, is_settled, recover, settle
from barnabas.cluster.planning.placement import check_assignment
from barnabas.cluster.planning.plan import PlanBuilder
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.values import NO_LEADER

MAX_REWRITTEN_PER_PLAN = 8 * CHUNK  # partitions, in whole chunks, that one step of the controller changes: about 10 ms, 100 kB
MAX_CHUNKS_PER_PLAN = 64  # chunks that one step changes if topics are small: the cost of a step grows with the number of topics
MAX_LOOKED_AT = 5_000  # partitions that a step reads: about a millisecond without changes
NOT_NEEDED = "Leader election not needed for topic partition."


class ElectionType(IntEnum):
    """Numbers as in ElectLeaders."""

    PREFERRED = 0
    UNCLEAN = 1


class PartitionOutcome(NamedTuple):
    """The outcome for one partition: its state, or the error."""

    topic: str
    partition: int
    state: PartitionState | None = None
    error: KafkaError | None = None


class InSyncRequest(NamedTuple):
    topic_id: UUID
    partition: int
    change: InSyncChange


class MoveRequest(NamedTuple):
    """The target replicas of a partition; None cancels its current move."""

    topic: str
    partition: int
    replicas: Sequence[int] | None


class PartitionPlanner:
    """Plans partitions on one image.

    Args:
        policy_of: function from a topic to its election settings.
    """

    def __init__(self, image: MetadataImage, policy_of: Callable[[str], Policy], plan: PlanBuilder) -> None:
        self.image = image
        self.plan = plan
        self.electorate = Electorate.of(image.brokers.values())
        self._policy_of = policy_of
        self._changed: dict[str, dict[int, PartitionState]] = {}

    # Commands

    def alter(self, leader: int, broker_epoch: int, requests: Sequence[InSyncRequest]) -> list[PartitionOutcome]:
        """Change in-sync replicas at the request of a leader; raises KafkaError(STALE_BROKER_EPOCH) for the whole request."""
        check_broker_epoch(self.image.brokers, leader, broker_epoch)
        names = (self.image.topic_name(request.topic_id) or "" for request in requests)
        return self._each(
            (name, request.partition, partial(self._alter_one, leader, request))
            for name, request in zip(names, requests, strict=True)
        )

    def elect(self, kind: int, partitions: Sequence[tuple[str, int]] | None) -> list[PartitionOutcome]:
        """Elect leaders; None means all partitions, and then the result contains only those that needed an election."""
        if kind not in {ElectionType.PREFERRED, ElectionType.UNCLEAN}:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {kind}")
        asked = self._all() if partitions is None else partitions
        outcomes = self._each((t, p, partial(self._elect_one, kind, t, p)) for t, p in asked)
        if partitions is not None:
            return outcomes
        return [o for o in outcomes if o.error is None or o.error.code is not ErrorCode.ELECTION_NOT_NEEDED]

    def reassign(self, requests: Sequence[MoveRequest], *, may_change_factor: bool = True) -> list[PartitionOutcome]:
        return self._each((r.topic, r.partition, partial(self._move_one, r, may_change_factor)) for r in requests)

    # Changes by the controller itself

    def settle(self, topics: Iterable[str]) -> list[str]:
        """Elect leaders after brokers came or went; returns the remaining topics for the next plan."""
        waiting = list(topics)
        chunks = rewritten = looked_at = 0
        while waiting and looked_at < MAX_LOOKED_AT:
            topic = self.image.topics.get(waiting[-1])
            if topic is not None:
                for start in range(0, len(topic.partitions), CHUNK):
                    if chunks == MAX_CHUNKS_PER_PLAN or rewritten >= MAX_REWRITTEN_PER_PLAN:
                        return waiting
                    if self._settle_chunk(topic, start):
                        chunks += 1
                        rewritten += min(CHUNK, len(topic.partitions) - start)
                looked_at += len(topic.partitions)
            waiting.pop()
        return waiting

    def _settle_chunk(self, topic: Topic, start: int) -> bool:
        """Settle the chunk of a topic that begins at partition `start`; returns whether a partition changed."""
        changed = False
        for number, state in enumerate(topic.partitions[start : start + CHUNK], start):
            electorate = self.electorate.of_partition(topic.topic_id, number)
            if is_settled(state, electorate):
                continue
            after = settle(state, electorate, self._policy_of(topic.name))
            if after is state and state.is_lost:
                after = recover(state, electorate, electorate.log_ends(topic.topic_id, number))
                if after is not state:
                    # The broker whose reported log end is used must not have restarted since: it might have fewer records.
                    self.plan.rests_on(BROKER_EPOCH)
            changed |= self._put(topic.name, number, after)
        return changed

    def lagging(self, brokers: frozenset[int]) -> frozenset[int]:
        """The brokers that are the preferred leader of at least one partition in which they are not in sync."""
        return frozenset(
            state.replicas[0]
            for topic in self.image.topics.values()
            for state in topic.partitions
            if state.replicas[0] in brokers and state.replicas[0] not in state.isr
        )

    def balance(self, limit: int, may_lead: Callable[[int], bool]) -> int:
        """Move leadership of at most `limit` partitions back to preferred leaders that can lead; returns how many were moved.
        One call changes at most as many partitions as fit into one plan."""
        chunks = rewritten = moved = 0
        for topic in self.image.topics.values():
            for start in range(0, len(topic.partitions), CHUNK):
                found = self._balance_chunk(topic, start, limit - moved, may_lead)
                if found:
                    moved += found
                    chunks += 1
                    rewritten += min(CHUNK, len(topic.partitions) - start)
                if moved == limit or chunks == MAX_CHUNKS_PER_PLAN or rewritten >= MAX_REWRITTEN_PER_PLAN:
                    return moved
        return moved

    def _balance_chunk(self, topic: Topic, start: int, limit: int, may_lead: Callable[[int], bool]) -> int:
        moved = 0
        for number, state in enumerate(topic.partitions[start : start + CHUNK], start):
            if moved == limit:
                break
            preferred = state.replicas[0]
            if state.leader in {preferred, NO_LEADER} or state.is_moving or not may_lead(preferred):
                continue
            electorate = self.electorate.of_partition(topic.topic_id, number)
            after = elect_preferred(state, electorate, self._policy_of(topic.name))
            if after is not None:
                moved += self._put(topic.name, number, after)
        return moved

    def forget_eligible(self, topic: Topic, minimum: int) -> None:
        """Handle a change of min.insync.replicas: from now on leaders may acknowledge records that eligible and last known
        replicas do not have.

        Args:
            minimum: a lower bound of the changed value. A leader with fewer in-sync replicas acknowledges nothing, as before,
                so the eligible replicas stay.
        """
        for number, state in enumerate(topic.partitions):
            if len(state.isr) < min(minimum, len(state.replicas)):
                continue
            last_known = state.last_known if state.leader == NO_LEADER else ()
            if state.eligible or last_known != state.last_known:
                epoch = state.partition_epoch + 1
                self._put(topic.name, number, replace(state, eligible=(), last_known=last_known, partition_epoch=epoch))

    def begin_epochs_of_cut(self, topic: Topic) -> None:
        """Begin a leader epoch in each partition, after its leader has cut its log. A replica that is not in sync may have the cut records
        still, so it is not eligible any more."""
        for number in range(len(topic.partitions)):
            state = self._state(topic.name, number)
            self._begin_epoch(topic, number, replace(state, eligible=(), leader_epoch=state.leader_epoch + 1))

    def begin_epochs(self, topic: Topic, first: int) -> None:
        """Begin a leader epoch in each partition: `first`, or a later one."""
        for number in range(len(topic.partitions)):
            state = self._state(topic.name, number)
            self._begin_epoch(topic, number, replace(state, leader_epoch=max(first, state.leader_epoch + 1)))

    def _begin_epoch(self, topic: Topic, number: int, state: PartitionState) -> None:
        after = replace(state, partition_epoch=state.partition_epoch + 1)
        self._put(topic.name, number, after)
        # A broker that stands alone gets its instructions from here
        self.plan.instructions.append(ChangeReplica(topic.name, number, topic.topic_id, after))

    def finish(self) -> None:
        """Put the collected changes into the plan."""
        for name, states in self._changed.items():
            before = self.image.topics[name]
            after = tuple(states.get(number, state) for number, state in enumerate(before.partitions))
            self.plan.change_topic(before, replace(before, partitions=after))
        self._changed = {}

    # One partition

    def _alter_one(self, leader: int, request: InSyncRequest) -> PartitionState:
        topic = self.image.topic_by_id(request.topic_id)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        before = self._state(topic.name, request.partition)
        policy = self._policy_of(topic.name)
        electorate = self.electorate.of_partition(topic.topic_id, request.partition)
        after = alter(before, request.change, leader=leader, brokers=self.image.brokers, electorate=electorate, policy=policy)
        if self._put(topic.name, request.partition, after) and not set(after.isr) <= set(before.isr):
            # A replica that comes into sync must not have restarted unnoticed: it might have fewer records.
            self.plan.rests_on(BROKER_EPOCH)
        if (after.leader, after.leader_epoch) != (leader, before.leader_epoch):
            raise KafkaError(ErrorCode.NEW_LEADER_ELECTED)  # or the same leader got a higher epoch, because replicas were removed
        return after

    def _elect_one(self, kind: int, topic: str, partition: int) -> PartitionState:
        if topic not in self.image.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {topic}")
        if self.image.partition(topic, partition) is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {topic}-{partition}")
        state = self._state(topic, partition)
        policy = self._policy_of(topic)
        electorate = self._electorate_of(topic, partition)
        if kind == ElectionType.PREFERRED:
            if state.leader == state.replicas[0]:
                raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, NOT_NEEDED)
            after = elect_preferred(state, electorate, policy)
            error = KafkaError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available.")
        else:
            if state.leader != NO_LEADER:
                raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, NOT_NEEDED)
            topic_id = self.image.topics[topic].topic_id
            after = elect_unclean(state, electorate, policy, electorate.log_ends(topic_id, partition))
            error = KafkaError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "Eligible topic partition leaders are not available.")
        if after is None:
            raise error
        self._put(topic, partition, after)
        return after

    def _move_one(self, request: MoveRequest, may_change_factor: bool) -> PartitionState:
        state = self._state(request.topic, request.partition)
        policy = self._policy_of(request.topic)
        electorate = self._electorate_of(request.topic, request.partition)
        if request.replicas is None:
            if not state.is_moving:
                raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
            after = reassignment.cancel(state, electorate, policy)
        else:
            target = tuple(request.replicas)
            check_assignment({*self.image.brokers, *state.replicas}, target)
            factor = len(reassignment.original(state))
            if not may_change_factor and len(target) != factor:
                reason = f"The replication factor is changed from {factor} to {len(target)}"
                raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, reason)
            after = reassignment.begin(state, target, electorate, policy)
        self._put(request.topic, request.partition, after)
        return after

    # Gathering

    def _each(self, steps: Iterable[tuple[str, int, Callable[[], PartitionState]]]) -> list[PartitionOutcome]:
        outcomes = []
        for topic, partition, step in steps:
            try:
                outcomes.append(PartitionOutcome(topic, partition, step()))
            except KafkaError as error:
                outcomes.append(PartitionOutcome(topic, partition, error=error))
        self.finish()
        return outcomes

    def _all(self) -> list[tuple[str, int]]:
        return [(topic.name, number) for topic in self.image.topics.values() for number in range(len(topic.partitions))]

    def _state(self, topic: str, partition: int) -> PartitionState:
        """The state of a partition in this plan so far."""
        changed = self._changed.get(topic, {}).get(partition)
        found = changed or self.image.partition(topic, partition)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return found

    def _electorate_of(self, topic: str, partition: int) -> Electorate:
        return self.electorate.of_partition(self.image.topics[topic].topic_id, partition)

    def _put(self, topic: str, partition: int, state: PartitionState) -> bool:
        """Set the state of a partition; returns whether that is a change."""
        if state == self._state(topic, partition):
            return False
        self._changed.setdefault(topic, {})[partition] = state
        return True
