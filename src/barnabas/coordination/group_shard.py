"""All groups whose records are in one partition of `__consumer_offsets`.

Owns the table of groups and their offsets. A pure core: requests and `Now` in, `CoordinatorResult` out. `replay` takes records:
from the log while loading, from its own outcomes later. So the memory equals the log, except for the members of classic groups
(see `result.py`).

Rules
  1. A group with an offset is in the table; its first commit or its first record creates it.
  2. A group is removed with its offsets: when it is deleted, or when it is empty and its last offset has expired.
  3. Tombstones without a request are written in parts, so that no batch is too large.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from barnabas.coordination.classic.group import ClassicGroup
from barnabas.coordination.classic.protocol import ClassicProtocol
from barnabas.coordination.classic.rebalance import TimerKey
from barnabas.coordination.consumer.classic_members import ClassicMembers
from barnabas.coordination.consumer.consumer_group_records import read_consumer_key
from barnabas.coordination.consumer.deadlines import Changed, ConsumerTimerKey
from barnabas.coordination.consumer.group import ConsumerGroup
from barnabas.coordination.consumer.interfaces import Topics
from barnabas.coordination.consumer.migration import Downgraded, Upgraded
from barnabas.coordination.consumer.protocol import ConsumerProtocol
from barnabas.coordination.group import Group
from barnabas.coordination.group_records import OffsetCommitKey, RecordType, read_group_value, read_key, read_offset_value
from barnabas.coordination.offsets import Offsets, check_commit, check_transactional_commit
from barnabas.coordination.result import NO_PRODUCER, Caller, CoordinatorResult, GroupConfig, Now, Token, Written
from barnabas.coordination.timers import Timers
from barnabas.coordination.version_prefix import NUMBER_BYTES, Record, begin
from barnabas.errors import ErrorCode, InvariantViolated, KafkaError
from barnabas.protocol.messages import consumer_group_describe
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.describe_groups import DescribedGroup
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.messages.leave_group import LeaveGroupRequest
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from barnabas.protocol.messages.sync_group import SyncGroupRequest
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

STORY_LENGTH = 64  # events in the report of a violated invariant
# key prefixes of the record types of which only the last record counts
OVERWRITTEN = frozenset({bytes(begin(RecordType.OFFSET_COMMIT)), bytes(begin(RecordType.GROUP_METADATA))})
PART_BYTES = 16 << 10  # key bytes in a batch of tombstones; a single larger key gets its own batch


class GroupShard:
    """The coordinator of the groups of one partition.

    Args:
        topics: the metadata for consumer groups.
    """

    def __init__(self, config: GroupConfig, now: Now, topics: Topics) -> None:
        self._config = config
        self._topics = topics
        self._groups: dict[str, Group] = {}
        self._timers: Timers[TimerKey] = Timers()
        self._classic = ClassicProtocol(config, self._groups, self._timers)
        self._consumer_timers: Timers[ConsumerTimerKey] = Timers()
        self._consumers = ConsumerProtocol(config, self._groups, self._consumer_timers, self._topics)
        self._classic_members = ClassicMembers(self._consumers)
        self._offsets = Offsets(config, self._groups)
        self._cleanup_at_ms = now.steady_ms + config.offsets_retention_check_interval_ms
        self._story: deque[str] = deque(maxlen=STORY_LENGTH)

    def __len__(self) -> int:
        return len(self._groups)

    @property
    def groups(self) -> Mapping[str, Group]:
        return self._groups

    @property
    def offsets(self) -> Offsets:
        return self._offsets

    @property
    def story(self) -> tuple[str, ...]:
        return tuple(self._story)

    # -- membership -----------------------------------------------------------------------------------------------------

    def join(self, request: JoinGroupRequest, caller: Caller, token: Token, now: Now) -> CoordinatorResult:
        group = self._groups.get(request.group_id)
        if isinstance(group, ConsumerGroup) and not group.is_empty:
            refusal = self._classic.refusal_of(request)
            if refusal is None:
                return self._told(self._classic_members.join(group, request, caller, token, now), now)
        return self._told(self._classic.join(request, caller, token, now), now)

    def sync(self, request: SyncGroupRequest, token: Token, now: Now) -> CoordinatorResult:
        group = self._groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return self._classic_members.sync(group, request, token, now)
        return self._told(self._classic.sync(request, token), now)

    def heartbeat(self, request: HeartbeatRequest, now: Now) -> HeartbeatResponse:
        group = self._groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return self._classic_members.heartbeat(group, request, now)
        return self._classic.heartbeat(request, now)

    def leave(self, request: LeaveGroupRequest, now: Now) -> CoordinatorResult:
        group = self._groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            return self._told(self._classic_members.leave(group, request, now), now)
        return self._told(self._classic.leave(request, now), now)

    def consumer_heartbeat(self, request: ConsumerGroupHeartbeatRequest, caller: Caller, now: Now) -> CoordinatorResult:
        return self._told(self._consumers.heartbeat(request, caller, now), now)

    def receive_written(self, event: Written, error: ErrorCode | None, now: Now) -> CoordinatorResult:
        """The records of the outcome with `event` are committed, or were refused."""
        match event:
            case Changed():
                out = self._consumers.receive_changed(event, error, now)
            case Upgraded(group):
                out = self._classic.receive_upgraded(group, error, now)
            case Downgraded(group_id) if error is None:
                out = self._classic.receive_downgraded(group_id, now)
            case Downgraded(_, key):
                self._consumers.receive_refused(key, now)
                out = CoordinatorResult()
            case _:
                out = self._classic.receive_written(event, error, now)
        return self._told(out, now)

    # -- offsets --------------------------------------------------------------------------------------------------------

    def commit_offsets(self, request: OffsetCommitRequest, api_version: int, now: Now) -> CoordinatorResult:
        group = self._groups.get(request.group_id)
        check_commit(group, request, api_version)
        if isinstance(group, ClassicGroup) and request.member_id:
            self._classic.hear_from(group, request.member_id, now)
        return self._offsets.commit(request, now)

    def commit_offsets_in_transaction(self, request: TxnOffsetCommitRequest, now: Now) -> CoordinatorResult:
        """Store offsets that are committed with their transaction."""
        group = self._groups.get(request.group_id)
        check_transactional_commit(group, request, self._topics.topic_id)
        if isinstance(group, ClassicGroup) and request.member_id:
            self._classic.hear_from(group, request.member_id, now)
        return self._offsets.commit_in_transaction(request, now)

    def fetch_offsets(self, request: OffsetFetchRequestGroup, *, require_stable: bool = False) -> OffsetFetchResponseGroup:
        group = self._groups.get(request.group_id)
        if group is not None:
            group.check_offset_fetch(request.member_id, request.member_epoch)
        return self._offsets.fetch(request, require_stable=require_stable)

    def delete_offsets(self, request: OffsetDeleteRequest) -> CoordinatorResult:
        if not request.group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        group = self._known(request.group_id)
        group.check_offset_delete()
        return self._offsets.delete(request, group)

    def delete_topics(self, names: Iterable[str]) -> list[CoordinatorResult]:
        """Delete the offsets of deleted topics."""
        return list(_in_parts(self._offsets.forget_topics(names)))

    # -- groups ---------------------------------------------------------------------------------------------------------

    def delete_group(self, group_id: str) -> CoordinatorResult:
        group = self._known(group_id)
        group.check_delete()
        return CoordinatorResult(records=[*self._offsets.forget_group(group_id), *group.tombstones()])

    def describe(self, group_id: str) -> DescribedGroup:
        return self._known(group_id).describe()

    def describe_consumers(self, group_id: str) -> consumer_group_describe.DescribedGroup:
        return self._consumers.describe(group_id)

    def clients_of(self, group_id: str) -> set[tuple[str, str]]:
        """Client ids and hosts of a group's members."""
        return self._known(group_id).clients()

    def _known(self, group_id: str) -> Group:
        group = self._groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    # -- the log --------------------------------------------------------------------------------------------------------

    def replay(self, record: Record, producer_id: int = NO_PRODUCER) -> None:
        """Replay one record of the log, possibly of a producer's transaction; raises MalformedMessage if it does not parse."""
        value = record[1]
        if (of_consumers := read_consumer_key(record[0])) is not None:
            self._consumers.replay(*of_consumers, value)
            return
        key = read_key(record[0])
        if key is None:
            return
        if isinstance(key, OffsetCommitKey):
            if value is not None and key.group not in self._groups:
                self._groups[key.group] = ClassicGroup(key.group)
            offset = None if value is None else read_offset_value(value)
            self._offsets.replay(key.group, key.topic, key.partition, offset, producer_id)
        else:
            self._classic.replay(key.group, None if value is None else read_group_value(value))

    def is_overwritten_by_next(self, record: Record) -> bool:
        """True for records of offsets and groups, of which only the last one counts. Tombstones and records of transactions
        must keep their position."""
        return record[1] is not None and record[0][:NUMBER_BYTES] in OVERWRITTEN

    def replay_end(self, producer_id: int, *, commit: bool) -> None:
        """The transaction of a producer ended: its offsets are committed, or dropped."""
        self._offsets.replay_end(producer_id, commit=commit)

    def receive_loaded(self, now: Now) -> list[CoordinatorResult]:
        """Everything in the log has been replayed."""
        outcomes = [*self._consumers.receive_loaded(now), *self._classic.receive_loaded(now)]
        return [self._told(outcome, now) for outcome in outcomes]

    def unload(self, now: Now) -> CoordinatorResult:
        """The shard was moved away: waiting requests get NOT_COORDINATOR."""
        return self._told(self._classic.unload(now), now)

    # -- time -----------------------------------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int:
        """A time of the monotonic clock, not later than the next work of `expire`."""
        deadlines = (self._timers.next_deadline_ms(), self._consumer_timers.next_deadline_ms(), self._cleanup_at_ms)
        return min(deadline for deadline in deadlines if deadline is not None)

    def expire(self, now: Now) -> Iterator[CoordinatorResult]:
        """The outcomes of expired deadlines. The caller executes each one before it takes the next, since a consumer group
        changes only when its outcome is executed."""
        for key in self._timers.due(now.steady_ms):
            yield self._told(self._classic.expire(key, now), now)
        for consumer_key in self._consumer_timers.due(now.steady_ms):
            yield self._told(self._consumers.expire(consumer_key, now), now)
        if now.steady_ms >= self._cleanup_at_ms:
            self._cleanup_at_ms = now.steady_ms + self._config.offsets_retention_check_interval_ms
            yield from _in_parts(self._clean_up(now))

    def _clean_up(self, now: Now) -> list[Record]:
        """The tombstones of expired offsets and groups; those of a group come after those of its offsets."""
        forgotten = []
        for group in self._groups.values():
            records, nothing_left = self._offsets.forget_expired(group, now.wall_ms)
            forgotten += records
            if nothing_left and group.is_abandoned:
                forgotten += group.tombstones()
        return forgotten

    # -- checks and reports ---------------------------------------------------------------------------------------------

    def validate(self) -> None:
        """Raise InvariantViolated, with the last events, if the state contradicts itself."""
        try:
            for group in self._groups.values():
                if isinstance(group, ClassicGroup | ConsumerGroup):
                    group.validate()
            homeless = [g for g in self._offsets.group_ids() if g not in self._groups]
            if homeless:
                raise InvariantViolated(f"offsets of groups that are not there: {homeless}")
        except InvariantViolated as error:
            raise InvariantViolated(error.rule, self.story) from error

    def _told(self, out: CoordinatorResult, now: Now) -> CoordinatorResult:
        for note in out.notes:
            self._story.append(f"{now.steady_ms}: {note}")
        return out


def _in_parts(tombstones: Iterable[Record]) -> Iterator[CoordinatorResult]:
    """Batches of `PART_BYTES`; they are independent, so a refused one does not prevent the others."""
    part: list[Record] = []
    size = 0
    for record in tombstones:
        if part and size + len(record[0]) > PART_BYTES:
            yield CoordinatorResult(records=part)
            part, size = [], 0
        part.append(record)
        size += len(record[0])
    if part:
        yield CoordinatorResult(records=part)
