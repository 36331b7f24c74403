"""What lines and receivers make of bytes that come in pieces; and the generator on a real broker of ours."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from bench.peers import nats, rabbitmq, redis
from bench.peers.kafka_protocol import Barnabas
from bench.peers.peer import Amount, CannotDo, Message
from bench.wire import BadAnswer


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.fixture
def line() -> Iterator[socket.socket]:
    near, far = socket.socketpair()
    with near, far:
        yield near


def _view(data: bytes) -> memoryview:
    return memoryview(data)


def test_redis_ids_are_counted_when_they_are_whole(listening: socket.socket) -> None:
    adder = redis._Adder(listening.getsockname(), "s", Message(10, 1, 1), 2, 256)
    with adder.socket:
        answer = b"$15\r\n1700000000000-0\r\n"
        assert adder.take(_view(answer * 3)) == (3, 3 * len(answer))
        assert adder.take(_view(answer + answer[:8])) == (1, len(answer))
        assert adder.take(_view(answer[:-1])) == (0, 0)
        with pytest.raises(BadAnswer, match="ERR no"):
            adder.take(_view(answer + b"-ERR no\r\n"))


def test_redis_reads_on_behind_the_last_id(listening: socket.socket) -> None:
    reader = redis._Reader(listening.getsockname(), "s", 2)
    far, _ = listening.accept()
    with reader.socket, far:
        entry = b"*2\r\n$3\r\n1-%d\r\n*2\r\n$1\r\nv\r\n$4\r\nabcd\r\n"
        answer = b"*1\r\n*2\r\n$1\r\ns\r\n*2\r\n" + entry % 1 + entry % 2
        assert reader.take(_view(answer[:-3])) == (0, 0)
        assert reader.take(_view(answer)) == (2, len(answer))
        assert far.recv(4096).endswith(b"$3\r\n1-2\r\n")


def test_nats_acknowledgements_are_counted(line: socket.socket) -> None:
    publisher = nats._Publisher(line, "s", Message(10, 1, 1), 2, 256)
    answer = b'MSG _INBOX.bench.1 1  23\r\n{"stream":"s", "seq":7}\r\n'
    assert publisher.take(_view(answer * 2)) == (2, 2 * len(answer))
    assert publisher.take(_view(answer + answer[:-2])) == (1, len(answer))
    assert publisher.take(_view(answer[:10])) == (0, 0)
    with pytest.raises(BadAnswer, match="no space"):
        publisher.take(_view(b'MSG x 1 9\r\n{"error":{"description":"no space"}}\r\n'))


def test_nats_messages_are_counted_and_asked_for_again(line: socket.socket) -> None:
    puller = nats._Puller(line, "$JS.API.CONSUMER.MSG.NEXT.s.c", 2)
    message = b"MSG s 1 $JS.ACK.s.c.1.1.1.1700.0 4\r\nabcd\r\n"
    assert puller.take(_view(message * 2)) == (2, 2 * len(message))
    assert puller.take(_view(message + message[:-3])) == (1, len(message))


def test_rabbitmq_confirmations_of_parts_of_batches_add_up(line: socket.socket) -> None:
    publisher = rabbitmq._Publisher(line, Message(10, 50, 1), 1, 64)

    def confirm(count: int) -> bytes:
        return rabbitmq.frame(rabbitmq.CONFIRM, b"\0" + count.to_bytes(4, "big") + bytes(8 * count))

    assert publisher.take(_view(confirm(30))) == (0, len(confirm(30)))
    assert publisher.take(_view(confirm(70))) == (2, len(confirm(70)))
    assert publisher.take(_view(confirm(50)[:-1])) == (0, 0)
    with pytest.raises(BadAnswer, match="frame 0x4 "):
        publisher.take(_view(rabbitmq.frame(4, bytes(5))))


def test_systems_without_batches_say_so() -> None:
    with pytest.raises(CannotDo):
        redis.Redis().line("s", Message(10, 2, 1), 1, 64)
    with pytest.raises(CannotDo):
        nats.Nats().line("s", Message(10, 2, 1), 1, 64)


def test_a_broker_of_ours_takes_and_gives_all_that_is_counted() -> None:
    with Barnabas() as peer:
        for topic, message in (("single", Message(100, 1, 0)), ("batches", Message(100, 10, 1))):
            peer.create(topic, 1)
            load = peer.produce(topic, message, Amount(2_000, 30.0))
            assert peer.stored(topic, 1) == load.records >= 2_000
            assert peer.consume(topic, message, load.records, pull_bytes=20_000).records == load.records
        peer.create("delays", 2)
        found = peer.end_to_end("delays", Message(100, 1, 1), 1_000, 0.2, partitions=2)
        assert len(found.consumed) == 200
        assert peer.ready_after_s > 0
