"""The answers to the members of one group, and whether they are possible: part of the checker, which is independent of the code
under test.

Rules
  1. In a generation a partition belongs to one member.
  2. The coordinator refuses a commit that a member sent after the end of its generation.
  3. A committed offset is one that a member requested, and not older than the last acknowledged one.
  4. Every record below the committed offset was delivered to a member.

A generation counts as begun when a member has received its assignment: the coordinator sends it after it is written.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct, field

from barnabas.testing.simulation.history import PartitionHistory, Register, TopicPartition, Violation

NOTHING = "-1"  # offset of a partition without a commit


class Commit(NamedTuple):
    """A commit without an answer yet."""

    place: TopicPartition
    number: int  # index of the commit in the partition's register
    generation: int
    newest: int  # the newest generation when the commit was sent


class GroupHistory(Struct):
    """The observations of one group."""

    name: str
    newest: int = -1  # the newest generation
    owners: dict[int, dict[TopicPartition, str]] = field(default_factory=dict)  # generation -> partition -> member
    offsets: dict[TopicPartition, Register] = field(default_factory=dict)
    given: dict[TopicPartition, set[int]] = field(default_factory=dict)  # offsets that any member has received
    refused: int = 0  # refused commits of old generations

    def assigned(self, generation: int, member: str, places: list[TopicPartition]) -> None:
        owners = self.owners.setdefault(generation, {})
        for place in places:
            owner = owners.setdefault(place, member)
            if owner != member:
                raise Violation(f"{self.name}: {place} belongs to {owner} and to {member} in generation {generation}")
        self.newest = max(self.newest, generation)

    def committing(self, place: TopicPartition, offset: int, generation: int) -> Commit:
        return Commit(place, self._register(place).asking(str(offset)), generation, self.newest)

    def committed(self, commit: Commit) -> None:
        if commit.generation < commit.newest:
            over = f"generation {commit.generation} was taken when generation {commit.newest} had begun"
            raise Violation(f"{self.name}: a commit of {over}")
        self._register(commit.place).told(commit.number)

    def fetched(self, place: TopicPartition, offset: int) -> None:
        """A member or an auditor received `offset` as the committed one."""
        self._register(place).read(str(offset))

    def gave(self, place: TopicPartition, start: int, end: int) -> None:
        """A member received the records in [start, end), which may be empty."""
        self.given.setdefault(place, set()).update(range(start, end))

    def check(self, place: TopicPartition, committed: int, history: PartitionHistory) -> None:
        """Check rule 4, after all requests have ended and the auditor has read the partition."""
        self.fetched(place, committed)
        given = self.given.get(place, set())
        missed = sorted(offset for offset in history.kept if offset < committed and offset not in given)
        if missed:
            raise Violation(f"poll skip: {self.name}: {place} is committed up to {committed}, and nobody has got {missed[0]}")

    def _register(self, place: TopicPartition) -> Register:
        return self.offsets.setdefault(place, Register(f"the offset of {self.name} in {place[0]}-{place[1]}", [NOTHING]))
