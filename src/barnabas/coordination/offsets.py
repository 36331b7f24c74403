"""The committed offsets of the groups of one shard, for all types of groups.

Rules
  1. Only the `replay` of its record makes a commit visible. All offsets of one request are one batch.
  2. The group decides who may commit; the first commit without a generation creates a missing group.
  3. An offset is kept while a member reads its topic, and for `offsets.retention.minutes` after that (KIP-211). An offset with
     its own retention expires when this has passed.
  4. Offsets of a transaction are pending until its marker is replayed (`pending_offsets.py`).
  5. Offsets have the id of their topic, if it was known. A fetch with another id finds none, because that is another topic with
     the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from uuid import UUID

from barnabas.coordination.group import CommittedPartition, Committer, Group
from barnabas.coordination.group_records import NO_TIMESTAMP, OffsetCommitValue, is_too_long, offset_record
from barnabas.coordination.pending_offsets import PendingOffsets
from barnabas.coordination.result import NO_PRODUCER, CoordinatorResult, GroupConfig, Now, Producer
from barnabas.coordination.version_prefix import Record
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.base_message import ZERO_UUID
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

NO_OFFSET = -1
DEFAULT_RETENTION = -1  # in a request: use the broker's retention time
MINUTE_MS = 60_000

TopicOffsets = dict[int, OffsetCommitValue]


class Offsets:
    """Committed offsets by group, topic and partition."""

    def __init__(self, config: GroupConfig, groups: Mapping[str, Group]) -> None:
        self._config = config
        self._groups = groups
        self._by_group: dict[str, dict[str, TopicOffsets]] = {}
        self._pending = PendingOffsets()

    def of_group(self, group_id: str) -> Mapping[str, TopicOffsets]:
        """The committed offsets of a group; read-only."""
        return self._by_group.get(group_id, {})

    def group_ids(self) -> Iterable[str]:
        return self._by_group.keys()

    def all(self) -> Iterator[tuple[str, str, int, int]]:
        """Group, topic, partition and offset of every commit; commits may change during the iteration."""
        for group_id, topics in list(self._by_group.items()):
            for topic, offsets in list(topics.items()):
                for partition, value in list(offsets.items()):
                    yield group_id, topic, partition, value.offset

    # -- commit ---------------------------------------------------------------------------------------------------------

    def commit_in_transaction(self, request: TxnOffsetCommitRequest, now: Now) -> CoordinatorResult:
        """The records of a commit that takes effect with the transaction of its producer."""
        out = CoordinatorResult(producer=Producer(request.producer_id, request.producer_epoch))
        longest = self._config.offset_metadata_max_bytes
        topics = []
        for topic in request.topics:
            partitions = []
            for partition in topic.partitions:
                error = _refusal(partition.committed_metadata, longest)
                if error == ErrorCode.NONE:
                    value = OffsetCommitValue(
                        offset=partition.committed_offset,
                        leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.committed_metadata or "",
                        commit_timestamp_ms=now.wall_ms,
                        expire_timestamp_ms=NO_TIMESTAMP,
                    )
                    out.records.append(offset_record(request.group_id, topic.name, partition.partition_index, value))
                partitions.append(TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error))
            topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=partitions))
        out.response = TxnOffsetCommitResponse(topics=topics)
        return out

    def commit(self, request: OffsetCommitRequest, now: Now) -> CoordinatorResult:
        """The records of a commit that the group has allowed. Topics have names, and ids if known."""
        response = OffsetCommitResponse(topics=[])
        out = CoordinatorResult(response)
        retention_ms = request.retention_time_ms
        expire_ms = NO_TIMESTAMP if retention_ms == DEFAULT_RETENTION else now.wall_ms + retention_ms
        longest = self._config.offset_metadata_max_bytes
        topics = []
        for topic in request.topics:
            partitions = []
            for partition in topic.partitions:
                error = _refusal(partition.committed_metadata, longest)
                if error == ErrorCode.NONE:
                    value = _value(partition, topic.topic_id, now.wall_ms, expire_ms)
                    out.records.append(offset_record(request.group_id, topic.name, partition.partition_index, value))
                partitions.append(OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error))
            topics.append(OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions))
        response.topics = topics
        return out

    def replay(
        self, group_id: str, topic: str, partition: int, value: OffsetCommitValue | None, producer_id: int = NO_PRODUCER
    ) -> None:
        """Replay the record of one partition, possibly of a producer's transaction."""
        place = group_id, topic, partition
        if producer_id != NO_PRODUCER:
            self._pending.add(producer_id, place, value)
            return
        if value is None:
            self._pending.forget([place])
        else:
            self._pending.overtake(place)
        self._settle(group_id, topic, partition, value)

    def replay_end(self, producer_id: int, *, commit: bool) -> None:
        """The transaction of a producer ended."""
        for place, value in self._pending.end(producer_id, commit=commit):
            self._settle(*place, value)

    def _settle(self, group_id: str, topic: str, partition: int, value: OffsetCommitValue | None) -> None:
        if value is not None:
            topics = self._by_group.get(group_id)
            if topics is None:
                topics = self._by_group[group_id] = {}
            offsets = topics.get(topic)
            if offsets is None:
                offsets = topics[topic] = {}
            offsets[partition] = value
            return
        topics = self._by_group.get(group_id, {})
        offsets = topics.get(topic, {})
        offsets.pop(partition, None)
        if not offsets:
            topics.pop(topic, None)
        if not topics:
            self._by_group.pop(group_id, None)

    # -- fetch ----------------------------------------------------------------------------------------------------------

    def fetch(self, request: OffsetFetchRequestGroup, *, require_stable: bool = False) -> OffsetFetchResponseGroup:
        """The requested committed offsets, or all if no topics are named; -1 for a missing one.

        Args:
            require_stable: if a transaction may still change the offset, answer UNSTABLE_OFFSET_COMMIT (KIP-447).
        """
        known = self._by_group.get(request.group_id, {}) if request.group_id in self._groups else {}
        if request.topics is None:
            topics = [_fetched(name, ZERO_UUID, sorted(offsets), offsets) for name, offsets in known.items()]
        else:
            topics = [_fetched_of(topic, known.get(topic.name, {})) for topic in request.topics]
        if require_stable and len(self._pending):
            for topic in topics:
                topic.partitions = [self._stable(request.group_id, topic.name, each) for each in topic.partitions]
        return OffsetFetchResponseGroup(group_id=request.group_id, topics=topics)

    def _stable(self, group_id: str, topic: str, found: OffsetFetchResponsePartitions) -> OffsetFetchResponsePartitions:
        if not self._pending.is_pending((group_id, topic, found.partition_index)):
            return found
        return OffsetFetchResponsePartitions(
            partition_index=found.partition_index, committed_offset=NO_OFFSET, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT
        )

    # -- delete ---------------------------------------------------------------------------------------------------------

    def delete(self, request: OffsetDeleteRequest, group: Group) -> CoordinatorResult:
        """Delete single offsets, except those of topics that members read."""
        out = CoordinatorResult()
        topics = [self._delete_topic(request.group_id, topic, group, out.records) for topic in request.topics]
        out.response = OffsetDeleteResponse(topics=topics)
        return out

    def _delete_topic(
        self, group_id: str, topic: OffsetDeleteRequestTopic, group: Group, records: list[Record]
    ) -> OffsetDeleteResponseTopic:
        subscribed = group.is_subscribed_to(topic.name)
        error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
        committed = self.of_group(group_id).get(topic.name, {})
        asked = dict.fromkeys(p.partition_index for p in topic.partitions)
        if not subscribed:
            known = (p for p in asked if p in committed or self._pending.is_pending((group_id, topic.name, p)))
            records.extend(offset_record(group_id, topic.name, p, None) for p in known)
        partitions = [OffsetDeleteResponsePartition(partition_index=p, error_code=error) for p in asked]
        return OffsetDeleteResponseTopic(name=topic.name, partitions=partitions)

    def forget_group(self, group_id: str) -> list[Record]:
        """The tombstones of all offsets of a group."""
        committed = [(topic, p) for topic, offsets in self.of_group(group_id).items() for p in offsets]
        pending = [(topic, p) for group, topic, p in self._pending.places() if group == group_id]
        return [offset_record(group_id, topic, p, None) for topic, p in dict.fromkeys([*committed, *pending])]

    def forget_topics(self, names: Iterable[str]) -> list[Record]:
        """The tombstones of the offsets of deleted topics."""
        gone = set(names)
        committed = [
            (group_id, topic, p)
            for group_id, topics in self._by_group.items()
            for topic, offsets in topics.items()
            if topic in gone
            for p in offsets
        ]
        pending = [place for place in self._pending.places() if place[1] in gone]
        return [offset_record(*place, None) for place in dict.fromkeys([*committed, *pending])]

    def forget_expired(self, group: Group, now_wall_ms: int) -> tuple[list[Record], bool]:
        """The tombstones of expired offsets, and whether no offset is left."""
        retention_ms = self._config.offsets_retention_minutes * MINUTE_MS
        records: list[Record] = []
        left = False
        for topic, offsets in self.of_group(group.group_id).items():
            if group.is_subscribed_to(topic):
                left = True
                continue
            for partition, offset in offsets.items():
                is_pending = self._pending.is_pending((group.group_id, topic, partition))
                if not is_pending and _is_expired(offset, group.offset_retained_since_ms(offset), retention_ms, now_wall_ms):
                    records.append(offset_record(group.group_id, topic, partition, None))
                else:
                    left = True
        return records, not left and not any(place[0] == group.group_id for place in self._pending.places())


def check_commit(group: Group | None, request: OffsetCommitRequest, api_version: int) -> None:
    """Refuse a commit that has a generation if its group does not exist. The group itself checks all other commits."""
    if is_too_long(request.group_id):
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    if group is not None:
        partitions = (CommittedPartition(t.topic_id, p.partition_index) for t in request.topics for p in t.partitions)
        epoch = request.generation_id_or_member_epoch
        group.check_offset_commit(Committer(request.member_id, request.group_instance_id, epoch, api_version, partitions))
    elif request.generation_id_or_member_epoch >= 0:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND if api_version >= 9 else ErrorCode.ILLEGAL_GENERATION)


def check_transactional_commit(
    group: Group | None, request: TxnOffsetCommitRequest, topic_id: Callable[[str], UUID | None]
) -> None:
    """Like `check_commit`. The transaction fences a producer without member and generation. An old member epoch gives
    ILLEGAL_GENERATION, the only error for it that producers can handle."""
    if is_too_long(request.group_id):
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    partitions = (
        CommittedPartition(topic_id(t.name) or ZERO_UUID, p.partition_index) for t in request.topics for p in t.partitions
    )
    committer = Committer(request.member_id, request.group_instance_id, request.generation_id, None, partitions)
    if committer.is_nobody:
        return
    if group is not None:
        try:
            group.check_offset_commit(committer)
        except KafkaError as error:
            if error.code is ErrorCode.STALE_MEMBER_EPOCH:
                raise KafkaError(ErrorCode.ILLEGAL_GENERATION) from error
            raise
    elif request.generation_id >= 0:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)


def _value(partition: OffsetCommitRequestPartition, topic_id: UUID, now_wall_ms: int, expire_ms: int) -> OffsetCommitValue:
    return OffsetCommitValue(
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
        commit_timestamp_ms=now_wall_ms if partition.commit_timestamp == NO_TIMESTAMP else partition.commit_timestamp,
        expire_timestamp_ms=expire_ms,
        topic_id=topic_id,
    )


def _refusal(metadata: str | None, longest: int) -> ErrorCode:
    too_long = metadata is not None and _is_longer(metadata, longest)
    return ErrorCode.OFFSET_METADATA_TOO_LARGE if too_long else ErrorCode.NONE


def _is_longer(text: str, limit: int) -> bool:
    """Whether `text` is longer than `limit` units of UTF-16, as Kafka counts: characters outside the basic plane count twice."""
    if len(text) > limit:
        return True
    return 2 * len(text) > limit and not text.isascii() and len(text.encode("utf-16-le")) > 2 * limit


def _is_expired(offset: OffsetCommitValue, since_ms: int | None, retention_ms: int, now_wall_ms: int) -> bool:
    if since_ms is None:
        return False
    if offset.expire_timestamp_ms != NO_TIMESTAMP:
        return now_wall_ms >= offset.expire_timestamp_ms
    return now_wall_ms - since_ms >= retention_ms


def _fetched_of(topic: OffsetFetchRequestTopics, offsets: TopicOffsets) -> OffsetFetchResponseTopics:
    return _fetched(topic.name, topic.topic_id, topic.partition_indexes, offsets)


def _fetched(name: str, topic_id: UUID, partitions: Iterable[int], offsets: TopicOffsets) -> OffsetFetchResponseTopics:
    found = [_fetched_partition(p, offsets.get(p), topic_id) for p in partitions]
    return OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=found)


def _fetched_partition(partition: int, offset: OffsetCommitValue | None, topic_id: UUID) -> OffsetFetchResponsePartitions:
    if offset is None or (topic_id.int and offset.topic_id.int and topic_id != offset.topic_id):
        return OffsetFetchResponsePartitions(partition_index=partition, committed_offset=NO_OFFSET)
    return OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
    )
