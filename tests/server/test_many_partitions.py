"""The resources of a broker with many partitions, connections or readers, tested with few."""

from __future__ import annotations

import resource
import time

from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from barnabas.testing import Broker
from tests.server.wire import Line, batch_of, create_topic

PRODUCE, FETCH, LIST_OFFSETS = (0, 9), (1, 11), (2, 7)
EARLIEST = -2


def test_a_broker_takes_all_the_open_files_that_the_system_grants() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, hard), hard))
    try:
        with Broker() as broker:
            assert broker.pid is not None
            assert resource.prlimit(broker.pid, resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_fetch_that_wants_more_than_may_come_is_answered_with_what_may_come() -> None:
    with Broker() as broker, Line(broker) as line:
        create_topic(broker, "t")
        data = [TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=batch_of(9000))])]
        produced = line.ask(PRODUCE, ProduceRequest(acks=1, timeout_ms=1000, topic_data=data), ProduceResponse)
        assert produced.responses[0].partition_responses[0].error_code == 0
        wanted = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=10**6, current_leader_epoch=-1)]
        request = FetchRequest(
            max_wait_ms=60_000,
            min_bytes=10**6,
            max_bytes=5000,
            session_epoch=-1,
            topics=[FetchTopic(topic="t", partitions=wanted)],
        )
        started = time.monotonic()
        answer = line.ask(FETCH, request, FetchResponse)
        assert time.monotonic() - started < 30
        assert len(answer.responses[0].partitions[0].records or b"") > 9000


def test_an_empty_partition_begins_in_its_leaders_epoch() -> None:
    with Broker() as broker, Line(broker) as line:
        create_topic(broker, "t")
        wanted = [ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=EARLIEST)]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=wanted)])
        answer = line.ask(LIST_OFFSETS, request, ListOffsetsResponse).topics[0].partitions[0]
        assert (answer.error_code, answer.offset, answer.leader_epoch) == (0, 0, 0)
