"""Everything that a peer can make grow is bounded, in a real broker."""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas import limits as limits_module
from barnabas.config.broker import BrokerConfig
from barnabas.protocol.codec import decode
from barnabas.protocol.fetch import Copied
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from barnabas.server.answer_order import _cost
from barnabas.server.listeners import ConnectionLimits
from barnabas.server.receiver import Receiver
from barnabas.storage.file_region import FileRegion
from barnabas.storage.files import OsFiles
from barnabas.storage.integrity import SegmentIntegrity
from barnabas.testing import Broker
from tests.server import in_process
from tests.server.wire import SIZE, TIMEOUT_S, Line, batch_of, create_topic, framed
from tests.waiting import until, wait_until

PRODUCE, FETCH, METADATA = (0, 9), (1, 12), (3, 9)
TOPIC = "limits"


def produce_request(batch: bytes, acks: int = 1) -> ProduceRequest:
    data = [TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(index=0, records=batch)])]
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=data)


def fetch_request(offset: int, *, max_wait_ms: int = 0, max_bytes: int = 2**20, session_epoch: int = -1) -> FetchRequest:
    wanted = [FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes, current_leader_epoch=-1)]
    topics = [FetchTopic(topic=TOPIC, partitions=wanted)]
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=max_bytes, session_epoch=session_epoch, topics=topics)


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
        wait_until(lambda: not_refused(broker))


def test_the_address_of_an_override_may_be_spelled_in_any_way() -> None:
    overrides = "0:0:0:0:0:0:0:1:0,[2001:DB8::1]:0"
    config, _ = BrokerConfig.from_properties({"max.connections.per.ip.overrides": overrides})
    limits = ConnectionLimits(config, 100)
    for host in ("::1", "2001:db8::1"):
        assert limits.open(host, "PLAINTEXT", 1) == f"more than max.connections.per.ip=0 from {host}"


def test_limits_are_those_of_now_and_each_listener_has_its_own() -> None:
    common = {
        "listeners": "A://127.0.0.1:1,B://127.0.0.1:2",
        "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT",
        "inter.broker.listener.name": "B",
        "zookeeper.connect": "127.0.0.1:3",
    }
    before, _ = BrokerConfig.from_properties(common)
    limits = ConnectionLimits(before, 100)
    assert limits.open("h", "A", 90) is None
    now, _ = BrokerConfig.from_properties({**common, "max.connections": "5", "listener.name.a.max.connections": "2"})
    limits.update_config(now)
    assert limits.open("h", "A", 6) == "more than max.connections=5"
    assert limits.open("h", "A", 3) == "more than max.connections=2 of the listener A"
    assert limits.open("h", "B", 90) is None, "brokers reach each other"
    for listener in "AAAB":
        limits.close("h", listener)
    assert limits.open("h", "A", 1) is None


def not_refused(broker: Broker) -> bool:
    """Whether a connection is served by now; one that was closed is counted out a moment later."""
    try:
        return serves(broker)
    except (EOFError, ConnectionError):
        return False


def test_a_silent_connection_is_closed() -> None:
    with Broker({"connections.max.idle.ms": 2_000}) as broker, Line(broker) as line:
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


def test_what_is_said_of_a_closed_connection_names_the_client_s_software() -> None:
    with Broker({"socket.request.max.bytes": 5_000}) as broker, Line(broker) as line:
        said = ApiVersionsRequest(client_software_name="a-client", client_software_version="1.2")
        assert line.ask((18, 3), said, ApiVersionsResponse).error_code == 0
        line.socket.sendall(SIZE.pack(-1))
        assert line.is_closed()
        assert "client='a-client/1.2'" in broker.log


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
        wait_until(lambda: serves(broker))
        assert produce(broker, batch_of(900_000)) == 0


def send_what_is_taken(line: socket.socket, data: bytes) -> None:
    """Send until the broker no longer reads."""
    position = 0
    room = select.poll()  # `select` supports no descriptor above 1,023
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
    with Broker({"log.retention.ms": -1}) as broker:  # the timestamps are old, and retention could run before the test ends
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


def test_requests_behind_a_fetch_that_waits_begin_when_it_is_answered() -> None:
    with Broker() as broker:
        create_topic(broker, TOPIC)
        with Line(broker) as line:
            line.socket.sendall(
                framed(FETCH, fetch_request(0, max_wait_ms=200), 1)
                + framed(METADATA, MetadataRequest(topics=[]), 2)
                + framed(PRODUCE, produce_request(batch_of(10)), 3)
            )
            answers = [line.receive() for _ in range(3)]
    assert [SIZE.unpack_from(answer)[0] for answer in answers] == [1, 2, 3]
    fetched = decode(FetchResponse, FETCH[1], answers[0], 5)
    assert fetched.responses[0].partitions[0].high_watermark == 0, "it does not see what was sent behind it"


def test_a_connection_with_too_many_waiting_requests_is_not_read_until_some_are_answered() -> None:
    waiting = 3_000
    with Broker() as broker:
        create_topic(broker, TOPIC)
        with Line(broker) as line:
            # the others begin after this one, and the broker holds their answers
            first = framed(FETCH, fetch_request(0, max_wait_ms=30_000, session_epoch=0), 0)
            line.socket.sendall(first + b"".join(framed(FETCH, fetch_request(0), i) for i in range(1, waiting)))
            assert serves(broker)
            assert produce(broker, batch_of(10)) == 0
            assert [SIZE.unpack_from(line.receive())[0] for _ in range(waiting)] == list(range(waiting))


def test_bytes_that_wait_for_the_queue_are_counted_by_connection() -> None:
    """A batch of a transaction is held while the frame that it came in still counts."""

    class Reader:
        def __init__(self) -> None:
            self.paused: set[str] = set()

        def pause(self, reason: str) -> None:
            self.paused.add(reason)

        def resume(self, reason: str) -> None:
            self.paused.discard(reason)

    receiver, older, holding = Receiver(1_000, 100), Reader(), Reader()
    receiver.take(older, 60)
    receiver.take(holding, 30)
    receiver.take(holding, 30)
    assert holding.paused == {"queue"}
    receiver.give_back(holding, 30)
    receiver.give_back(holding, 30)
    assert (holding.paused, receiver.queued_bytes) == (set(), 60)
    receiver.give_back(older, 60)
    assert (older.paused, receiver.queued_bytes) == (set(), 0)


async def test_answers_behind_one_that_waits_are_bounded_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits_module, "MAX_UNSENT_BYTES", 5_000)
    asked = 60

    def fetch(partition: int, session_epoch: int, max_wait_ms: int) -> FetchRequest:
        wanted = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1_000)
        topics = [FetchTopic(topic=in_process.TOPIC, partitions=[wanted])]
        return FetchRequest(
            replica_id=-1, session_epoch=session_epoch, max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=1_000, topics=topics
        )

    async with in_process.running([tmp_path]) as client:
        assert await client.create(2) == 0
        assert await client.produce(b"v" * 500, partition=1) == 0
        with Line(client.broker.endpoints[0].port) as line:
            line.send((1, 11), fetch(0, 0, 60_000))  # starts a session, and waits
            for number in range(asked):
                line.send((1, 11), fetch(1, -1, 0), number)
            connection = await until_some(lambda: [c for c in client.broker.connections if "held" in c.paused_for])
            assert connection.order.held_bytes < 2 * limits_module.MAX_UNSENT_BYTES
            assert await client.produce(b"v") == 0
            answers = await asyncio.get_running_loop().run_in_executor(None, lambda: [line.receive() for _ in range(asked + 1)])
            assert [int.from_bytes(answer[:4], "big") for answer in answers[1:]] == list(range(asked))
            assert connection.order.held_bytes == 0


async def until_some(find: Callable[[], list[Any]]) -> Any:
    await until(lambda: bool(find()))
    return find()[0]


def test_a_piece_of_a_file_that_waits_counts_for_its_descriptor() -> None:
    region = FileRegion(0, 0, 5, 0, SegmentIntegrity(OsFiles(), 0, lambda: 0))
    assert _cost(region) == limits_module.HELD_REGION_BYTES
    assert [_cost(b"four"), _cost(Copied(b"fiver"))] == [4, 5]
