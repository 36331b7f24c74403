"""A classic group: its members, its state, and the operations that each state allows.

Owns the data and its invariants; `rebalance.py` decides when to rebalance. The states:

    Empty --> PreparingRebalance --> CompletingRebalance --> Stable
      ^            |    ^                    |                 |
      +------------+    +--------------------+-----------------+
    Every state can change to Dead: the group is being unloaded, and its clients must find the next coordinator.

Rules
  1. The leader is a member, if there are members at all.
  2. The group can choose a protocol only if every member speaks it. The one that most members prefer wins; on a tie the oldest
     member decides.
  3. An instance id belongs to one member id at a time; requests with a former member id are fenced (KIP-345).
  4. The generation grows with every completed rebalance and never goes back.

Ugly: a client that got its member id and has not joined yet (KIP-394) is not a member, but a rebalance waits for it:
`pending_joins`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum

from barnabas.coordination.classic.member import ClassicMember
from barnabas.coordination.classic.subscription import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from barnabas.coordination.group import Committer, GroupType
from barnabas.coordination.group_records import NO_TIMESTAMP, GroupMetadataValue, OffsetCommitValue, group_record
from barnabas.coordination.result import Token
from barnabas.coordination.version_prefix import Record
from barnabas.errors import ErrorCode, InvariantViolated, KafkaError
from barnabas.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember


class GroupState(StrEnum):
    """The states with the names that clients see."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


TRANSITIONS = frozenset(
    {
        (GroupState.EMPTY, GroupState.PREPARING_REBALANCE),
        (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE),
        (GroupState.PREPARING_REBALANCE, GroupState.EMPTY),
        (GroupState.COMPLETING_REBALANCE, GroupState.PREPARING_REBALANCE),
        (GroupState.COMPLETING_REBALANCE, GroupState.STABLE),
        (GroupState.STABLE, GroupState.PREPARING_REBALANCE),
        *((state, GroupState.DEAD) for state in GroupState),
    }
)


class ClassicGroup:
    """One group. The time stamps are of the wall clock."""

    group_type = GroupType.CLASSIC

    def __init__(self, group_id: str, now_wall_ms: int | None = None) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.previous_state = GroupState.EMPTY
        self.state_since_ms = now_wall_ms  # None if an old record has no time
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, ClassicMember] = {}  # the oldest member first
        self.static_members: dict[str, str] = {}  # instance id -> member id
        self.pending_joins: set[str] = set()  # member ids that were given out but not used yet
        self.pending_syncs: set[str] = set()  # members of this generation that have not sent SyncGroup
        self.waiting_joins = 0  # number of members that wait for a JoinGroup response
        self.member_added = False  # whether a member joined since the last delay of the initial rebalance began
        self.initial_delay_ms = 0  # the current delay of the initial rebalance
        self.initial_delay_left_ms = 0  # time by which the delay may still grow
        self.subscribed_topics: frozenset[str] | None = None  # None if the metadata does not name the topics
        self._speakers: Counter[str] = Counter()  # protocol -> number of members that support it

    # -- queries --------------------------------------------------------------------------------------------------------

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return self.state is GroupState.EMPTY

    @property
    def is_abandoned(self) -> bool:
        return self.is_empty and not self.pending_joins

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def rebalance_timeout_ms(self) -> int:
        """The time limit of a rebalance: the longest rebalance timeout of its members."""
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    @property
    def is_assigning(self) -> bool:
        """Whether the leader has sent an assignment that is not committed yet, so no member has received it."""
        leader = self.members.get(self.leader or "")
        return self.state is GroupState.COMPLETING_REBALANCE and leader is not None and leader.sync_token is not None

    @property
    def all_joined(self) -> bool:
        return self.waiting_joins == len(self.members) and not self.pending_joins

    def is_in(self, *states: GroupState) -> bool:
        return self.state in states

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether members read `topic`; a consumer group with an unknown subscription counts as subscribed to all topics."""
        return self.uses_consumer_protocol if self.subscribed_topics is None else topic in self.subscribed_topics

    def supports(self, protocol_type: str, protocols: Mapping[str, bytes]) -> bool:
        """Whether a member with these protocols could be in the group."""
        if self.is_empty:
            return bool(protocol_type) and bool(protocols)
        return self.protocol_type == protocol_type and any(self._speakers[name] == len(self.members) for name in protocols)

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """Refuse a client that is not a member, or that another client with the same instance id has replaced."""
        if instance_id is not None:
            known = self.static_members.get(instance_id)
            if known is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if known != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    def check_offset_commit(self, commit: Committer) -> None:
        """Refuse a commit from outside this generation. A transaction may commit while the generation's leader still assigns:
        its producer cannot handle REBALANCE_IN_PROGRESS."""
        if self.state is GroupState.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if commit.generation < 0 and self.is_empty:
            return  # the commit is from an administrator, or from a consumer that only stores offsets
        if commit.is_nobody:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        self.check_member(commit.member_id, commit.instance_id)
        if commit.generation != self.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        if self.state is GroupState.COMPLETING_REBALANCE and commit.api_version is not None:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Every client with DESCRIBE on a classic group may read its offsets."""

    def check_offset_delete(self) -> None:
        if not self.is_empty and not self.uses_consumer_protocol:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def check_delete(self) -> None:
        if not self.is_empty:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def offset_retained_since_ms(self, offset: OffsetCommitValue) -> int | None:
        """KIP-211: the time of the commit for simple consumers and for topics without readers, otherwise the time at which the
        group became empty."""
        if self.protocol_type is None:
            return offset.commit_timestamp_ms
        if self.is_empty:
            return offset.commit_timestamp_ms if self.state_since_ms is None else self.state_since_ms
        if self.state is GroupState.STABLE and self.uses_consumer_protocol and self.subscribed_topics is not None:
            return offset.commit_timestamp_ms
        return None

    def choose_protocol(self) -> str:
        """The protocol that every member supports and most prefer."""
        candidates = {name for name, speakers in self._speakers.items() if speakers == len(self.members)}
        votes = Counter(vote for m in self.members.values() if (vote := m.vote(candidates)) is not None)
        if not votes:
            raise InvariantViolated(f"group {self.group_id}: no protocol is spoken by all of {list(self.members)}")
        return votes.most_common(1)[0][0]

    # -- members --------------------------------------------------------------------------------------------------------

    def add(self, member: ClassicMember, token: Token | None) -> None:
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader is None:
            self.leader = member.member_id
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self.members[member.member_id] = member
        self._speakers.update(member.protocols.keys())
        self.set_join_token(member, token)
        self.pending_joins.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        """Remove a member or a pending id; the oldest remaining member succeeds a removed leader."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._unspeak(member)
            self.waiting_joins -= member.join_token is not None
            if member.instance_id is not None:
                del self.static_members[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_joins.discard(member_id)
        self.pending_syncs.discard(member_id)

    def replace_static(self, old_id: str, new_id: str) -> ClassicMember:
        """Give a static member another id. Its other properties stay, but none of its requests waits any more."""
        member = self.members.pop(old_id)
        if member.instance_id is None or member.join_token is not None or member.sync_token is not None:
            raise InvariantViolated(f"group {self.group_id}: {old_id} cannot be replaced")
        member.member_id = new_id
        member.is_new = False
        self.members[new_id] = member
        self.static_members[member.instance_id] = new_id
        if self.leader == old_id:
            self.leader = new_id
        self.pending_syncs.discard(old_id)
        return member

    def update(
        self, member: ClassicMember, protocols: dict[str, bytes], *, rebalance_timeout_ms: int, session_timeout_ms: int
    ) -> None:
        self._unspeak(member)
        self._speakers.update(protocols.keys())
        member.protocols = protocols
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def set_join_token(self, member: ClassicMember, token: Token | None) -> None:
        self.waiting_joins += (token is not None) - (member.join_token is not None)
        member.join_token = token

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it joined again, otherwise choose the oldest member that did. False if no member joined again."""
        if self.leader is None:
            return False
        if self.members[self.leader].join_token is not None:
            return True
        joined = next((m.member_id for m in self.members.values() if m.join_token is not None), None)
        if joined is not None:
            self.leader = joined
        return joined is not None

    def _unspeak(self, member: ClassicMember) -> None:
        self._speakers.subtract(member.protocols.keys())
        for name in member.protocols:
            if not self._speakers[name]:
                del self._speakers[name]

    # -- state ----------------------------------------------------------------------------------------------------------

    def transition_to(self, state: GroupState, now_wall_ms: int) -> None:
        if (self.state, state) not in TRANSITIONS:
            raise InvariantViolated(f"group {self.group_id}: from {self.state} to {state}")
        self.previous_state, self.state = self.state, state
        self.state_since_ms = now_wall_ms

    def start_next_generation(self, now_wall_ms: int) -> None:
        """All members that will join have joined: choose the protocol and continue, or become empty."""
        self.generation += 1
        self.protocol = self.choose_protocol() if self.members else None
        self._learn_topics()
        self.pending_syncs.clear()
        self.transition_to(GroupState.COMPLETING_REBALANCE if self.members else GroupState.EMPTY, now_wall_ms)

    def _learn_topics(self) -> None:
        if not self.uses_consumer_protocol or (self.members and self.protocol is None):
            self.subscribed_topics = None
            return
        protocol = self.protocol or ""
        self.subscribed_topics = subscribed_topics(m.protocols[protocol] for m in self.members.values())

    # -- the log --------------------------------------------------------------------------------------------------------

    def to_record(self, assignments: Mapping[str, bytes]) -> Record:
        """The record of this generation; `assignments` has one entry for each member id, since the members may not have them
        yet."""
        protocol = self.protocol or ""
        value = GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            current_state_timestamp_ms=NO_TIMESTAMP if self.state_since_ms is None else self.state_since_ms,
            members=[m.to_record(protocol, assignments.get(m.member_id, b"")) for m in self.members.values()],
        )
        return group_record(self.group_id, value)

    def to_first_record(self) -> Record:
        """The record that only shows that the group exists."""
        since = NO_TIMESTAMP if self.state_since_ms is None else self.state_since_ms
        return group_record(self.group_id, GroupMetadataValue(current_state_timestamp_ms=since))

    def tombstones(self) -> list[Record]:
        return [group_record(self.group_id, None)]

    @classmethod
    def from_value(cls, group_id: str, value: GroupMetadataValue) -> ClassicGroup:
        """The group from its last record. Members count as alive until their session expires."""
        group = cls(group_id)
        group.generation = value.generation
        group.protocol = value.protocol
        for record in value.members:
            group.add(ClassicMember.from_record(record, value.protocol_type, value.protocol or ""), None)
        group.protocol_type = value.protocol_type or None
        group.leader = value.leader
        group.state = group.previous_state = GroupState.STABLE if group.members else GroupState.EMPTY
        since = value.current_state_timestamp_ms
        group.state_since_ms = None if since == NO_TIMESTAMP else since
        group._learn_topics()
        return group

    # -- descriptions ---------------------------------------------------------------------------------------------------

    def describe(self) -> DescribedGroup:
        stable = self.state is GroupState.STABLE
        return DescribedGroup(
            group_id=self.group_id,
            group_state=self.state_name,
            protocol_type=self.protocol_type or "",
            protocol_data=(self.protocol or "") if stable else "",
            members=[
                DescribedGroupMember(
                    member_id=m.member_id,
                    group_instance_id=m.instance_id,
                    client_id=m.client_id,
                    client_host=m.client_host,
                    member_metadata=m.protocols.get(self.protocol or "", b"") if stable else b"",
                    member_assignment=m.assignment,
                )
                for m in self.members.values()
            ],
        )

    def clients(self) -> set[tuple[str, str]]:
        """Client ids and hosts of the members."""
        return {(m.client_id, m.client_host) for m in self.members.values()}

    def validate(self) -> None:
        """Raise InvariantViolated if the parts disagree."""
        speakers = Counter(name for m in self.members.values() for name in m.protocols)
        checks = {
            "the leader is a member": self.leader is None or self.leader in self.members,
            "members have a leader": not self.members or self.leader is not None,
            "static ids name members": all(
                self.members[member_id].instance_id == instance_id for instance_id, member_id in self.static_members.items()
            ),
            "static members are known by instance": len(self.static_members) == sum(m.is_static for m in self.members.values()),
            "waiting joins are counted": self.waiting_joins == sum(m.join_token is not None for m in self.members.values()),
            "speakers are counted": self._speakers == speakers,
            "pending ids are no members": not self.pending_joins & self.members.keys(),
            "pending syncs are members": self.pending_syncs <= self.members.keys(),
            "an empty group has no members": not self.is_empty or not self.members,
            "a group at work has members": bool(self.members)
            or not self.is_in(GroupState.COMPLETING_REBALANCE, GroupState.STABLE),
            "syncs wait while completing": self.state is GroupState.COMPLETING_REBALANCE
            or all(m.sync_token is None for m in self.members.values()),
        }
        broken = [rule for rule, holds in checks.items() if not holds]
        if broken:
            raise InvariantViolated(f"group {self.group_id}: {broken}")
