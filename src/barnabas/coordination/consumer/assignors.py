"""Assigns partitions to members: the broker's two assignors, as pure functions.

Rules
  1. Every partition of a topic that has subscribers goes to exactly one of them.
  2. `uniform` is sticky and balanced. If all members subscribe to the same topics, their numbers of partitions differ by one at
     most. Otherwise no member has two partitions more than another member that subscribes to one of its topics. Within these
     limits a member keeps its earlier partitions.
  3. `range` gives each member a run of consecutive partitions of a topic. The order of the members is the same for all topics:
     static ones by instance id, then the others by member id. If topics have the same subscribers and number of partitions,
     partitions of the same number go to the same member. It is not sticky.
  4. The same input gives the same output; the order of its dictionaries has no effect.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from barnabas.config.definitions.new_groups import ASSIGNORS as CLASS_NAMES
from barnabas.coordination.consumer.member import Assignment

NOTHING: Assignment = {}


class MemberSpec(NamedTuple):
    """The input of an assignor for a member: the existing topics that it subscribes to, and its earlier target."""

    topics: frozenset[UUID]
    target: Assignment = NOTHING
    instance_id: str | None = None


Members = Mapping[str, MemberSpec]
Counts = Mapping[UUID, int]  # the number of partitions of each topic
Assignor = Callable[[Members, Counts], dict[str, Assignment]]


def assign_uniform(members: Members, counts: Counts) -> dict[str, Assignment]:
    """Sticky and balanced, see rule 2."""
    work = _Uniform(members, counts)
    if work.is_same:
        work.keep_up_to_quota()
        work.fill()
    else:
        work.keep()
        work.fill()
        work.balance()
    return work.result()


def assign_range(members: Members, counts: Counts) -> dict[str, Assignment]:
    """In runs of partitions, see rule 3."""
    found: dict[str, dict[UUID, frozenset[int]]] = {member_id: {} for member_id in members}
    order = sorted(members, key=lambda m: (members[m].instance_id is None, members[m].instance_id or m, m))
    for topic_id, subscribers in _subscribers(order, members, counts).items():
        each, more = divmod(counts[topic_id], len(subscribers))
        start = 0
        for place, member_id in enumerate(subscribers):
            end = start + each + (place < more)
            if end > start:
                found[member_id][topic_id] = frozenset(range(start, end))
            start = end
    return dict(found)


def _subscribers(order: Iterable[str], members: Members, counts: Counts) -> dict[UUID, list[str]]:
    """The subscribers of each topic, in the order given."""
    found: dict[UUID, list[str]] = {}
    for member_id in order:
        for topic_id in members[member_id].topics:
            if counts.get(topic_id):
                found.setdefault(topic_id, []).append(member_id)
    return found


class _Uniform:
    """One assignment that is being computed."""

    def __init__(self, members: Members, counts: Counts) -> None:
        self._members = members
        self._order = sorted(members)
        self._counts = counts
        self._subscribers = _subscribers(self._order, members, counts)
        # Topics with few subscribers come first, while these subscribers still have room.
        self._topics = sorted(self._subscribers, key=lambda t: (len(self._subscribers[t]), t))
        self._owner: dict[UUID, dict[int, str]] = {topic_id: {} for topic_id in self._topics}
        self._load = dict.fromkeys(self._order, 0)
        self.is_same = len({spec.topics for spec in members.values()}) <= 1  # whether all members subscribe to the same topics

    def keep(self) -> None:
        """Let every member keep its earlier partitions of topics that it still reads."""
        for member_id in self._order:
            for topic_id, partition in self._former(member_id):
                self._give(topic_id, partition, member_id)

    def keep_up_to_quota(self) -> None:
        """Like `keep`, but at most a fair share. If some members get one partition more than others, these are members that had
        it already."""
        if not self._order:
            return
        quota, more = divmod(sum(self._counts[t] for t in self._topics), len(self._order))
        for member_id in self._order:
            former = self._former(member_id)
            room = quota
            if len(former) > quota and more:
                room, more = quota + 1, more - 1
            for topic_id, partition in former[:room]:
                self._give(topic_id, partition, member_id)

    def _former(self, member_id: str) -> list[tuple[UUID, int]]:
        """The member's earlier partitions that exist, that it still reads and that are not assigned yet. Topics alternate, so
        that the member gives up some partitions of each."""
        spec = self._members[member_id]
        kept = [
            (partition, topic_id)
            for topic_id, partitions in spec.target.items()
            if topic_id in spec.topics and topic_id in self._owner
            for partition in partitions
            if 0 <= partition < self._counts[topic_id] and partition not in self._owner[topic_id]
        ]
        return [(topic_id, partition) for partition, topic_id in sorted(kept)]

    def fill(self) -> None:
        """Assign the remaining partitions, each to the subscriber with the fewest."""
        heap = [(self._load[m], m) for m in self._order] if self.is_same else []
        heapq.heapify(heap)
        for topic_id in self._topics:
            taken = self._owner[topic_id]
            free = [p for p in range(self._counts[topic_id]) if p not in taken]
            if not self.is_same and free:
                heap = [(self._load[m], m) for m in self._subscribers[topic_id]]
                heapq.heapify(heap)
            for partition in free:
                load, member_id = heap[0]
                self._give(topic_id, partition, member_id)
                heapq.heapreplace(heap, (load + 1, member_id))

    def balance(self) -> None:
        """Move single partitions from members with more to members with fewer, until no move helps. Each move reduces the sum
        of squares."""
        moved = True
        while moved:
            moved = False
            for topic_id in self._topics:
                moved = self._balance_topic(topic_id) or moved

    def _balance_topic(self, topic_id: UUID) -> bool:
        owned: dict[str, list[int]] = {}
        for partition, owner in self._owner[topic_id].items():
            owned.setdefault(owner, []).append(partition)
        load, moved = self._load, False
        low = [(load[m], m) for m in self._subscribers[topic_id]]
        high = [(-load[m], m) for m in owned]
        heapq.heapify(low)
        heapq.heapify(high)
        while high:
            negated, giver = high[0]
            least, taker = low[0]
            if -negated != load[giver] or not owned[giver]:
                heapq.heappop(high)
                if owned[giver]:
                    heapq.heappush(high, (-load[giver], giver))
                continue
            if least != load[taker]:
                heapq.heapreplace(low, (load[taker], taker))
                continue
            if load[giver] - least <= 1:
                break
            partition = self._easiest(topic_id, owned[giver], giver, taker)
            owned[giver].remove(partition)
            if not owned.get(taker):
                heapq.heappush(high, (-least - 1, taker))
            owned.setdefault(taker, []).append(partition)
            self._take(topic_id, partition, giver)
            self._give(topic_id, partition, taker)
            moved = True
        return moved

    def _easiest(self, topic_id: UUID, partitions: list[int], giver: str, taker: str) -> int:
        """A partition to move: first one that the receiver had before, then one that the giver did not have before, then any."""
        had = self._members[giver].target.get(topic_id, frozenset())
        wanted = self._members[taker].target.get(topic_id, frozenset())
        return min(partitions, key=lambda p: (p not in wanted, p in had, p))

    def _give(self, topic_id: UUID, partition: int, member_id: str) -> None:
        self._owner[topic_id][partition] = member_id
        self._load[member_id] += 1

    def _take(self, topic_id: UUID, partition: int, member_id: str) -> None:
        del self._owner[topic_id][partition]
        self._load[member_id] -= 1

    def result(self) -> dict[str, Assignment]:
        found: dict[str, dict[UUID, set[int]]] = {member_id: {} for member_id in self._order}
        for topic_id, owners in self._owner.items():
            for partition, member_id in owners.items():
                found[member_id].setdefault(topic_id, set()).add(partition)
        return {m: {t: frozenset(partitions) for t, partitions in topics.items()} for m, topics in found.items()}


ASSIGNORS: Mapping[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}


def assignor_names(configured: Iterable[str]) -> tuple[str, ...]:
    """The assignors of `group.consumer.assignors` by their short names, the default one first."""
    short = {class_name: name for name, class_name in CLASS_NAMES.items()}
    return tuple(dict.fromkeys(short.get(name, name) for name in configured))
