"""The requests with each right: every API that a client may send, about resources that exist and resources that do not.

The requests change nothing, if their API allows that. Requests with lasting effects come last.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import UUID

from barnabas.protocol.base_message import Message
from barnabas.protocol.messages import APIS
from tests.differential.batch import Batch
from tests.differential.rights.place import Place
from tests.differential.wire import KEYS

TRANSACTIONAL = 0x10
NOBODY_ID = UUID(int=4711)
PRODUCER = {"producer_id": 4711, "producer_epoch": 0}
NAMES = ("mine", "other", "missing", "absent")
GROUPS = ("mine", "other")
TRANSACTIONS = ("ours", "foreign")
TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32  # resource types that have settings


class Question(NamedTuple):
    step: str
    request: Message
    version: int


def make(api: str, **fields: Any) -> Message:
    """A request from plain values: a dict for a part of it."""
    module = APIS[KEYS[api]][0]
    page = __import__(f"barnabas.protocol.messages.{module}", fromlist=["*"])
    return _build(getattr(page, api + "Request"), fields)


def _build(kind: type[Message], fields: dict[str, Any]) -> Message:
    parts = {spec.name: spec.item for spec in kind.FIELDS}
    return kind(**{name: _value(parts[name], value) for name, value in fields.items()})


def _value(part: Any, value: Any) -> Any:
    if part is not None and isinstance(value, dict):
        return _build(part, value)
    if part is not None and isinstance(value, list):
        return [_value(part, each) for each in value]
    return value


def questions(place: Place) -> Iterator[Question]:
    """In the order in which they are asked."""
    for family in (_records, _describing, _offsets, _groups, _transactions, _administration, _cluster, _lasting):
        for step, version, request in family(place):
            api = type(request).__name__.removesuffix("Request")
            yield Question(f"{api} v{version} {step}", request, version)


Asked = Iterator[tuple[str, int, Message]]


def _records(place: Place) -> Asked:
    batch = Batch().to_bytes()
    in_transaction = Batch(attributes=TRANSACTIONAL, base_sequence=0, producer_id=4711, producer_epoch=0).to_bytes()

    def produce(records: bytes, **more: Any) -> Message:
        topics = [{"name": place.name(each), "partition_data": [{"index": 0, "records": records}]} for each in NAMES]
        return make("Produce", acks=-1, timeout_ms=30_000, topic_data=topics, **more)

    yield "", 9, produce(batch)
    by_id = [{"topic_id": each, "partition_data": [{"index": 0, "records": batch}]} for each in (*place.ids.values(), NOBODY_ID)]
    yield "by id", 13, make("Produce", acks=-1, timeout_ms=30_000, topic_data=by_id)
    for name in TRANSACTIONS:
        yield f"in a transaction, {name}", 9, produce(in_transaction, transactional_id=place.name(name))
    yield "in a transaction without id", 9, produce(in_transaction)
    reading = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 20}
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    named = [{"topic": place.name(each), "partitions": [partition]} for each in NAMES]
    yield "", 12, make("Fetch", **reading, topics=named)
    identified = [{"topic_id": each, "partitions": [partition]} for each in (*place.ids.values(), NOBODY_ID)]
    yield "by id", 13, make("Fetch", **reading, topics=identified)
    yield "as a broker", 12, make("Fetch", **reading, replica_id=77, topics=named)
    times = [{"name": place.name(each), "partitions": [{"partition_index": 0, "timestamp": -2}]} for each in NAMES]
    yield "", 7, make("ListOffsets", replica_id=-1, topics=times)
    epochs = [{"topic": place.name(each), "partitions": [{"partition": 0, "leader_epoch": 0}]} for each in NAMES]
    yield "", 4, make("OffsetForLeaderEpoch", replica_id=-1, topics=epochs)
    producers = [{"name": place.name(each), "partition_indexes": [0]} for each in NAMES]
    yield "", 0, make("DescribeProducers", topics=producers)


def _describing(place: Place) -> Asked:
    named = [{"name": place.name(each)} for each in NAMES]
    asks = {"include_topic_authorized_operations": True, "allow_auto_topic_creation": False}
    for version in (4, 9):
        more = asks if version >= 8 else {"allow_auto_topic_creation": False}
        yield "of topics", version, make("Metadata", topics=named, **more)
    yield "of the cluster", 9, make("Metadata", topics=[], include_cluster_authorized_operations=True)
    yield "of all topics", 9, make("Metadata", topics=None, **asks)
    identified = [{"topic_id": each, "name": None} for each in (*place.ids.values(), NOBODY_ID)]
    yield "by id", 12, make("Metadata", topics=identified, **asks)
    yield "", 1, make("DescribeCluster", include_cluster_authorized_operations=True, endpoint_type=1)
    yield "", 2, make("DescribeQuorum", topics=[{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 1}]}])
    yield "of topics", 0, make("DescribeTopicPartitions", topics=named, response_partition_limit=100, cursor=None)
    yield "of all", 0, make("DescribeTopicPartitions", topics=[], response_partition_limit=1000, cursor=None)
    for word in ("mine", "missing", "other"):
        paged = {"response_partition_limit": 1000, "cursor": {"topic_name": place.name(word), "partition_index": 1}}
        yield f"of topics from {word} on", 0, make("DescribeTopicPartitions", topics=named, **paged)
        yield f"of all from {word} on", 0, make("DescribeTopicPartitions", topics=[], **paged)
    yield "", 3, make("DescribeLogDirs", topics=[])


def _offsets(place: Place) -> Asked:
    offset = {"partition_index": 0, "committed_offset": 1}
    named = [{"name": place.name(each), "partitions": [offset]} for each in NAMES]
    identified = [{"topic_id": each, "partitions": [offset]} for each in (*place.ids.values(), NOBODY_ID)]
    simple = {"generation_id_or_member_epoch": -1, "member_id": ""}
    for group in GROUPS:
        yield f"of {group}", 8, make("OffsetCommit", group_id=place.name(group), topics=named, **simple)
        yield f"of {group} by id", 10, make("OffsetCommit", group_id=place.name(group), topics=identified, **simple)
        asked = [{"name": place.name(each), "partition_indexes": [0]} for each in NAMES]
        yield f"of {group}", 1, make("OffsetFetch", group_id=place.name(group), topics=asked)
        yield f"of {group}", 7, make("OffsetFetch", group_id=place.name(group), topics=asked)
        yield f"of all of {group}", 7, make("OffsetFetch", group_id=place.name(group), topics=None)
    asked = [{"name": place.name(each), "partition_indexes": [0]} for each in NAMES]
    yield "", 8, make("OffsetFetch", groups=[{"group_id": place.name(each), "topics": asked} for each in GROUPS])
    yield "of all", 8, make("OffsetFetch", groups=[{"group_id": place.name(each), "topics": None} for each in GROUPS])
    by_id = [{"topic_id": each, "partition_indexes": [0]} for each in (*place.ids.values(), NOBODY_ID)]
    yield "by id", 10, make("OffsetFetch", groups=[{"group_id": place.name(each), "topics": by_id} for each in GROUPS])


def _groups(place: Place) -> Asked:
    groups = [place.name(each) for each in GROUPS]
    for kind, words in ((0, GROUPS), (1, TRANSACTIONS)):
        for word in words:
            yield f"{kind} of {word}", 3, make("FindCoordinator", key=place.name(word), key_type=kind)
        yield f"{kind}", 4, make("FindCoordinator", coordinator_keys=[place.name(word) for word in words], key_type=kind)
    times = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000}
    protocols = [{"name": "range", "metadata": b""}]
    for word, group in zip(GROUPS, groups, strict=True):
        member = {"group_id": group, "member_id": "nobody"}
        for version in (5, 9):
            joining = make("JoinGroup", **member, **times, protocol_type="consumer", protocols=protocols)
            yield word, version, joining
        yield word, 3, make("SyncGroup", **member, generation_id=1)
        yield word, 3, make("Heartbeat", **member, generation_id=1)
        yield word, 2, make("LeaveGroup", **member)
        yield word, 4, make("LeaveGroup", group_id=group, members=[{"member_id": "nobody"}])
        names = {"nothing": None, "mine": ["mine"], "both": ["mine", "other"], "missing": ["missing", "absent"]}
        for case, topics in names.items():
            named = None if topics is None else [place.name(each) for each in topics]
            asked = {**member, "member_epoch": 1, "subscribed_topic_names": named, "topic_partitions": None}
            yield f"{word} with {case}", 1, make("ConsumerGroupHeartbeat", **asked)
    yield "", 1, make("ConsumerGroupDescribe", group_ids=groups, include_authorized_operations=True)
    yield "", 5, make("DescribeGroups", groups=groups, include_authorized_operations=True)
    yield "", 4, make("ListGroups")


def _transactions(place: Place) -> Asked:
    yield "", 4, make("InitProducerId", transactional_id=None, transaction_timeout_ms=60_000)
    added = [{"name": place.name(each), "partitions": [0]} for each in NAMES]
    offset = {"partition_index": 0, "committed_offset": 1}
    committed = [{"name": place.name(each), "partitions": [offset]} for each in NAMES]
    for word in TRANSACTIONS:
        name = place.name(word)
        yield word, 4, make("InitProducerId", transactional_id=name, transaction_timeout_ms=60_000)
        yield (
            f"of {word}",
            3,
            make(
                "AddPartitionsToTxn",
                v3_and_below_transactional_id=name,
                v3_and_below_producer_id=4711,
                v3_and_below_producer_epoch=0,
                v3_and_below_topics=added,
            ),
        )
        yield (
            f"of {word}, only mine",
            3,
            make(
                "AddPartitionsToTxn",
                v3_and_below_transactional_id=name,
                v3_and_below_producer_id=4711,
                v3_and_below_producer_epoch=0,
                v3_and_below_topics=added[:1],
            ),
        )
        yield word, 3, make("EndTxn", transactional_id=name, **PRODUCER, committed=True)
        for group in GROUPS:
            yield f"{word}, {group}", 3, make("AddOffsetsToTxn", transactional_id=name, **PRODUCER, group_id=place.name(group))
            yield (
                f"{word}, {group}",
                3,
                make("TxnOffsetCommit", transactional_id=name, **PRODUCER, group_id=place.name(group), topics=committed),
            )
    batched = [{"transactional_id": place.name("ours"), **PRODUCER, "verify_only": True, "topics": added[:1]}]
    yield "", 4, make("AddPartitionsToTxn", transactions=batched)
    yield "", 0, make("DescribeTransactions", transactional_ids=[place.name(each) for each in (*TRANSACTIONS, "absent")])
    yield "", 0, make("ListTransactions")


def _administration(place: Place) -> Asked:
    sized = {"num_partitions": 1, "replication_factor": 1}
    topics = [{"name": place.name(each), **sized} for each in ("new", "foreign", "mine", "other")]
    yield "checked", 7, make("CreateTopics", topics=topics, timeout_ms=30_000, validate_only=True)
    grown = [{"name": place.name(each), "count": 5, "assignments": None} for each in NAMES]
    yield "checked", 3, make("CreatePartitions", topics=grown, timeout_ms=30_000, validate_only=True)
    kinds = [(TOPIC, each) for each in NAMES] + [(GROUP, each) for each in GROUPS]
    resources = [{"resource_type": kind, "resource_name": place.name(each)} for kind, each in kinds]
    resources += [{"resource_type": kind, "resource_name": str(place.node_id)} for kind in (BROKER, LOGGER)]
    resources += [{"resource_type": CLIENT_METRICS, "resource_name": "metrics"}]
    keys = ["retention.ms", "log.retention.ms", "consumer.session.timeout.ms", "interval.ms", "root"]
    yield "", 4, make("DescribeConfigs", resources=[{**each, "configuration_keys": keys} for each in resources])
    settings = {TOPIC: "retention.ms", BROKER: "log.retention.ms", GROUP: "consumer.session.timeout.ms"}
    for api, version, more in (("AlterConfigs", 2, {}), ("IncrementalAlterConfigs", 1, {"config_operation": 0})):
        changes = [
            {**each, "configs": [{"name": settings[each["resource_type"]], "value": "50000", **more}]}
            for each in resources
            if each["resource_type"] in settings
        ]
        yield "checked", version, make(api, resources=changes, validate_only=True)
    yield "of groups and topics", 1, make("ListConfigResources", resource_types=[TOPIC, BROKER])
    yield "", 0, make("ListConfigResources")


def _cluster(place: Place) -> Asked:
    pattern = {"resource_type_filter": 2, "resource_name_filter": place.name("nowhere"), "pattern_type_filter": 3}
    anybody = {"principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1}
    yield "", 3, make("DescribeAcls", **pattern, **anybody)
    binding = {"resource_type": 2, "resource_name": place.name("nowhere"), "resource_pattern_type": 3}
    nobody = {"principal": "User:nobody", "host": "*", "operation": 3, "permission_type": 3}
    yield "", 3, make("CreateAcls", creations=[{**binding, **nobody}])
    yield "", 3, make("DeleteAcls", filters=[{**pattern, **anybody}])
    partitions = [{"topic": place.name(each), "partitions": [0]} for each in ("mine", "other")]
    yield "", 2, make("ElectLeaders", election_type=0, topic_partitions=partitions, timeout_ms=30_000)
    moves = [{"name": place.name("mine"), "partitions": [{"partition_index": 0, "replicas": None}]}]
    yield "", 0, make("AlterPartitionReassignments", timeout_ms=30_000, topics=moves)
    yield "", 0, make("ListPartitionReassignments", timeout_ms=30_000, topics=None)
    moves = [{"path": "/nowhere", "topics": [{"name": place.name("mine"), "partitions": [0]}]}]
    yield "", 2, make("AlterReplicaLogDirs", dirs=moves)
    yield "", 1, make("UpdateFeatures", timeout_ms=30_000, feature_updates=[], validate_only=True)
    yield "", 0, make("DescribeUserScramCredentials", users=[{"name": place.name("nobody")}])
    yield "", 0, make("AlterUserScramCredentials", deletions=[{"name": place.name("nobody"), "mechanism": 1}], upsertions=[])
    yield "", 1, make("DescribeClientQuotas", components=[{"entity_type": "user", "match_type": 0, "match": "nobody"}])
    quota = {"entity": [{"entity_type": "user", "entity_name": "nobody"}], "ops": [{"key": "producer_byte_rate", "value": 1.0}]}
    yield "checked", 1, make("AlterClientQuotas", entries=[quota], validate_only=True)
    marker = {**PRODUCER, "transaction_result": True, "coordinator_epoch": 0}
    marked = [{"name": place.name("absent"), "partition_indexes": [0]}]
    yield "", 1, make("WriteTxnMarkers", markers=[{**marker, "topics": marked}])
    yield "", 0, make("UnregisterBroker", broker_id=99)
    for word in ("mine", "other"):
        owner = {"owner_principal_type": "User", "owner_principal_name": place.name(word)}
        yield f"of {word}", 3, make("CreateDelegationToken", **owner, renewers=[], max_lifetime_ms=-1)


def _lasting(place: Place) -> Asked:
    creating = [{"name": place.name(each)} for each in ("automatic", "absent")]
    yield "that creates", 9, make("Metadata", topics=creating, allow_auto_topic_creation=True)
    offsets = [{"name": place.name(each), "partitions": [{"partition_index": 0, "offset": 0}]} for each in NAMES]
    yield "", 2, make("DeleteRecords", topics=offsets, timeout_ms=30_000)
    topics = [{"name": place.name(each), "partitions": [{"partition_index": 0}]} for each in NAMES]
    for group in GROUPS:
        yield f"of {group}", 0, make("OffsetDelete", group_id=place.name(group), topics=topics)
    yield "", 2, make("DeleteGroups", groups_names=[place.name(each) for each in (*GROUPS, "missing", "absent")])
    identified = [{"topic_id": each, "name": None} for each in (place.ids["other"], NOBODY_ID)]
    yield "by id, other", 6, make("DeleteTopics", topics=identified, timeout_ms=30_000)
    yield "by name", 5, make("DeleteTopics", topic_names=[place.name(each) for each in ("absent", "missing")], timeout_ms=30_000)
    yield "by id, mine", 6, make("DeleteTopics", topics=[{"topic_id": place.ids["mine"], "name": None}], timeout_ms=30_000)
    owners = [{"principal_type": "User", "principal_name": place.name(word)} for word in ("mine", "other")]
    yield "", 3, make("DescribeDelegationToken", owners=owners)
