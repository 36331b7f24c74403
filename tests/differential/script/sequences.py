"""The steps of users, from the first to the last."""

from __future__ import annotations

from barnabas.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from tests.differential.batch import Batch, values
from tests.differential.script.common import Member, fetch, join, produce, sync
from tests.differential.talk import Talk


def a_life(talk: Talk) -> None:
    """Create, produce, fetch, grow, rebalance, commit, trim, delete, and the same name again."""
    topic = talk.name("topic")
    creation = CreateTopicsRequest(topics=[CreatableTopic(name=topic, num_partitions=1, replication_factor=1)], timeout_ms=30_000)
    talk.ask("first", creation, 7)
    talk.wait_for_topic(topic)
    for round_, codec in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
        talk.ask(f"round {round_}", produce(topic, Batch(values(*"abc"), codec=codec)), 9)
    talk.ask("everything", fetch(topic), 11)
    growth = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=topic, count=2, assignments=None)], timeout_ms=30_000)
    talk.ask("to two", growth, 3)
    talk.wait_for_topic(topic, 2)
    talk.ask("to the new partition", produce(topic, Batch(values("new")), partition=1), 9)
    member = Member(talk.connect(), talk.name("group"), "member")
    member.learn(talk.ask("member", join(member), 3, on=member.line))
    talk.ask("member", sync(member, {member.member_id: b"both"}), 3, on=member.line)
    places = [OffsetCommitRequestPartition(partition_index=index, committed_offset=index + 1) for index in (0, 1)]
    commit = OffsetCommitRequest(
        group_id=member.group,
        generation_id_or_member_epoch=member.generation,
        member_id=member.member_id,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=places)],
    )
    talk.ask("member", commit, 8, on=member.line)
    wanted = [OffsetFetchRequestTopic(name=topic, partition_indexes=[0, 1])]
    talk.ask("member", OffsetFetchRequest(group_id=member.group, topics=wanted), 7)
    trimming = DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=7)])
    talk.ask("seven", DeleteRecordsRequest(topics=[trimming], timeout_ms=10_000), 2)
    talk.ask("before the start", fetch(topic, 3), 11)
    talk.ask("from the start, in the middle of a batch", fetch(topic, 7), 11)
    _bounds(talk, "trimmed", topic)
    talk.ask("topic", DeleteTopicsRequest(topic_names=[topic], timeout_ms=30_000), 5)
    talk.settle()
    named = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    talk.ask("after the deletion", named, 9)
    talk.ask("after the deletion", produce(topic, Batch()), 9)
    talk.ask("after the deletion", fetch(topic), 11)
    talk.ask("second", creation, 7)
    talk.wait_for_topic(topic)
    _bounds(talk, "new", topic)
    talk.ask("into the new one", produce(topic, Batch()), 9)


def _bounds(talk: Talk, step: str, topic: str) -> None:
    for name, timestamp in (("earliest", -2), ("latest", -1)):
        place = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=timestamp)])
        talk.ask(f"{step}: {name}", ListOffsetsRequest(replica_id=-1, topics=[place]), 7)


def many_small_segments(talk: Talk) -> None:
    """Reads, times and bounds over segment boundaries."""
    topic = talk.create("segments", segment_bytes="1048576", index_interval_bytes="100")
    for index in range(30):
        batch = Batch(values("x" * 100_000), base_timestamp_ms=1_700_000_000_000 + index * 1000)
        talk.do(produce(topic, batch), 9)
    _bounds(talk, "segments", topic)
    for offset in (0, 9, 10, 11, 20, 29):
        talk.ask(f"from {offset}", fetch(topic, offset, partition_max_bytes=250_000), 11)
    for second in (-1, 0, 9, 10, 11, 25, 29, 30):
        place = ListOffsetsPartition(partition_index=0, timestamp=1_700_000_000_000 + second * 1000)
        talk.ask(
            f"at second {second}", ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[place])]), 7
        )
    trimming = DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=15)])
    talk.ask("fifteen", DeleteRecordsRequest(topics=[trimming], timeout_ms=10_000), 2)
    _bounds(talk, "trimmed segments", topic)
    talk.ask("below the start", fetch(topic, 3), 11)
    talk.ask("at the start", fetch(topic, 15, partition_max_bytes=100), 11)
