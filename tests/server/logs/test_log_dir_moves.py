"""AlterReplicaLogDirs against a real broker with two log directories, under load and over restarts."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.errors import ErrorCode
from barnabas.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from barnabas.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from barnabas.protocol.records.batch import Record, build_batch, iterate_records, split_batches
from barnabas.testing import Broker
from tests.server.wire import Line, create_topic
from tests.waiting import wait_until

PRODUCE, FETCH, DELETE, ALTER, DESCRIBE = (0, 9), (1, 11), (20, 6), (34, 2), (35, 4)
DEADLINE_S = 30.0
CONFIG = {"log.segment.bytes": "1048576", "log.segment.delete.delay.ms": "100"}
SLOW = {**CONFIG, "replica.alter.log.dirs.io.max.bytes.per.second": "200000"}
Dirs = tuple[Path, Path]


@pytest.fixture
def dirs(tmp_path: Path) -> Dirs:
    return tmp_path / "disk", tmp_path / "disk-2"


def make(dirs: Dirs, config: dict[str, str] = CONFIG) -> Broker:
    return Broker(config, data_dir=dirs[0], log_dirs=len(dirs))


def alter(line: Line, path: Path | str, topic: str = "t", partition: int = 0) -> int:
    wanted = AlterReplicaLogDir(path=str(path), topics=[AlterReplicaLogDirTopic(name=topic, partitions=[partition])])
    answer = line.ask(ALTER, AlterReplicaLogDirsRequest(dirs=[wanted]), AlterReplicaLogDirsResponse)
    assert answer.results[0].topic_name == topic
    return answer.results[0].partitions[0].error_code


def places(line: Line, topic: str = "t") -> dict[str, DescribeLogDirsPartition]:
    """The entries of partition 0 in each log directory."""
    answer = line.ask(DESCRIBE, DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
    return {
        result.log_dir: partition
        for result in answer.results
        for found in result.topics
        if found.name == topic
        for partition in found.partitions
        if partition.partition_index == 0
    }


def produce(line: Line, number: int, topic: str = "t", size: int = 5000) -> int:
    records = build_batch([Record(0, int(time.time() * 1000), None, b"%d " % number + bytes(size), ())])
    data = PartitionProduceData(index=0, records=records)
    request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[TopicProduceData(name=topic, partition_data=[data])])
    answer = line.ask(PRODUCE, request, ProduceResponse).responses[0].partition_responses[0]
    assert answer.error_code == 0
    return answer.base_offset


def consume(line: Line, count: int, topic: str = "t") -> Iterator[int]:
    """The numbers of the first `count` records, in their order."""
    offset = 0
    while offset < count:
        wanted = [FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=300_000, current_leader_epoch=-1)]
        topics = [FetchTopic(topic=topic, partitions=wanted)]
        request = FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=300_000, session_epoch=-1, topics=topics)
        found = line.ask(FETCH, request, FetchResponse).responses[0].partitions[0]
        assert found.error_code == 0
        data = bytes(found.records or b"")
        for position, _ in split_batches(data, allow_partial=True):
            for record in iterate_records(data, position):
                assert record.offset == offset
                assert record.value is not None
                yield int(record.value.split()[0])
                offset += 1


def is_moved(line: Line, target: Path) -> bool:
    return list(places(line)) == [str(target)]


def folders(dirs: Dirs) -> set[str]:
    return {path.name for each in dirs for path in each.iterdir() if path.is_dir()}


def home_and_other(line: Line, dirs: Dirs) -> tuple[Path, Path]:
    (home,) = places(line)
    return (dirs[0], dirs[1]) if home == str(dirs[0]) else (dirs[1], dirs[0])


def begin_move(broker: Broker, line: Line, dirs: Dirs) -> tuple[Path, Path]:
    """Where a topic of 500 records is, and where it is to go."""
    create_topic(broker, "t")
    for number in range(500):
        produce(line, number)
    home, target = home_and_other(line, dirs)
    assert alter(line, target) == 0
    return home, target


def test_a_partition_moves_while_it_is_written_and_read(dirs: Dirs) -> None:
    with make(dirs) as broker, Line(broker) as line, Line(broker) as reader, Line(broker) as admin:
        create_topic(broker, "t")
        for number in range(500):
            produce(line, number)
        written = 500
        read: list[int] = []

        def read_all() -> None:
            for number in consume(reader, 10**9):
                read.append(number)
                if number == -1:
                    return

        thread = threading.Thread(target=read_all)
        thread.start()
        for _ in range(6):
            _, target = home_and_other(admin, dirs)
            assert alter(admin, target) == 0
            while not is_moved(admin, target):
                for _ in range(20):
                    assert produce(line, written) == written
                    written += 1
        produce(line, -1)
        thread.join(DEADLINE_S)
        assert read == [*range(written), -1]
        wait_until(lambda: folders(dirs) == {"t-0"}, "the old folders do not go")
        assert broker.log.count("event=log-moved topic=t") == 6


@pytest.mark.parametrize("kill", [True, False])
def test_an_interrupted_move_begins_again_at_the_next_start(dirs: Dirs, kill: bool) -> None:
    with make(dirs, SLOW) as broker:
        create_topic(broker, "t")
        with Line(broker) as line:
            for number in range(500):
                produce(line, number)
            home, target = home_and_other(line, dirs)
            assert alter(line, target) == 0
            wait_until(lambda: places(line)[str(home)].partition_size > 0 and len(places(line)) == 2, "nothing is copied")
            future = places(line)[str(target)]
            assert future.is_future_key
            assert 0 < future.offset_lag <= 500
            assert not places(line)[str(home)].is_future_key
        if kill:
            broker.kill()
    with make(dirs) as broker, Line(broker) as line:
        wait_until(lambda: is_moved(line, target), "the move does not go on")
        assert list(consume(line, 500)) == list(range(500))
        assert produce(line, 500) == 500
    with make(dirs) as broker, Line(broker) as line:
        assert is_moved(line, target)
        assert list(consume(line, 501)) == list(range(501))


def test_a_move_back_gives_the_copy_up(dirs: Dirs) -> None:
    with make(dirs, SLOW) as broker, Line(broker) as line:
        home, _ = begin_move(broker, line, dirs)
        wait_until(lambda: len(places(line)) == 2, "nothing is copied")
        assert alter(line, home) == 0
        assert is_moved(line, home)
        wait_until(lambda: folders(dirs) == {"t-0"}, "the copy is not removed")


def test_deleting_a_topic_ends_its_move(dirs: Dirs) -> None:
    with make(dirs, SLOW) as broker, Line(broker) as line:
        begin_move(broker, line, dirs)
        wait_until(lambda: any("-future" in name for name in folders(dirs)), "nothing is copied")
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=5000)
        assert line.ask(DELETE, request, DeleteTopicsResponse).responses[0].error_code == 0
        wait_until(lambda: folders(dirs) == set(), "folders stay")
        create_topic(broker, "t")
        assert produce(line, 0) == 0


def test_what_cannot_be_moved_is_refused_and_a_topic_to_come_is_placed(dirs: Dirs) -> None:
    with make(dirs) as broker, Line(broker) as line:
        create_topic(broker, "t")
        assert alter(line, "/nowhere") == ErrorCode.LOG_DIR_NOT_FOUND
        assert alter(line, "") == ErrorCode.LOG_DIR_NOT_FOUND
        assert alter(line, dirs[0], partition=1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for number in range(4):
            name = f"later-{number}"
            assert alter(line, dirs[1], name) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            create_topic(broker, name)
            assert list(places(line, name)) == [str(dirs[1])]
