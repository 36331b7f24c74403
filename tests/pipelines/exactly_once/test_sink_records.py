"""Reading what is recorded of a sink: without numba, from where the process read to before, and as a reader of committed records."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.plans import Plan
from barnabas.client.results import EARLIEST
from barnabas.error_codes import ErrorCode
from barnabas.pipelines.exactly_once import sink_records
from barnabas.pipelines.exactly_once.state import TOPIC, SinkState, UnreadableState, to_json
from barnabas.protocol.base_message import Message
from barnabas.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.records import encode_kernels
from barnabas.protocol.records.record import build_batch
from tests.client.fakes import TOPIC_ID, FakeShell, metadata

SINK = "s"
ABORT, COMMIT = 0, 1
LIGHT = """
import sys
from barnabas.pipelines import sink
from barnabas.pipelines.exactly_once import executor
print([name for name in ("numba", "numpy", "pandas", "pyarrow") if name in sys.modules])
"""


class Log:
    """A sinks' topic of which one partition is used, and a client of it."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []  # one record each, so that an index in the list is an offset
        self.aborted: list[AbortedTransaction] = []
        self.start = 0
        self.partitions = sink_records.PARTITIONS
        self.read_from: set[int] = set()
        self.topic_id = TOPIC_ID
        self.fetched: list[int] = []
        self._shell = FakeShell(self._answer)
        self.client = BlockingClient(ClientConfig((("127.0.0.1", 9092),), default_api_timeout_ms=1_000))
        self.client.run = self.run  # type: ignore[method-assign]  # requests go to the fake shell

    def run(self, plan: Plan[Any]) -> Any:
        return self._shell.run(plan)

    def append(self, state: SinkState, sink: str = SINK, producer: int = -1) -> None:
        batch = build_batch(
            [(sink.encode(), to_json(state))],
            base_offset=len(self.batches),
            producer_id=producer,
            producer_epoch=0,
            transactional=producer >= 0,
        )
        self.batches.append(batch)

    def mark(self, producer: int, kind: int) -> None:
        key = kind.to_bytes(4, "big")
        self.batches.append(
            build_batch(
                [(key, bytes(6))],
                base_offset=len(self.batches),
                producer_id=producer,
                producer_epoch=0,
                transactional=True,
                control=True,
            )
        )

    def read(self) -> SinkState:
        self.fetched.clear()
        return sink_records.read_state(self.client, SINK)

    def _answer(self, request: Message, node_id: int) -> Any:
        match request:
            case MetadataRequest():
                answer = metadata(dict.fromkeys(((TOPIC, number) for number in range(self.partitions)), 1))
                answer.topics[0].topic_id = self.topic_id
                return answer
            case ListOffsetsRequest():
                wanted = request.topics[0].partitions[0]
                self.read_from.add(wanted.partition_index)
                offset = self.start if wanted.timestamp == EARLIEST else len(self.batches)
                item = ListOffsetsPartitionResponse(partition_index=wanted.partition_index, offset=offset)
                return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=TOPIC, partitions=[item])])
            case FetchRequest():
                return self._fetched(request)
        raise AssertionError(request)

    def _fetched(self, request: FetchRequest) -> FetchResponse:
        assert request.isolation_level == 1
        wanted = request.topics[0].partitions[0]
        code, offset = ErrorCode.NONE, wanted.fetch_offset
        self.read_from.add(wanted.partition)
        self.fetched.append(offset)
        if request.topics[0].topic_id != self.topic_id:
            code = ErrorCode.UNKNOWN_TOPIC_ID
        elif not self.start <= offset <= len(self.batches):
            code = ErrorCode.OFFSET_OUT_OF_RANGE
        item = PartitionData(
            partition_index=wanted.partition,
            error_code=code,
            high_watermark=len(self.batches),
            aborted_transactions=self.aborted,
            records=b"" if code else b"".join(self.batches[offset:]),
        )
        return FetchResponse(responses=[FetchableTopicResponse(topic_id=self.topic_id, partitions=[item])])


@pytest.fixture
def log() -> Iterator[Log]:
    sink_records._read.clear()
    yield Log()
    sink_records._read.clear()


def test_the_drivers_processes_load_nothing_large() -> None:
    told = subprocess.run([sys.executable, "-c", LIGHT], check=True, capture_output=True, text=True).stdout
    assert told.strip() == "[]"


def test_a_sink_stays_in_its_partition_when_some_are_added(log: Log) -> None:
    log.append(SinkState(decided={"q": 4}))
    assert log.read().decided == {"q": 4}
    log.partitions *= 3
    log.client.cluster.topics.clear()
    assert log.read().decided == {"q": 4}
    assert log.read_from == {sink_records.murmur2(SINK.encode()) % sink_records.PARTITIONS}


def test_a_topic_with_too_few_partitions_is_not_the_sinks(log: Log) -> None:
    log.partitions = sink_records.PARTITIONS - 1
    with pytest.raises(UnreadableState, match="the topic has 7 partitions where 8 are needed"):
        log.read()


def test_a_sink_has_its_partition_where_the_kernel_would_put_its_name() -> None:
    rng = random.Random(1)
    for size in range(40):
        data = rng.randbytes(size)
        hashes = np.full(1, -1, np.int32)
        encode_kernels.hash_keys(np.array([0, size], np.int32), np.frombuffer(data, np.uint8), np.empty(0, np.uint8), hashes)
        assert sink_records.murmur2(data) == hashes[0]


def test_the_last_record_of_the_sink_counts(log: Log) -> None:
    assert log.read() == SinkState()
    log.append(SinkState({"q": 1}))
    log.append(SinkState({"q": 2}))
    log.append(SinkState({"of another": 9}), sink="t")
    assert log.read() == SinkState({"q": 2})


def test_nothing_of_an_aborted_transaction_counts(log: Log) -> None:
    log.append(SinkState({"q": 1}), producer=7)
    log.mark(7, COMMIT)
    log.append(SinkState({"q": 2}), producer=7)  # aborted
    log.append(SinkState({"q": 0}), sink="t", producer=8)
    log.mark(7, ABORT)
    log.mark(8, COMMIT)
    log.aborted = [AbortedTransaction(producer_id=7, first_offset=2)]
    assert log.read() == SinkState({"q": 1})
    log.append(SinkState({"q": 3}), producer=7)
    log.mark(7, COMMIT)
    sink_records._read.clear()
    assert log.read() == SinkState({"q": 3})


def test_a_process_reads_on_from_where_it_was(log: Log) -> None:
    log.append(SinkState({"q": 1}))
    assert log.read() == SinkState({"q": 1})
    assert log.fetched == [0]
    assert log.read() == SinkState({"q": 1})
    assert log.fetched == []
    log.append(SinkState({"q": 2}))
    assert log.read() == SinkState({"q": 2})
    assert log.fetched == [1]


def test_a_topic_that_was_made_anew_is_read_from_its_beginning(log: Log) -> None:
    log.append(SinkState({"q": 1}))
    log.read()
    log.batches.clear()
    for batch in (4, 5):
        log.append(SinkState({"q": batch}))
    log.append(SinkState(), sink="t")
    log.topic_id = UUID(int=8)
    assert log.read() == SinkState({"q": 5})
    assert log.fetched[-1] == 0


def test_a_log_that_became_shorter_is_read_from_its_beginning(log: Log) -> None:
    for batch in range(3):
        log.append(SinkState({"q": batch}))
    log.read()
    del log.batches[1:]
    assert log.read() == SinkState({"q": 0})


def test_a_log_that_begins_later_now_is_read_from_there(log: Log) -> None:
    log.append(SinkState({"q": 1}))
    log.read()
    for batch in (2, 3):
        log.append(SinkState({"q": batch}))
    log.start = 2
    assert log.read() == SinkState({"q": 3})
    assert log.fetched == [1, 2]


def test_a_record_whose_checksum_is_wrong_is_told(log: Log) -> None:
    log.append(SinkState({"q": 1}))
    log.batches[0] = log.batches[0][:-3] + b"x" + log.batches[0][-2:]
    with pytest.raises(UnreadableState, match="the checksum of the batch at offset 0 is wrong"):
        log.read()
