"""Metadata, DescribeCluster and DescribeTopicPartitions."""

from __future__ import annotations

import threading
from uuid import UUID

from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from barnabas.protocol.messages.describe_quorum import DescribeQuorumRequest, RequestPartitionData, RequestTopicData
from barnabas.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, RequestCursor, TopicRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.differential.talk import Talk

LONGEST = 249  # characters in a topic name
WRONG_NAMES = {
    "empty": "",
    "dot": ".",
    "two dots": "..",
    "slash": "a/b",
    "space": "a b",
    "249 letters": "n" * 249,
    "250 letters": "n" * 250,
    "not ASCII": "größe",
    "null byte": "a\0b",
}  # fmt: skip


def _named(*names: str, create: bool = False, operations: bool = False) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names],
        allow_auto_topic_creation=create,
        include_topic_authorized_operations=operations,
        include_cluster_authorized_operations=operations,
    )


def metadata_versions(talk: Talk) -> None:
    one, three = talk.create("one"), talk.create("three", 3)
    for version in talk.versions_of("Metadata"):
        talk.ask("two topics", _named(one, three), version)
        talk.ask("the same topic twice", _named(one, one), version)
        talk.ask("all topics", MetadataRequest(topics=None if version else []), version, only_mine=True)
        if version:
            talk.ask("no topic", _named(), version)
        if version >= 4:
            talk.ask("one that is not there", _named(one, talk.name("absent")), version)
        if version >= 8:
            talk.ask("with operations", _named(one, operations=True), version)


def metadata_auto_creation(talk: Talk) -> None:
    for version in talk.versions_of("Metadata"):
        name = talk.name(f"auto-v{version}")
        talk.ask("first", _named(name, create=True), version)
        talk.wait_for_topic(name, 2)
        talk.ask("then", _named(name, create=True), version)


def metadata_wrong_names(talk: Talk) -> None:
    for case, wrong in WRONG_NAMES.items():
        name = talk.name(wrong)[: len(wrong)] if len(wrong) > 200 else wrong
        for version in (4, 12) if len(name) == LONGEST else (1, 4, 12):  # version 1 would create the topic
            talk.ask(f"{case}, may create", _named(name, create=version < 12 and len(name) != LONGEST), version)
        talk.ask(f"{case}, may not create", _named(name), 9)
    talk.ask("wrong and right together", _named("a/b", talk.name("absent"), ".."), 12)


def metadata_collision(talk: Talk) -> None:
    talk.create("with.dot")
    name = talk.name("with_dot")
    talk.ask("a name that differs in a dot", _named(name, create=True), 12)


def metadata_topic_ids(talk: Talk) -> None:
    name = talk.create("by-id")
    topic_id = talk.wait_for_topic(name)
    for version in (10, 11, 12, 13):
        cases = {
            "by id": MetadataRequestTopic(name=None, topic_id=topic_id),
            "by unknown id": MetadataRequestTopic(name=None, topic_id=UUID(int=7)),
            "by name and id": MetadataRequestTopic(name=name, topic_id=topic_id),
            "by zero id and no name": MetadataRequestTopic(name=None),
        }
        for case, topic in cases.items():
            talk.ask(case, MetadataRequest(topics=[topic], allow_auto_topic_creation=False), version, by_kio=False)
    by_both = [MetadataRequestTopic(name=None, topic_id=topic_id), MetadataRequestTopic(name=None, topic_id=UUID(int=8))]
    talk.ask("known and unknown ids", MetadataRequest(topics=by_both, allow_auto_topic_creation=False), 12)
    mixed = [MetadataRequestTopic(name=None, topic_id=topic_id), MetadataRequestTopic(name=name)]
    talk.ask("one by id, one by name", MetadataRequest(topics=mixed, allow_auto_topic_creation=False), 12)


def metadata_race(talk: Talk) -> None:
    """Ten clients ask for the same topic, which is not there, at once: one topic comes of it."""
    name = talk.name("raced")
    lines = [talk.connect() for _ in range(10)]
    threads = [threading.Thread(target=talk.do, args=(_named(name, create=True), 9), kwargs={"on": line}) for line in lines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    topic_id = talk.wait_for_topic(name, 2)
    ids = {talk.do(_named(name, create=True), 12, on=line).topics[0].topic_id for line in lines}
    talk.note("the ids that ten clients see afterwards", len(ids | {topic_id}))


def describe_cluster(talk: Talk) -> None:
    for version in talk.versions_of("DescribeCluster"):
        talk.ask("plain", DescribeClusterRequest(), version)
        talk.ask("with operations", DescribeClusterRequest(include_cluster_authorized_operations=True), version)
        if version >= 1:
            for endpoint_type in (0, 2, 3):
                talk.ask(f"endpoint type {endpoint_type}", DescribeClusterRequest(endpoint_type=endpoint_type), version)
        if version >= 2:
            talk.ask("with fenced brokers", DescribeClusterRequest(include_fenced_brokers=True), version)


def describe_quorum(talk: Talk) -> None:
    for version in talk.versions_of("DescribeQuorum"):
        answer = talk.do(_quorum(("__cluster_metadata", 0)), version)
        (topic,) = answer.topics
        (partition,) = topic.partitions
        (voter,) = partition.current_voters
        told = {
            "error": answer.error_code or partition.error_code,
            "topic": topic.topic_name,
            "leader": partition.leader_id == talk.node_id,
            "voter": voter.replica_id == talk.node_id,
            "observers": len(partition.observers),
            "an epoch": partition.leader_epoch > 0,
            "an end": voter.log_end_offset >= partition.high_watermark > 0,
            "times": voter.last_caught_up_timestamp > 0 and voter.last_fetch_timestamp > 0,
            "nodes": [node.node_id == talk.node_id for node in answer.nodes],
        }
        talk.note(f"DescribeQuorum v{version}", told)
        talk.ask("another partition", _quorum(("__cluster_metadata", 1)), version)
        talk.ask("another topic", _quorum((talk.name("t"), 0)), version)
        talk.ask("two topics", _quorum(("__cluster_metadata", 0), (talk.name("t"), 0)), version)
        talk.ask("nothing", _quorum(), version)


def _quorum(*asked: tuple[str, int]) -> DescribeQuorumRequest:
    return DescribeQuorumRequest(
        topics=[RequestTopicData(topic_name=name, partitions=[RequestPartitionData(partition_index=p)]) for name, p in asked]
    )


def describe_topic_partitions(talk: Talk) -> None:
    names = [talk.create("a", 3), talk.create("b", 2), talk.create("c", 1)]
    topics = [TopicRequest(name=name) for name in names]
    cases = {
        "three topics": DescribeTopicPartitionsRequest(topics=topics),
        "limited to 4": DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=4),
        "limited to 3": DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=3),
        "limited to 1": DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=1),
        "limited to 0": DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=0),
        "limited to -1": DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=-1),
        "the same twice": DescribeTopicPartitionsRequest(topics=[topics[0], topics[0]]),
        "with one absent": DescribeTopicPartitionsRequest(topics=[*topics, TopicRequest(name=talk.name("absent"))]),
        "with a wrong name": DescribeTopicPartitionsRequest(topics=[TopicRequest(name="a/b")]),
        "from b, partition 1": DescribeTopicPartitionsRequest(
            topics=topics, cursor=RequestCursor(topic_name=names[1], partition_index=1)
        ),
        "from between a and b": DescribeTopicPartitionsRequest(
            topics=topics, cursor=RequestCursor(topic_name=names[0] + "x", partition_index=0)
        ),
        "from a partition past the end": DescribeTopicPartitionsRequest(
            topics=topics, cursor=RequestCursor(topic_name=names[0], partition_index=9)
        ),
        "from partition -1": DescribeTopicPartitionsRequest(topics=topics, cursor=RequestCursor(topic_name=names[0], partition_index=-1)),
    }  # fmt: skip
    for case, request in cases.items():
        talk.ask(case, request, 0)
    talk.ask("all topics", DescribeTopicPartitionsRequest(topics=[]), 0, only_mine=True)
