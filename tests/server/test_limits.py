"""What a peer can make grow is bounded, at a real broker."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.config.broker import BrokerConfig
from barnabas.protocol.codec import decode
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from barnabas.server.listeners import ConnectionLimits
from barnabas.testing import Broker
from tests.server.wire import SIZE, TIMEOUT_S, Line, batch_of, create_topic, framed

PRODUCE, FETCH, METADATA = (0, 9), (1, 12), (3, 9)
TOPIC = "limits"


def produce_request(batch: bytes, acks: int = 1) -> ProduceRequest:
    data = [TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=0, records=batch)])]
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=data)


def fetch_request(offset: int, *, max_wait_ms: int = 0, max_bytes: int = 2**20) -> FetchRequest:
    wanted = [FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes, current_leader_epoch=-1)]
    topics = [FetchTopic(topic=TOPIC, partitions=wanted)]
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=max_bytes, session_epoch=-1, topics=topics)


def produce(broker: Broker, batch: bytes) -> int:
    """The error code."""
    with Line(broker) as line:
        answer = line.ask(PRODUCE, produce_request(batch), ProduceResponse)
        return answer.responses[0].partition_responses[0].error_code


def serves(broker: Broker) -> bool:
    with Line(broker) as line:
        return bool(line.ask(METADATA, MetadataRequest(topics=[]), MetadataResponse).brokers)


def resident_mb(broker: Broker) -> float:
    status = Path(f"/proc/{broker.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024 / 1e6


def test_a_connection_more_than_max_connections_is_closed() -> None:
    with Broker({"max.connections": 2}) as broker, Line(broker) as first, Line(broker) as second:
        for line in (first, second):
            line.ask(METADATA, MetadataRequest(topics=[]), MetadataResponse)
        with Line(broker) as third:
            assert third.is_closed()
        assert "more than max.connections=2" in broker.log
        first.ask(METADATA, MetadataRequest(topics=[]), MetadataResponse)


def test_an_address_has_no_more_connections_than_it_may() -> None:
    config: dict[str, str | int | bool] = {"max.connections.per.ip": 1, "max.connections.per.ip.overrides": "127.0.0.2:3"}
    with Broker(config) as broker, Line(broker) as first:
        first.ask(METADATA, MetadataRequest(topics=[]), MetadataResponse)
        with Line(broker) as second:
            assert second.is_closed()
        first.socket.close()
        eventually(lambda: not_refused(broker))


def test_the_address_of_an_override_may_be_spelled_in_any_way() -> None:
    overrides = "0:0:0:0:0:0:0:1:0,[2001:DB8::1]:0"
    config, _ = BrokerConfig.from_properties({"max.connections.per.ip.overrides": overrides})
    limits = ConnectionLimits(config, 100)
    for host in ("::1", "2001:db8::1"):
        assert limits.open(host, 1) == f"more than max.connections.per.ip=0 from {host}"


def not_refused(broker: Broker) -> bool:
    """Whether a connection is served by now; one that was closed is counted out a moment later."""
    try:
        return serves(broker)
    except (EOFError, ConnectionError):
        return False


def eventually(holds: Callable[[], bool]) -> None:
    """Every try is a round trip to the broker, so this does not spin."""
    assert any(holds() for _ in range(1_000))


def test_a_silent_connection_is_closed() -> None:
    with Broker({"connections.max.idle.ms": 300}) as broker, Line(broker) as line:
        line.ask(METADATA, MetadataRequest(topics=[]), MetadataResponse)
        assert line.is_closed()
        assert "reason=idle" in broker.log


@pytest.mark.parametrize("size", [-1, -(2**31), 5_001, 2**31 - 1])
def test_a_frame_of_a_size_that_may_not_be_closes_its_connection_only(size: int) -> None:
    with Broker({"socket.request.max.bytes": 5_000}) as broker, Line(broker) as line:
        line.socket.sendall(SIZE.pack(size) + b"x" * 100)
        assert line.is_closed()
        assert serves(broker)
        assert broker.log.count("event=connection-closed") == 1
        assert f"a frame of {size} bytes" in broker.log


def test_a_frame_of_the_largest_size_is_served() -> None:
    with Broker({"socket.request.max.bytes": 1_000_000}) as broker:
        create_topic(broker, TOPIC)
        overhead = len(framed(PRODUCE, produce_request(batch_of(900_000)))) - SIZE.size - 900_000
        assert produce(broker, batch_of(1_000_000 - overhead)) == 0


def test_a_request_larger_than_the_queue_is_served_nevertheless() -> None:
    with Broker({"queued.max.request.bytes": 50_000}) as broker:
        create_topic(broker, TOPIC)
        assert produce(broker, batch_of(900_000)) == 0
        assert produce(broker, batch_of(900_000)) == 0


def test_unfinished_requests_of_many_do_not_stop_the_one_that_goes_on() -> None:
    frame = framed(PRODUCE, produce_request(batch_of(600_000)))
    with Broker({"queued.max.request.bytes": 1_000_000}) as broker:
        create_topic(broker, TOPIC)
        lines = [Line(broker, receive_buffer=0) for _ in range(6)]
        try:
            for line in lines:
                line.socket.sendall(frame[: len(frame) // 2])
            for line in lines:
                line.socket.sendall(frame[len(frame) // 2 :])
            for line in lines:
                assert line.receive()
        finally:
            for line in lines:
                line.socket.close()


def test_requests_that_never_end_hold_no_more_than_the_queue_may() -> None:
    with Broker({"queued.max.request.bytes": 4_000_000}) as broker:
        create_topic(broker, TOPIC)
        before = resident_mb(broker)
        start = SIZE.pack(90_000_000) + b"\0" * 60_000_000
        lines = [Line(broker) for _ in range(4)]
        try:
            for line in lines:
                line.socket.setblocking(False)
                send_what_is_taken(line.socket, start)
            assert serves(broker)
            assert resident_mb(broker) - before < 150
        finally:
            for line in lines:
                line.socket.close()
        eventually(lambda: serves(broker))
        assert produce(broker, batch_of(900_000)) == 0


def send_what_is_taken(line: socket.socket, data: bytes) -> None:
    """Send until the broker no longer reads."""
    position = 0
    room = select.poll()  # `select` has no room for a descriptor beyond 1,023
    room.register(line, select.POLLOUT)
    while position < len(data) and room.poll(300):
        position += line.send(memoryview(data)[position : position + 2**20])


def test_a_reader_that_does_not_read_does_not_make_memory_grow() -> None:
    with Broker() as broker:
        create_topic(broker, TOPIC)
        before = resident_mb(broker)
        names = MetadataRequest(topics=None)
        with Line(broker, receive_buffer=4096) as line:
            line.socket.setblocking(False)
            send_what_is_taken(line.socket, framed(METADATA, names) * 100_000)
            assert serves(broker)
            assert resident_mb(broker) - before < 60
            line.socket.settimeout(TIMEOUT_S)
            for _ in range(1_000):
                assert line.receive()


def test_a_reader_of_records_that_does_not_read_holds_up_nobody() -> None:
    with Broker({"log.retention.ms": -1}) as broker:  # the records say that they are old, and this may take a while
        create_topic(broker, TOPIC)
        for _ in range(20):
            assert produce(broker, batch_of(900_000)) == 0
        before = resident_mb(broker)
        with Line(broker, receive_buffer=4096) as slow:
            request = framed(FETCH, fetch_request(0, max_bytes=20_000_000))
            slow.socket.sendall(request * 200)
            assert serves(broker)
            assert resident_mb(broker) - before < 60
            for _ in range(3):
                assert len(slow.receive()) > 15_000_000


def test_answers_come_in_the_order_of_requests_though_the_first_waits() -> None:
    with Broker() as broker:
        create_topic(broker, TOPIC)
        with Line(broker) as line:
            line.socket.sendall(
                framed(FETCH, fetch_request(0, max_wait_ms=30_000), 1)
                + framed(METADATA, MetadataRequest(topics=[]), 2)
                + framed(PRODUCE, produce_request(batch_of(10)), 3)
            )
            answers = [line.receive() for _ in range(3)]
    assert [SIZE.unpack_from(answer)[0] for answer in answers] == [1, 2, 3]
    fetched = decode(FetchResponse, FETCH[1], answers[0], 5)
    assert fetched.responses[0].partitions[0].high_watermark == 1


def test_a_connection_with_too_many_waiting_requests_is_not_read_until_some_are_answered() -> None:
    waiting = 3_000
    with Broker() as broker:
        create_topic(broker, TOPIC)
        with Line(broker) as line:
            line.socket.sendall(b"".join(framed(FETCH, fetch_request(0, max_wait_ms=30_000), i) for i in range(waiting)))
            assert serves(broker)
            assert produce(broker, batch_of(10)) == 0
            assert [SIZE.unpack_from(line.receive())[0] for _ in range(waiting)] == list(range(waiting))
