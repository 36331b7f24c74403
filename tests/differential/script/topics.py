"""CreateTopics, DeleteTopics, CreatePartitions and DeleteRecords."""

from __future__ import annotations

from uuid import UUID

from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.differential.batch import Batch, values
from tests.differential.script.common import produce
from tests.differential.talk import Talk

ABSENT_BROKER = 77


def _create(*topics: CreatableTopic, validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=list(topics), timeout_ms=30_000, validate_only=validate_only)


def _topic(name: str, partitions: int = 1, replicas: int = 1, **config: str | None) -> CreatableTopic:
    configs = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in config.items()]
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas, configs=configs)


def _assigned(name: str, assignments: dict[int, list[int]], partitions: int = -1, replicas: int = -1) -> CreatableTopic:
    placed = [CreatableReplicaAssignment(partition_index=index, broker_ids=brokers) for index, brokers in assignments.items()]
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas, assignments=placed)


def create_topics_versions(talk: Talk) -> None:
    for version in talk.versions_of("CreateTopics"):
        name = talk.name(f"v{version}")
        talk.ask("validate only", _create(_topic(name, 3), validate_only=True), version)
        talk.ask("valid", _create(_topic(name, 3, retention_ms="3600000", cleanup_policy="compact")), version)
        talk.ask("exists", _create(_topic(name, 3)), version)
        talk.ask("exists, validate only", _create(_topic(name, 3), validate_only=True), version)
        talk.ask("defaults", _create(_topic(talk.name(f"defaults-v{version}"), -1, -1)), version)
        good, bad = _topic(talk.name(f"good-v{version}")), _topic("a/b")
        talk.ask("good, bad and existing together", _create(good, bad, _topic(name), _topic(talk.name("none"), 0)), version)
        talk.ask("none", _create(), version)


def create_topics_wrong(talk: Talk) -> None:
    me = talk.node_id
    cases = {
        "empty name": _topic(""),
        "dot": _topic("."),
        "two dots": _topic(".."),
        "space": _topic("a b"),
        "250 letters": _topic(talk.name("n" * 250)[:250]),
        "249 letters": _topic(talk.name("n" * 249)[:249]),
        "no partition": _topic(talk.name("a"), 0),
        "minus 2 partitions": _topic(talk.name("b"), -2),
        "no replica": _topic(talk.name("c"), 1, 0),
        "minus 2 replicas": _topic(talk.name("d"), 1, -2),
        "two replicas": _topic(talk.name("e"), 1, 2),
        "unknown config": _topic(talk.name("f"), no_such_key="1"),
        "not a number": _topic(talk.name("g"), retention_ms="soon"),
        "below the least": _topic(talk.name("h"), segment_bytes="1"),
        "not one of the list": _topic(talk.name("i"), cleanup_policy="burn"),
        "null value": _topic(talk.name("j"), retention_ms=None),
        "empty cleanup policy": _topic(talk.name("k"), cleanup_policy=""),
        "unknown codec": _topic(talk.name("l"), compression_type="brotli"),
        "ratio over one": _topic(talk.name("m"), min_cleanable_dirty_ratio="1.5"),
        "not a boolean": _topic(talk.name("n"), preallocate="perhaps"),
        "min.insync.replicas 0": _topic(talk.name("o"), min_insync_replicas="0"),
        "compact and delete": _topic(talk.name("p"), cleanup_policy="compact,delete"),
        "compact and compact": _topic(talk.name("q"), cleanup_policy="compact,compact"),
        "remote storage": _topic(talk.name("r"), remote_storage_enable="true"),
        "a number with spaces": _topic(talk.name("s"), retention_ms=" 1000 "),
        "internal name": _topic("__consumer_offsets"),
        "assigned": _assigned(talk.name("aa"), {0: [me], 1: [me]}),
        "assigned to a broker that is not there": _assigned(talk.name("ab"), {0: [ABSENT_BROKER]}),
        "assigned to one twice": _assigned(talk.name("ac"), {0: [me, me]}),
        "assigned with a gap": _assigned(talk.name("ad"), {0: [me], 2: [me]}),
        "assigned from 1": _assigned(talk.name("ae"), {1: [me]}),
        "assigned to nobody": _assigned(talk.name("af"), {0: []}),
        "assigned and counted": _assigned(talk.name("ag"), {0: [me]}, 1, 1),
        "assigned and counted partitions": _assigned(talk.name("ah"), {0: [me]}, 1, -1),
        "assigned to minus 1": _assigned(talk.name("ai"), {0: [-1]}),
        "assigned unevenly": _assigned(talk.name("aj"), {0: [me], 1: [me, ABSENT_BROKER]}),
    }
    for case, topic in cases.items():
        talk.ask(f"{case}, validate only", _create(topic, validate_only=True), 7)
        talk.ask(case, _create(topic), 7)


def create_topics_twice_in_one(talk: Talk) -> None:
    name = talk.name("twice")
    talk.ask("the same name twice", _create(_topic(name), _topic(name, 2), _topic(talk.name("once"))), 7)
    dotted, underscored = _topic(talk.name("a.b")), _topic(talk.name("a_b"))
    talk.ask("a dot", _create(dotted), 7)
    talk.ask("an underscore in the place of the dot", _create(underscored), 7)
    talk.ask("both at once", _create(_topic(talk.name("c.d")), _topic(talk.name("c_d"))), 7)


def create_topics_with_every_config(talk: Talk) -> None:
    settings = {
        "cleanup.policy": "compact", "compression.type": "zstd", "compression.gzip.level": "5", "compression.lz4.level": "3",
        "compression.zstd.level": "2", "delete.retention.ms": "1", "file.delete.delay.ms": "2", "flush.messages": "3", "flush.ms": "4",
        "index.interval.bytes": "5", "max.compaction.lag.ms": "1000", "max.message.bytes": "7", "message.timestamp.after.max.ms": "8",
        "message.timestamp.before.max.ms": "9", "message.timestamp.type": "LogAppendTime", "min.cleanable.dirty.ratio": "0.25",
        "min.compaction.lag.ms": "10", "min.insync.replicas": "1", "preallocate": "true", "retention.bytes": "12", "retention.ms": "13",
        "segment.bytes": "1048576", "segment.index.bytes": "15", "segment.jitter.ms": "16", "segment.ms": "17",
        "unclean.leader.election.enable": "true",
        "follower.replication.throttled.replicas": "*", "leader.replication.throttled.replicas": "0:1",
    }  # fmt: skip
    for key, value in settings.items():
        topic = CreatableTopic(name=talk.name("with-" + key), num_partitions=1, replication_factor=1)
        topic.configs = [CreatableTopicConfig(name=key, value=value)]
        talk.ask(key, _create(topic), 7)


def delete_topics_versions(talk: Talk) -> None:
    for version in talk.versions_of("DeleteTopics"):
        name = talk.create(f"v{version}")
        names = [name, talk.name("absent"), "a/b"]
        states = [DeleteTopicState(name=each) for each in names]
        request = DeleteTopicsRequest(topic_names=names, topics=states, timeout_ms=30_000)
        talk.ask("there, absent and wrong", request, version)
        again = DeleteTopicsRequest(topic_names=[name], topics=[DeleteTopicState(name=name)], timeout_ms=30_000)
        talk.ask("again", again, version)
        talk.ask("none", DeleteTopicsRequest(timeout_ms=1000), version)
        talk.do(_create(_topic(name)), 5)
        talk.wait_for_topic(name)
        twice = DeleteTopicsRequest(topic_names=[name, name], topics=[DeleteTopicState(name=name)] * 2, timeout_ms=30_000)
        talk.ask("twice in one", twice, version)


def delete_topics_by_id(talk: Talk) -> None:
    name = talk.create("by-id")
    topic_id = talk.wait_for_topic(name)

    def delete(*states: DeleteTopicState) -> DeleteTopicsRequest:
        return DeleteTopicsRequest(topics=list(states), timeout_ms=30_000)

    talk.ask("by name and id", delete(DeleteTopicState(name=name, topic_id=topic_id)), 6)
    talk.ask("by neither", delete(DeleteTopicState()), 6)
    talk.ask("by unknown id", delete(DeleteTopicState(topic_id=UUID(int=9))), 6)
    talk.ask("by name, and by id", delete(DeleteTopicState(name=name), DeleteTopicState(topic_id=topic_id)), 6)
    name = talk.create("by-id-again")
    talk.ask("by id", delete(DeleteTopicState(topic_id=talk.wait_for_topic(name))), 6)


def create_partitions(talk: Talk) -> None:
    me = talk.node_id
    for version in talk.versions_of("CreatePartitions"):
        name = talk.create(f"v{version}", 2)

        def more(
            count: int, *placed: list[int], topic: str = name, validate_only: bool = False, again: bool = False
        ) -> CreatePartitionsRequest:
            assignments = [CreatePartitionsAssignment(broker_ids=each) for each in placed] or None
            topics = [CreatePartitionsTopic(name=topic, count=count, assignments=assignments)] * (2 if again else 1)
            return CreatePartitionsRequest(topics=topics, timeout_ms=30_000, validate_only=validate_only)

        talk.ask("validate only", more(4, validate_only=True), version)
        talk.ask("to 3", more(3), version)
        talk.wait_for_topic(name, 3)
        talk.ask("to 3 again", more(3), version)
        talk.ask("fewer", more(1), version)
        talk.ask("none", more(0), version)
        talk.ask("minus 1", more(-1), version)
        talk.ask("absent topic", more(3, topic=talk.name("absent")), version)
        talk.ask("wrong topic", more(3, topic="a/b"), version)
        talk.ask("placed", more(4, [me]), version)
        talk.wait_for_topic(name, 4)
        talk.ask("placed too many", more(5, [me], [me]), version)
        talk.ask("placed on an absent broker", more(5, [ABSENT_BROKER]), version)
        talk.ask("placed on one twice", more(5, [me, me]), version)
        talk.ask("placed on nobody", more(5, []), version)
        talk.ask("the same topic twice", more(6, again=True), version)
        talk.ask("no topic", CreatePartitionsRequest(timeout_ms=1000), version)


def delete_records(talk: Talk) -> None:
    for version in talk.versions_of("DeleteRecords"):
        name = talk.create(f"v{version}", 2)
        talk.do(produce(name, Batch(values(*"abcdefgh"))), 8)

        def until(offset: int, partition: int = 0, topic: str = name) -> DeleteRecordsRequest:
            places = [DeleteRecordsPartition(partition_index=partition, offset=offset)]
            return DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=places)], timeout_ms=10_000)

        for offset in (0, 3, 2, 8, 9, -2, -1):
            talk.ask(f"until {offset}", until(offset), version)
        talk.ask("of an empty partition", until(-1, 1), version)
        talk.ask("absent partition", until(1, 7), version)
        talk.ask("absent topic", until(1, topic=talk.name("absent")), version)
        talk.ask("internal topic", until(-1, topic="__consumer_offsets"), version)
        offsets = ListOffsetsTopic(name=name, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-2)])
        talk.ask(f"earliest, after v{version}", ListOffsetsRequest(topics=[offsets]), 5)


def delete_records_of_a_compacted_topic(talk: Talk) -> None:
    for policy in ("compact", "compact,delete"):
        name = talk.create(policy.replace(",", "-"), cleanup_policy=policy)
        talk.do(produce(name, Batch(values(*"abc"))), 8)
        place = DeleteRecordsTopic(name=name, partitions=[DeleteRecordsPartition(partition_index=0, offset=2)])
        talk.ask(policy, DeleteRecordsRequest(topics=[place], timeout_ms=10_000), 2)
