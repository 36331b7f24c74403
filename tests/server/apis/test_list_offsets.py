"""ListOffsets of a leader that does not know yet how much of its log is committed, and of an only replica."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.errors import ErrorCode
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.replication.leader_partition import LeaderPartition
from barnabas.server.apis.list_offsets import EARLIEST, LATEST, MAX_TIMESTAMP, handle_list_offsets
from tests.replication.test_partition import NOW_MS, batch, open_partition
from tests.replication.test_partition_followers import FakeCluster, State, fetch

EPOCH_WRITTEN_IN, EPOCH_LED = 3, 5


def listed(partition: LeaderPartition, timestamp: int, version: int = 9) -> tuple[int, int, int]:
    """Error code, offset and leader epoch."""

    def find(topic: str, index: int) -> LeaderPartition:
        return partition

    broker: Any = SimpleNamespace(partitions=SimpleNamespace(require_leader=find, get=find))
    context: Any = SimpleNamespace(api_version=version)
    wanted = ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=timestamp)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="topic", partitions=[wanted])])
    answer = handle_list_offsets(broker, context, request)
    assert isinstance(answer, ListOffsetsResponse)
    (found,) = answer.topics[0].partitions
    return found.error_code, found.offset, found.leader_epoch


@pytest.fixture
def written(tmp_path: Path) -> LeaderPartition:
    """Two records of a former epoch."""
    log = open_partition(tmp_path, leader_epoch=EPOCH_WRITTEN_IN).log
    partition = LeaderPartition(log, leader_id=1, leader_epoch=EPOCH_WRITTEN_IN)
    for _ in range(2):
        partition.append_as_leader(batch(b"a"), NOW_MS)
    return partition


def test_what_may_be_committed_is_not_said_to_be_missing(written: LeaderPartition) -> None:
    written.high_watermark = 1
    written.lead(State(leader_epoch=EPOCH_LED, isr=(1, 2), replicas=(1, 2)), FakeCluster(), 0)
    assert not written.knows_end
    assert listed(written, NOW_MS) == (ErrorCode.NONE, 0, EPOCH_WRITTEN_IN)
    assert listed(written, EARLIEST)[:2] == (ErrorCode.NONE, 0)
    for timestamp in (NOW_MS + 1, LATEST, MAX_TIMESTAMP):
        assert listed(written, timestamp)[0] == ErrorCode.OFFSET_NOT_AVAILABLE
    assert listed(written, NOW_MS + 1, version=4)[0] == ErrorCode.LEADER_NOT_AVAILABLE
    fetch(written, 2, 2)
    assert written.knows_end
    assert listed(written, NOW_MS + 1)[:2] == (ErrorCode.NONE, -1)
    assert listed(written, LATEST) == (ErrorCode.NONE, 2, EPOCH_LED)


def test_an_only_replica_tells_the_end_of_every_epoch_before_its_own(written: LeaderPartition) -> None:
    written.lead(State(leader_epoch=EPOCH_LED, isr=(1,), replicas=(1,)), FakeCluster(), 0)
    _, end, epoch = listed(written, LATEST)
    assert (end, epoch) == (2, EPOCH_LED)
    written.lead(State(leader_epoch=EPOCH_LED + 2, isr=(1,), replicas=(1,)), FakeCluster(), 0)
    assert written.end_offset_for_epoch(EPOCH_LED) == (EPOCH_WRITTEN_IN, 2)
    # An epoch that no record here has, such as one of the source of a copy
    assert written.end_offset_for_epoch(EPOCH_LED + 1) == (EPOCH_WRITTEN_IN, 2)
    assert written.end_offset_for_epoch(EPOCH_LED + 3) == (-1, -1)
