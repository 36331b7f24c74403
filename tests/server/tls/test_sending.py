"""The memory of a TLS connection with a slow reader; all bytes arrive."""

from __future__ import annotations

import os
import socket
import ssl
from pathlib import Path

import pytest

from barnabas import limits
from barnabas.protocol.codec import decode
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from barnabas.protocol.records.batch import build_batch, iterate_records, split_batches
from barnabas.testing import Broker
from tests.server.wire import CREATE_TOPICS, TIMEOUT_S, Line, framed

PRODUCE, FETCH, METADATA = (0, 9), (1, 12), (3, 9)
TOPIC = "sending"
VALUE = os.urandom(1_000_000)
RECORDS = 40
CREATION = CreateTopicsRequest(topics=[CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)], timeout_ms=30_000)


class TlsLine(Line):
    """As `Line`, to a listener with TLS."""

    def __init__(self, broker: Broker, receive_buffer: int = 0) -> None:
        super().__init__(broker, receive_buffer)
        context = ssl.create_default_context(cafile=broker.certificates.ca_file)
        self.socket = self.tls = context.wrap_socket(self.socket, server_hostname="127.0.0.1")


def resident_bytes(pid: int | None) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def produce_request(value: bytes, acks: int = 1) -> ProduceRequest:
    data = [PartitionProduceData(index=0, records=bytes(build_batch([(None, value)], timestamp_ms=1)))]
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[TopicProduceData(name=TOPIC, partition_data=data)])


def values_of(answer: FetchResponse) -> list[bytes | None]:
    records = bytes(answer.responses[0].partitions[0].records or b"")
    return [record.value for at, _ in split_batches(records) for record in iterate_records(records, at)]


def fetch_request(max_bytes: int, *, max_wait_ms: int = 0, session_epoch: int = -1) -> FetchRequest:
    wanted = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=max_bytes, current_leader_epoch=-1)]
    topics = [FetchTopic(topic=TOPIC, partitions=wanted)]
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=max_bytes, session_epoch=session_epoch, topics=topics)


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_slow_readers_cost_little_and_get_everything(version: str) -> None:
    config = {"listeners": "SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0", "ssl.enabled.protocols": version}
    with Broker(config, tls=True) as broker:
        with TlsLine(broker) as line:
            line.ask(
                CREATE_TOPICS,
                CREATION,
                CreateTopicsResponse,
            )
            for _ in range(RECORDS):
                answer = line.ask(PRODUCE, produce_request(VALUE), ProduceResponse)
                assert answer.responses[0].partition_responses[0].error_code == 0
        before = resident_bytes(broker.pid)
        lines = [TlsLine(broker, receive_buffer=65_536) for _ in range(8)]
        for each in lines:
            for _ in range(4):
                each.send(FETCH, fetch_request(RECORDS * len(VALUE)))
        with TlsLine(broker) as line:  # the broker answers after the requests of the others
            assert line.ask(METADATA, MetadataRequest(topics=[]), MetadataResponse).brokers
        assert resident_bytes(broker.pid) - before < 16_000_000, "of a gigabyte and a quarter that was asked for"
        for each in lines[1:]:
            each.socket.close()
        values = values_of(decode(FetchResponse, FETCH[1], lines[0].receive(), 5))
        assert len(values) > 1
        assert set(values) == {VALUE}
        lines[0].socket.close()


def test_a_connection_that_waits_is_paused_and_goes_on() -> None:
    """More requests at once than a connection may have in flight, behind a long poll, and then a goodbye behind the last record."""
    polls = 3 * limits.MAX_REQUESTS_IN_FLIGHT
    with Broker(tls=True) as broker, TlsLine(broker) as line:
        line.ask(CREATE_TOPICS, CREATION, CreateTopicsResponse)
        waiting, request = fetch_request(1_000, max_wait_ms=200, session_epoch=0), fetch_request(1_000)
        line.socket.sendall(b"".join(framed(FETCH, request if number else waiting, number) for number in range(polls)))
        assert [int.from_bytes(line.receive()[:4], "big") for _ in range(polls)] == list(range(polls))


def test_what_comes_before_a_goodbye_counts() -> None:
    with Broker(tls=True) as broker:
        with TlsLine(broker) as line:
            line.ask(CREATE_TOPICS, CREATION, CreateTopicsResponse)
            line.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)  # the kernel sends both together
            line.send(PRODUCE, produce_request(b"last", acks=0))
            line.socket.setblocking(False)
            with pytest.raises(ssl.SSLWantReadError):
                line.tls.unwrap()
            line.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
            line.socket.settimeout(TIMEOUT_S)
            with pytest.raises(ssl.SSLZeroReturnError):
                line.socket.recv(1)
        with TlsLine(broker) as line:
            assert values_of(line.ask(FETCH, fetch_request(1_000), FetchResponse)) == [b"last"]


def test_large_frames_of_several_connections_arrive_whole() -> None:
    """Each connection sends its next frame before the last one is answered, and all of them use the same buffers."""
    sent = [bytes([number]) * (900_000 - 50_000 * number) for number in range(12)]
    with Broker(tls=True) as broker, TlsLine(broker) as first, TlsLine(broker) as second:
        first.ask(CREATE_TOPICS, CREATION, CreateTopicsResponse)
        for value, other in zip(sent[::2], sent[1::2], strict=True):
            first.send(PRODUCE, produce_request(value))
            second.send(PRODUCE, produce_request(other))
        for line in (first, second):
            for _ in sent[::2]:
                answer = decode(ProduceResponse, PRODUCE[1], line.receive(), 5)
                assert answer.responses[0].partition_responses[0].error_code == 0
        found = values_of(first.ask(FETCH, fetch_request(20_000_000), FetchResponse))
        assert [value for value in found if value in sent[::2]] == sent[::2]
        assert [value for value in found if value in sent[1::2]] == sent[1::2]
