"""Operations on topics and partitions as plans: metadata, offsets, fetch and produce of raw batches.

Rules
  1. Requests go to the leader in the metadata. If an error means that the leader has moved, the topic's metadata is dropped,
     and the retry reads it again.
  2. A topic or partition that is not in the metadata does not exist if all brokers agree (`agreement`): then an operation fails
     at once (`UnknownTopic`). Retries are only for transient errors.
  3. No operation works on single records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from barnabas.client.agreement import agreed_topics
from barnabas.client.cluster import Cluster, Partition, Topic, TopicReplaced, UnknownTopic
from barnabas.client.config import ClientConfig
from barnabas.client.errors import ClientError, PartitionError
from barnabas.client.plans import Call, Now, Plan, call, retrying
from barnabas.client.results import Fetched, ListedOffset, Produced, TopicPartition
from barnabas.error_codes import ErrorCode
from barnabas.protocol.base_message import ZERO_UUID, Buffer
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.protocol.messages.fetch import PartitionData as FetchedPartition
from barnabas.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

LAST_VERSION_WITH_NAMES = 12  # of Fetch and Produce; later versions name topics only by id (KIP-516)
FETCH_RESPONSE_BYTES = 64 << 20
WAIT_OF_SEVERAL_MS = 100  # a wait for several leaders ends with the last of them
Place = tuple[str, int | None]  # a partition, or a topic with any of its partitions


def refresh(config: ClientConfig, cluster: Cluster, topics: Sequence[str] | None) -> Plan[dict[str, ErrorCode]]:
    """Read the metadata of `topics` (None: all topics); returns the refused ones. Never creates a topic."""

    def attempt() -> Plan[dict[str, ErrorCode]]:
        everything = MetadataRequest(topics=None, allow_auto_topic_creation=False)
        response = yield from call(everything if topics is None else _metadata_of(topics))
        now_ms = yield Now()
        if topics is None:
            cluster.topics.clear()
        return cluster.receive_metadata(response, now_ms)

    return (yield from retrying(config, "metadata", attempt))


def known(config: ClientConfig, cluster: Cluster, places: Iterable[Place]) -> Plan[None]:
    """Ensure recent metadata of `places`.

    Raises:
        UnknownTopic: according to every broker, a place does not exist.
        PartitionError: a topic is refused for another reason.
    """
    now_ms = yield Now()
    wanted = sorted(set(places), key=lambda place: (place[0], -1 if place[1] is None else place[1]))
    age_ms = config.metadata_max_age_ms
    missing = sorted({t for t, p in wanted if not (cluster.is_fresh(t, now_ms, age_ms) and cluster.has(t, p))})
    if not missing:
        return
    refused = yield from refresh(config, cluster, missing)
    for topic, code in refused.items():
        if code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise PartitionError(code, topic, None)
    absent = {topic for topic, partition in wanted if not cluster.has(topic, partition)}
    if absent:
        yield from agreed_topics(config, cluster, absent)
    for topic, partition in wanted:
        if not cluster.has(topic, partition):
            raise UnknownTopic(topic, partition if topic in cluster.topics else None)


def still_the_same(config: ClientConfig, cluster: Cluster, topic: str, topic_id: UUID | None) -> Plan[None]:
    """Ensure that `topic` has this id, if an id is given.

    Raises:
        TopicReplaced: according to every broker, it has another id.
        UnknownTopic: according to every broker, it does not exist.
    """
    found = cluster.topics.get(topic)
    if topic_id in (None, ZERO_UUID) or found is None or found.topic_id == topic_id:
        return
    now = (yield from agreed_topics(config, cluster, [topic])).get(topic)
    if now is None:
        raise UnknownTopic(topic)
    if now.topic_id != topic_id:
        raise TopicReplaced(topic)


def topics_to_write(
    config: ClientConfig, cluster: Cluster, topics: Iterable[str], *, max_age_ms: float | None = None, creates: bool = True
) -> Plan[None]:
    """Ensure metadata of `topics`. If auto-creation is enabled, the broker creates a missing topic, and this plan waits until
    it exists.

    Args:
        max_age_ms: older metadata is read again; 0 for all metadata.
        creates: whether the broker may create a topic. Without it one that was deleted a moment ago does not come back.

    Raises:
        UnknownTopic: `creates` is False, and all brokers agree that a topic does not exist.
    """
    now_ms = yield Now()
    age_ms = config.metadata_max_age_ms if max_age_ms is None else max_age_ms
    missing = sorted({t for t in topics if not cluster.is_fresh(t, now_ms, age_ms)})
    if not missing:
        return
    if not creates:
        found = yield from topics_by_name(config, cluster, missing)
        for topic in missing:
            if topic not in found:
                raise UnknownTopic(topic)
        return
    names = [MetadataRequestTopic(name=name) for name in missing]

    def attempt() -> Plan[None]:
        response = yield from call(MetadataRequest(topics=names, allow_auto_topic_creation=True))
        now_ms = yield Now()
        for topic, code in cluster.receive_metadata(response, now_ms).items():
            raise PartitionError(code, topic, None)

    yield from retrying(config, f"metadata of {', '.join(missing)}", attempt)


def all_topics(config: ClientConfig, cluster: Cluster) -> Plan[dict[str, Topic]]:
    """Every topic of the cluster, internal ones too."""
    yield from refresh(config, cluster, None)
    return dict(cluster.topics)


def topics_by_name(config: ClientConfig, cluster: Cluster, names: Sequence[str]) -> Plan[dict[str, Topic]]:
    """The topics of these names that exist, read again; all brokers agree that the missing ones do not exist.

    Raises:
        PartitionError: a topic is refused for another reason.
    """
    refused = yield from refresh(config, cluster, names)
    for name, code in refused.items():
        if code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise PartitionError(code, name, None)
    if refused:
        yield from agreed_topics(config, cluster, refused)
    return {name: cluster.topics[name] for name in names if name in cluster.topics}


def list_offsets(
    config: ClientConfig, cluster: Cluster, timestamps: Mapping[TopicPartition, int]
) -> Plan[dict[TopicPartition, ListedOffset]]:
    """The offset for each partition's timestamp (milliseconds, or LATEST, EARLIEST, MAX_TIMESTAMP), one request per leader.

    The request has no topic ids. A leader may still have a deleted topic, so the plan first asks each leader for its ids of the
    topics.
    """
    found: dict[TopicPartition, ListedOffset] = {}

    def attempt() -> Plan[None]:
        open_ones = [tp for tp in timestamps if tp not in found]
        yield from known(config, cluster, open_ones)
        calls = _list_offsets_calls(config, cluster, {tp: timestamps[tp] for tp in open_ones})
        came = yield [each for pair in calls for each in pair]
        errors: list[Exception] = []
        for views, answer in zip(came[::2], came[1::2], strict=True):
            if isinstance(views, ClientError) or isinstance(answer, ClientError):
                errors.append(views if isinstance(views, ClientError) else answer)
                for topic, _ in open_ones:
                    cluster.forget(topic)
                continue
            known_as = {topic.name: topic.topic_id for topic in views.topics}
            for topic in answer.topics:
                for item in topic.partitions:
                    tp = topic.name, item.partition_index
                    code = item.error_code or _code_of_view(cluster, topic.name, known_as.get(topic.name))
                    if code:
                        cluster.forget(topic.name)
                        errors.append(PartitionError(ErrorCode(code), *tp))
                    else:
                        found[tp] = ListedOffset(item.offset, item.timestamp, item.leader_epoch)
        if errors:
            raise errors[-1]

    yield from retrying(config, "offsets", attempt)
    return found


def _code_of_view(cluster: Cluster, topic: str, known_as: UUID | None) -> int:
    """The error if a broker has the id `known_as` for `topic` (None: no id)."""
    ours = cluster.topics.get(topic)
    same = ours is not None and (ours.topic_id == ZERO_UUID or known_as == ours.topic_id)
    return ErrorCode.NONE if same else ErrorCode.INCONSISTENT_TOPIC_ID


def _list_offsets_calls(
    config: ClientConfig, cluster: Cluster, timestamps: Mapping[TopicPartition, int]
) -> list[tuple[Call, Call]]:
    """For each leader a request for the ids of its topics, and one for the offsets."""
    by_leader: dict[int, dict[str, list[ListOffsetsPartition]]] = {}
    for (topic, partition), timestamp in timestamps.items():
        _, leader = leading(cluster, topic, partition)
        item = ListOffsetsPartition(partition_index=partition, current_leader_epoch=leader.leader_epoch, timestamp=timestamp)
        by_leader.setdefault(leader.leader, {}).setdefault(topic, []).append(item)
    return [
        (
            Call(_metadata_of(topics), node_id),
            Call(
                ListOffsetsRequest(
                    replica_id=-1,
                    isolation_level=int(config.read_committed),
                    topics=[ListOffsetsTopic(name=name, partitions=items) for name, items in topics.items()],
                    timeout_ms=config.request_timeout_ms,
                ),
                node_id,
            ),
        )
        for node_id, topics in by_leader.items()
    ]


def _metadata_of(topics: Iterable[str]) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in topics], allow_auto_topic_creation=False)


def leading(cluster: Cluster, topic: str, partition: int) -> tuple[Topic, Partition]:
    """The leader of a partition; if there is none, drops the topic's metadata, so that the next try reads it again."""
    try:
        return cluster.leader_of(topic, partition)
    except PartitionError:
        cluster.forget(topic)
        raise


def fetch_call(
    config: ClientConfig, cluster: Cluster, topic: str, partition: int, offset: int, max_bytes: int | None = None
) -> Call:
    """A Fetch of one partition to its leader, outside of any session (KIP-227: a session gains nothing for one partition).

    Args:
        max_bytes: request fewer bytes than `config.fetch_bytes`; a response still has at least one whole batch, if there is
            one.
    """
    found, leader = leading(cluster, topic, partition)
    item = FetchPartition(
        partition=partition,
        current_leader_epoch=leader.leader_epoch,
        fetch_offset=offset,
        partition_max_bytes=config.fetch_bytes if max_bytes is None else min(max_bytes, config.fetch_bytes),
    )
    request = FetchRequest(
        max_wait_ms=config.fetch_max_wait_ms,
        min_bytes=config.fetch_min_bytes,
        max_bytes=max(config.fetch_bytes, FETCH_RESPONSE_BYTES),
        isolation_level=int(config.read_committed),
        topics=[FetchTopic(topic=topic, topic_id=found.topic_id, partitions=[item])],
    )
    return Call(request, leader.leader, LAST_VERSION_WITH_NAMES if found.topic_id == ZERO_UUID else None)


def wait_for_records(config: ClientConfig, cluster: Cluster, positions: Mapping[TopicPartition, int], wait_ms: int) -> Plan[None]:
    """Wait until a partition has a record at its position, at most `wait_ms`: one Fetch per leader, whose records are dropped.

    There is no retry. The plan ends with the last answer, and an error of a partition ends it early.
    """
    by_leader: dict[int, dict[str, list[FetchPartition]]] = {}
    yield from known(config, cluster, list(positions))
    for (topic, partition), offset in positions.items():
        _, leader = leading(cluster, topic, partition)
        item = FetchPartition(
            partition=partition, current_leader_epoch=leader.leader_epoch, fetch_offset=offset, partition_max_bytes=1
        )
        by_leader.setdefault(leader.leader, {}).setdefault(topic, []).append(item)
    has_ids = all(cluster.topics[topic].topic_id != ZERO_UUID for topic, _ in positions)
    yield [
        Call(
            FetchRequest(
                max_wait_ms=wait_ms if len(by_leader) == 1 else min(wait_ms, WAIT_OF_SEVERAL_MS),
                min_bytes=1,
                max_bytes=1,
                isolation_level=int(config.read_committed),
                topics=[
                    FetchTopic(topic=topic, topic_id=cluster.topics[topic].topic_id, partitions=items)
                    for topic, items in topics.items()
                ],
            ),
            node_id,
            None if has_ids else LAST_VERSION_WITH_NAMES,
        )
        for node_id, topics in by_leader.items()
    ]


def fetch_calls(config: ClientConfig, cluster: Cluster, topic: str, positions: Mapping[int, int]) -> list[tuple[Call, list[int]]]:
    """A Fetch for each leader of the partitions of a topic, with its partitions. `receive_fetch` reads the answers."""
    by_leader: dict[int, list[FetchPartition]] = {}
    for partition, offset in positions.items():
        found, leader = leading(cluster, topic, partition)
        by_leader.setdefault(leader.leader, []).append(
            FetchPartition(
                partition=partition,
                current_leader_epoch=leader.leader_epoch,
                fetch_offset=offset,
                partition_max_bytes=config.fetch_bytes,
            )
        )
    made = []
    for node_id, items in by_leader.items():
        request = FetchRequest(
            max_wait_ms=config.fetch_max_wait_ms,
            min_bytes=config.fetch_min_bytes,
            max_bytes=max(config.fetch_bytes, FETCH_RESPONSE_BYTES),
            isolation_level=int(config.read_committed),
            topics=[FetchTopic(topic=topic, topic_id=found.topic_id, partitions=items)],
        )
        call = Call(request, node_id, LAST_VERSION_WITH_NAMES if found.topic_id == ZERO_UUID else None)
        made.append((call, [each.partition for each in items]))
    return made


def receive_fetch(cluster: Cluster, topic: str, partition: int, response: FetchResponse) -> Fetched:
    """The result of `fetch_call`; raises PartitionError. It drops the topic's metadata before if a retry must read it again."""
    code, data = response.error_code, None
    for answer in response.responses:
        for item in answer.partitions:
            if item.partition_index == partition:
                code, data = code or item.error_code, item
    if code or data is None:
        error = PartitionError(ErrorCode(code or ErrorCode.UNKNOWN_SERVER_ERROR), topic, partition)
        if error.code.retriable:
            cluster.forget(topic)
        raise error
    return _fetched(data)


def _fetched(data: FetchedPartition) -> Fetched:
    """The response for one partition as a `Fetched`."""
    return Fetched(
        data.records if data.records is not None else b"",
        data.high_watermark,
        data.last_stable_offset,
        data.log_start_offset,
        tuple((t.producer_id, t.first_offset) for t in data.aborted_transactions or ()),
    )


def fetch(
    config: ClientConfig, cluster: Cluster, topic: str, partition: int, offset: int, max_bytes: int | None = None
) -> Plan[Fetched]:
    """Raw batches from `offset` on; empty if none came within `fetch_max_wait_ms`."""

    def attempt() -> Plan[Fetched]:
        yield from known(config, cluster, [(topic, partition)])
        (answer,) = yield [fetch_call(config, cluster, topic, partition, offset, max_bytes)]
        if isinstance(answer, ClientError):
            cluster.forget(topic)
            raise answer
        return receive_fetch(cluster, topic, partition, answer)

    return (yield from retrying(config, f"records of {topic}-{partition}", attempt))


def produce_call(
    config: ClientConfig,
    cluster: Cluster,
    node_id: int,
    batches: Mapping[TopicPartition, Buffer],
    acks: int,
    transactional_id: str | None = None,
    at_most: int | None = None,
) -> Call:
    """A Produce of finished batches, one for each partition, to the leader of the partitions; the topics' metadata is known."""
    topics: dict[str, list[PartitionProduceData]] = {}
    for (topic, partition), batch in batches.items():
        topics.setdefault(topic, []).append(PartitionProduceData(index=partition, records=batch))
    ids = {topic: cluster.topics[topic].topic_id for topic in topics}
    if ZERO_UUID in ids.values():
        at_most = LAST_VERSION_WITH_NAMES if at_most is None else min(at_most, LAST_VERSION_WITH_NAMES)
    data = [TopicProduceData(name=name, topic_id=ids[name], partition_data=items) for name, items in topics.items()]
    request = ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=config.request_timeout_ms, topic_data=data)
    return Call(request, node_id, at_most)


def produce(
    config: ClientConfig,
    cluster: Cluster,
    topic: str,
    partition: int,
    batch: Buffer,
    *,
    acks: int = -1,
    transactional_id: str | None = None,
    at_most: int | None = None,
    topic_id: UUID | None = None,
) -> Plan[Produced]:
    """Append a finished batch. A retry after a lost response may append it twice, unless the batch has a producer id.

    Args:
        at_most: the last version of Produce to use.
        topic_id: the id that the topic must have, if another topic of this name is not acceptable.
    """
    if acks not in (-1, 1):
        raise ValueError("acks must be -1 or 1: with 0 there is no response to wait for")

    def attempt() -> Plan[Produced]:
        yield from known(config, cluster, [(topic, partition)])
        yield from still_the_same(config, cluster, topic, topic_id)
        _, leader = leading(cluster, topic, partition)
        asked = produce_call(config, cluster, leader.leader, {(topic, partition): batch}, acks, transactional_id, at_most)
        try:
            response = yield from call(asked.request, asked.node_id, asked.at_most)
        except ClientError:
            cluster.forget(topic)
            raise
        (item,) = response.responses[0].partition_responses
        if item.error_code:
            cluster.forget(topic)
            raise PartitionError(ErrorCode(item.error_code), topic, partition, item.error_message)
        return Produced(item.base_offset, item.log_append_time_ms, item.log_start_offset)

    return (yield from retrying(config, f"acknowledgement of {topic}-{partition}", attempt))
