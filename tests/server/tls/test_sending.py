"""What a TLS connection holds while its reader is slow, and that all of it arrives."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import pytest

from barnabas.protocol.codec import decode
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from barnabas.protocol.records.batch import build_batch, iterate_records, split_batches
from barnabas.testing import Broker
from tests.server.wire import CREATE_TOPICS, Line

PRODUCE, FETCH, METADATA = (0, 9), (1, 12), (3, 9)
TOPIC = "sending"
VALUE = os.urandom(1_000_000)
RECORDS = 40


class TlsLine(Line):
    """As `Line`, to a listener with TLS."""

    def __init__(self, broker: Broker, receive_buffer: int = 0) -> None:
        super().__init__(broker, receive_buffer)
        context = ssl.create_default_context(cafile=broker.certificates.ca_file)
        self.socket = context.wrap_socket(self.socket, server_hostname="127.0.0.1")


def resident_bytes(pid: int | None) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def fetch_request(max_bytes: int, offset: int = 0) -> FetchRequest:
    wanted = [FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes, current_leader_epoch=-1)]
    topics = [FetchTopic(topic=TOPIC, partitions=wanted)]
    return FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=max_bytes, session_epoch=-1, topics=topics)


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_slow_readers_cost_little_and_get_everything(version: str) -> None:
    config = {"listeners": "SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0", "ssl.enabled.protocols": version}
    with Broker(config, tls=True) as broker:
        with TlsLine(broker) as line:
            line.ask(
                CREATE_TOPICS,
                CreateTopicsRequest(
                    topics=[CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)], timeout_ms=30_000
                ),
                CreateTopicsResponse,
            )
            for _ in range(RECORDS):
                data = [PartitionProduceData(index=0, records=bytes(build_batch([(None, VALUE)], timestamp_ms=1)))]
                request = ProduceRequest(
                    acks=1, timeout_ms=30_000, topic_data=[TopicProduceData(name=TOPIC, partition_data=data)]
                )
                answer = line.ask(PRODUCE, request, ProduceResponse)
                assert answer.responses[0].partition_responses[0].error_code == 0
        before = resident_bytes(broker.pid)
        lines = [TlsLine(broker, receive_buffer=65_536) for _ in range(8)]
        for each in lines:
            for _ in range(4):
                each.send(FETCH, fetch_request(RECORDS * len(VALUE)))
        with TlsLine(broker) as line:  # answered after the others were worked on
            assert line.ask(METADATA, MetadataRequest(topics=[]), MetadataResponse).brokers
        assert resident_bytes(broker.pid) - before < 16_000_000, "of a gigabyte and a quarter that was asked for"
        for each in lines[1:]:
            each.socket.close()
        found = decode(FetchResponse, FETCH[1], lines[0].receive(), 5)
        records = bytes(found.responses[0].partitions[0].records or b"")
        values = [record.value for at, _ in split_batches(records) for record in iterate_records(records, at)]
        assert len(values) > 1
        assert set(values) == {VALUE}
        lines[0].socket.close()
