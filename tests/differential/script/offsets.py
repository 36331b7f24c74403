"""ListOffsets, OffsetForLeaderEpoch and DescribeLogDirs."""

from __future__ import annotations

from barnabas.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from barnabas.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.differential.batch import BASE_TIME_MS, Batch, Record, values
from tests.differential.script.common import produce
from tests.differential.talk import Talk

SPECIAL = {"latest": -1, "earliest": -2, "max timestamp": -3, "earliest local": -4, "latest tiered": -5, "earliest pending": -6,
           "minus 7": -7}  # fmt: skip


def _at(
    topic: str, timestamp: int, *, partition: int = 0, epoch: int = -1, isolation_level: int = 0, replica_id: int = -1
) -> ListOffsetsRequest:
    place = ListOffsetsPartition(partition_index=partition, timestamp=timestamp, current_leader_epoch=epoch)
    topics = [ListOffsetsTopic(name=topic, partitions=[place])]
    return ListOffsetsRequest(replica_id=replica_id, isolation_level=isolation_level, topics=topics, timeout_ms=5000)


def list_offsets(talk: Talk) -> None:
    topic = talk.create("three-batches", 2)
    for start in (0, 1000, 500):  # the third batch is older than the second
        talk.do(produce(topic, Batch(values("a", "b", "c"), base_timestamp_ms=BASE_TIME_MS + start)), 9)
    gzip = Batch([Record(timestamp_delta=delta) for delta in (0, 200, 100)], codec="gzip", base_timestamp_ms=BASE_TIME_MS + 2000)
    talk.do(produce(topic, gzip), 9)
    for version in talk.versions_of("ListOffsets"):
        for case, timestamp in SPECIAL.items():
            talk.ask(case, _at(topic, timestamp), version)
            talk.ask(f"{case} of an empty partition", _at(topic, timestamp, partition=1), version)
        for delta in (-1, 0, 1, 2, 3, 500, 1000, 1002, 1003, 2000, 2050, 2100, 2150, 2200, 2201):
            talk.ask(f"at {delta} ms", _at(topic, BASE_TIME_MS + delta), version)
        talk.ask("at 0", _at(topic, 0), version)
        talk.ask("at 5 ms of an empty partition", _at(topic, BASE_TIME_MS + 5, partition=1), version)
        talk.ask("absent partition", _at(topic, -1, partition=7), version)
        talk.ask("absent topic", _at(talk.name("absent"), -1), version)
        talk.ask("wrong topic", _at("a/b", -1), version)
        talk.ask("read committed", _at(topic, -1, isolation_level=1), version)
        talk.ask("nothing", ListOffsetsRequest(replica_id=-1), version)
        talk.ask("as a replica that is none", _at(topic, -1, replica_id=99), version)
        talk.ask("as a debugging consumer", _at(topic, -1, replica_id=-2), version)
        for epoch in (0, 1):
            talk.ask(f"leader epoch {epoch}", _at(topic, -1, epoch=epoch), version)
        places = [ListOffsetsPartition(partition_index=0, timestamp=timestamp) for timestamp in (-1, -2)]
        twice = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=places)])
        talk.ask("a partition twice", twice, version)


def offset_for_leader_epoch(talk: Talk) -> None:
    topic = talk.create("epochs", 2)
    talk.do(produce(topic, Batch(values("a", "b", "c"))), 9)
    for version in talk.versions_of("OffsetForLeaderEpoch"):
        for replica_id in (-1, -2, 99):
            for partition, current, epoch in (
                (0, -1, 0), (0, -1, 1), (0, -1, -1), (0, 0, 0), (0, 1, 0), (0, -1, -2), (1, -1, 0), (7, -1, 0),
            ):  # fmt: skip
                place = OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
                request = OffsetForLeaderEpochRequest(
                    replica_id=replica_id, topics=[OffsetForLeaderTopic(topic=topic, partitions=[place])]
                )
                talk.ask(f"replica {replica_id}, partition {partition}, current {current}, epoch {epoch}", request, version)
        place = OffsetForLeaderPartition(partition=0, leader_epoch=0)
        request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=talk.name("absent"), partitions=[place])])
        request.replica_id = -1
        talk.ask("absent topic", request, version)


def describe_log_dirs(talk: Talk) -> None:
    topic = talk.create("sized", 2)
    talk.do(produce(topic, Batch(values("a", "b", "c"))), 9)
    for version in talk.versions_of("DescribeLogDirs"):
        talk.ask("all", DescribeLogDirsRequest(topics=None), version, only_mine=True)
        one = DescribableLogDirTopic(topic=topic, partitions=[0])
        talk.ask("one partition", DescribeLogDirsRequest(topics=[one]), version)
        two = [one, DescribableLogDirTopic(topic=talk.name("absent"), partitions=[0])]
        talk.ask("with an absent one", DescribeLogDirsRequest(topics=two), version)
        talk.ask("none", DescribeLogDirsRequest(topics=[]), version)
