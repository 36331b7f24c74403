"""`cordoned.log.dirs`: directories that get no new partitions, as Apache Kafka 4.3 answers for them (KIP-1066)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from barnabas.errors import ErrorCode
from barnabas.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.testing import Broker, BrokerFailed
from tests.server.wire import Line

CREATE, MORE, ALTER_DIRS, DESCRIBE, CONFIGS = (19, 5), (37, 3), (34, 2), (35, 5), (44, 1)
BROKER, SET = 4, 0
Dirs = tuple[Path, Path]


@pytest.fixture
def dirs(tmp_path: Path) -> Dirs:
    return tmp_path / "disk", tmp_path / "disk-2"


def cordon(line: Line, value: str) -> int:
    config = AlterableConfig(name="cordoned.log.dirs", config_operation=SET, value=value)
    resource = AlterConfigsResource(resource_type=BROKER, resource_name="1", configs=[config])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    return line.ask(CONFIGS, request, IncrementalAlterConfigsResponse).responses[0].error_code


def create(line: Line, name: str, partitions: int, assigned: Sequence[int] = ()) -> int:
    assignments = [CreatableReplicaAssignment(partition_index=number, broker_ids=[1]) for number in assigned]
    count, factor = (-1, -1) if assigned else (partitions, 1)
    topic = CreatableTopic(name=name, num_partitions=count, replication_factor=factor, assignments=assignments, configs=[])
    request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
    return line.ask(CREATE, request, CreateTopicsResponse).topics[0].error_code


def add_partitions(line: Line, name: str, count: int) -> int:
    request = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=name, count=count, assignments=None)], timeout_ms=10_000)
    return line.ask(MORE, request, CreatePartitionsResponse).results[0].error_code


def move(line: Line, name: str, path: Path) -> int:
    wanted = AlterReplicaLogDir(path=str(path), topics=[AlterReplicaLogDirTopic(name=name, partitions=[0])])
    answer = line.ask(ALTER_DIRS, AlterReplicaLogDirsRequest(dirs=[wanted]), AlterReplicaLogDirsResponse)
    return answer.results[0].partitions[0].error_code


def described(line: Line) -> dict[str, tuple[bool, int]]:
    """For each directory whether it is cordoned, and how many partitions it holds."""
    answer = line.ask(DESCRIBE, DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
    return {each.log_dir: (each.is_cordoned, sum(len(topic.partitions) for topic in each.topics)) for each in answer.results}


def test_a_cordoned_directory_gets_nothing_new_until_it_is_open_again(dirs: Dirs) -> None:
    first, second = map(str, dirs)
    with Broker({"node.id": "1"}, data_dir=dirs[0], log_dirs=2) as broker, Line(broker) as line:
        assert create(line, "before", 4) == 0
        assert described(line) == {first: (False, 2), second: (False, 2)}
        assert cordon(line, second) == 0
        assert create(line, "meanwhile", 4) == 0
        assert described(line) == {first: (False, 6), second: (True, 2)}
        assert move(line, "meanwhile", dirs[1]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert cordon(line, "") == 0
        assert create(line, "after", 4) == 0
        assert described(line) == {first: (False, 6), second: (False, 6)}
        assert move(line, "meanwhile", dirs[1]) == 0


def test_where_all_are_cordoned_no_partition_is_placed(dirs: Dirs) -> None:
    with Broker({"node.id": "1"}, data_dir=dirs[0], log_dirs=2) as broker:
        with Line(broker) as line:
            assert create(line, "t", 1) == 0
            assert cordon(line, "*") == 0
            assert create(line, "u", 1) == ErrorCode.INVALID_REPLICATION_FACTOR
            assert add_partitions(line, "t", 2) == ErrorCode.INVALID_REPLICATION_FACTOR
            assert create(line, "by-hand", 1, assigned=[0]) == 0
        broker.stop()
        broker.start()
        with Line(broker) as line:
            assert create(line, "u", 1) == ErrorCode.INVALID_REPLICATION_FACTOR
            assert {is_cordoned for is_cordoned, _ in described(line).values()} == {True}
            assert cordon(line, str(dirs[0])) == 0
            assert create(line, "u", 3) == 0
            assert described(line)[str(dirs[1])] == (False, described(line)[str(dirs[1])][1])


def test_what_a_broker_starts_with_counts_until_it_is_told_otherwise(dirs: Dirs) -> None:
    config = {"node.id": "1", "cordoned.log.dirs": str(dirs[1])}
    with Broker(config, data_dir=dirs[0], log_dirs=2) as broker, Line(broker) as line:
        assert create(line, "t", 4) == 0
        assert described(line) == {str(dirs[0]): (False, 4), str(dirs[1]): (True, 0)}
        assert cordon(line, str(dirs[0])) == 0
        assert create(line, "u", 4) == 0
        assert described(line) == {str(dirs[0]): (True, 4), str(dirs[1]): (False, 4)}


def test_only_directories_that_the_broker_has_can_be_cordoned(dirs: Dirs) -> None:
    with Broker({"node.id": "1"}, data_dir=dirs[0], log_dirs=2) as broker, Line(broker) as line:
        for value in ("/nowhere", f"*,{dirs[0]}", f"{dirs[0]},x"):
            assert cordon(line, value) == ErrorCode.INVALID_REQUEST
        assert {is_cordoned for is_cordoned, _ in described(line).values()} == {False}
    with pytest.raises(BrokerFailed, match=r"cordoned\.log\.dirs.*nowhere"):
        Broker({"cordoned.log.dirs": "/nowhere"}, data_dir=dirs[0]).start()
