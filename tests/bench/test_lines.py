"""Lines and receivers get bytes in pieces; and the generator runs on a real broker of ours."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import closing

import pytest
from bench.load import Load
from bench.peers import nats, rabbitmq, redis, streams
from bench.peers import rabbitmq_queues as queues
from bench.peers.kafka_protocol import Barnabas
from bench.peers.peer import Amount, CannotDo, Message, Pace
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
    adder = redis._Adder(listening.getsockname(), ["s"], Message(10, 1, 1), 2, 256)
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
    publisher = nats._Publisher(line, ["s"], Message(10, 1, 1), 2, 256)
    answer = b'MSG _INBOX.bench.1 1  23\r\n{"stream":"s", "seq":7}\r\n'
    assert publisher.take(_view(answer * 2)) == (2, 2 * len(answer))
    assert publisher.take(_view(answer + answer[:-2])) == (1, len(answer))
    assert publisher.take(_view(answer[:10])) == (0, 0)
    with pytest.raises(BadAnswer, match="no space"):
        publisher.take(_view(b'MSG x 1 9\r\n{"error":{"description":"no space"}}\r\n'))


def test_nats_asks_now_and_then_whether_a_connection_lives() -> None:
    near, far = socket.socketpair()
    with near, far:
        far.sendall(b'PING\r\nMSG _INBOX.bench.1 1 9\r\n{"n": 12}\r\n')
        assert nats._asked(near, "INFO") == {"n": 12}
        assert far.recv(4096).endswith(b"PONG\r\n")


def test_nats_messages_are_counted_and_asked_for_again(line: socket.socket) -> None:
    puller = nats._Puller(line, "s.c", 2)
    message = b"MSG s 1 $JS.ACK.s.c.1.1.1.1700.0 4\r\nabcd\r\n"
    assert puller.take(_view(message * 2)) == (2, 2 * len(message))
    assert puller.take(_view(message + message[:-3])) == (1, len(message))


def test_rabbitmq_confirmations_of_parts_of_batches_add_up(line: socket.socket) -> None:
    publisher = rabbitmq._Publisher(line, 1, Message(10, 50, 1), 1, 64)

    def confirm(count: int) -> bytes:
        return rabbitmq.frame(rabbitmq.CONFIRM, b"\0" + count.to_bytes(4, "big") + bytes(8 * count))

    assert publisher.take(_view(confirm(30))) == (0, len(confirm(30)))
    assert publisher.take(_view(confirm(70))) == (2, len(confirm(70)))
    assert publisher.take(_view(confirm(50)[:-1])) == (0, 0)
    with pytest.raises(BadAnswer, match="frame 0x4 "):
        publisher.take(_view(rabbitmq.frame(4, bytes(5))))


def test_the_ends_of_streams_are_in_their_last_chunks() -> None:
    near, far = socket.socketpair()
    with near, far:
        talk = rabbitmq.StreamTalk.__new__(rabbitmq.StreamTalk)
        talk.socket, talk._chunks = near, []
        subscribed = rabbitmq.frame(rabbitmq.SUBSCRIBE | 0x8000, bytes(4) + rabbitmq.OK.to_bytes(2, "big"))

        def chunk(number: int, first: int, records: int) -> bytes:
            return rabbitmq.frame(rabbitmq.DELIVER, rabbitmq._CHUNK.pack(number, 0, 0, 0, records, 0, 0, first) + b"messages")

        far.sendall(subscribed + chunk(0, 7, 3) + subscribed + subscribed + chunk(2, 100, 1))
        assert talk.last_offsets(["one", "empty", "other"], 0.0) == 10 + 101


def test_producers_of_several_streams_go_round(listening: socket.socket, line: socket.socket) -> None:
    one, two = Message(10, 1, 1), ["s-0", "s-1"]
    adder = redis._Adder(listening.getsockname(), two, one, 4, 256)
    adder.socket.close()
    sent = (adder.chunk, nats._Publisher(line, two, one, 4, 256).chunk, queues._Publisher(line, two, one, 4, 64).chunk)
    for chunk in sent:
        assert [chunk.count(stream) for stream in (b"s-0", b"s-1")] == [2, 2]
        assert chunk.index(b"s-0") < chunk.index(b"s-1") < chunk.rindex(b"s-0")
    size = len(rabbitmq._Publisher(line, 1, one, 1, 64).chunk)
    frames = rabbitmq._Publisher(line, 2, one, 4, 64).chunk
    assert [frames[at + rabbitmq._HEAD.size] for at in range(0, 4 * size, size)] == [0, 1, 0, 1]


def _confirmation(tag: int, *, multiple: bool) -> bytes:
    return queues.method(queues.ACK, tag.to_bytes(8, "big") + bytes([multiple]))


def test_confirmations_of_queues_may_stand_for_many_and_come_out_of_order(line: socket.socket) -> None:
    publisher = queues._Publisher(line, ["q-0"], Message(10, 1, 1), 1, 64)
    one, many = _confirmation(2, multiple=False), _confirmation(4, multiple=True)
    assert publisher.take(_view(one)) == (1, len(one))
    assert publisher.take(_view(many + one[:5])) == (3, len(many))
    assert publisher.take(_view(_confirmation(5, multiple=False))) == (1, len(one))
    with pytest.raises(BadAnswer, match=r"method 60\.120"):
        publisher.take(_view(queues.method((60, 120), bytes(9))))


def _delivery(tag: int, body: bytes) -> bytes:
    head = b"\1c" + tag.to_bytes(8, "big") + b"\0" + queues.short("") + queues.short("q-0")
    return queues.method(queues.DELIVER, head) + queues.content(body)


@pytest.mark.parametrize("size", [10, 300_000], ids=["one frame", "three frames"])
def test_deliveries_of_queues_are_counted_and_acknowledged(size: int) -> None:
    near, far = socket.socketpair()
    with near, far:
        talk = queues.QueueTalk.__new__(queues.QueueTalk)
        talk.socket = near
        read: Counter[str] = Counter()
        consumer = queues._Consumer(talk, "q-0", size, 10, read)
        first, second = (_delivery(tag, bytes(size)) for tag in (1, 2))
        assert consumer.take(_view(first + second[:-1])) == (1, len(first))
        assert far.recv(100) == _confirmation(1, multiple=True)
        assert read == {"q-0": 1}
        with pytest.raises(BadAnswer, match="delivery 7, expected 2"):
            consumer.take(_view(_delivery(7, bytes(size))))
        with pytest.raises(BadAnswer, match="something else"):
            consumer.take(_view(bytes(len(first))))


def test_consumers_of_nats_go_with_their_connections(line: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def do(peer: nats.Nats, subject: str, body: object = None) -> dict[str, str]:
        asked.append(subject)
        return {"name": "c1"}

    monkeypatch.setattr(nats.Nats, "_do", do)
    monkeypatch.setattr(nats.Nats, "greet", lambda self: line)
    monkeypatch.setattr(streams, "read", lambda watch, receivers, messages: Load(1, messages, 1.0))
    nats.Nats().consume("t", Message(10, 1, 1), 5, pull_bytes=100)
    assert asked == ["CONSUMER.CREATE.t-0", "CONSUMER.DELETE.t-0.c1"]


def test_systems_without_batches_say_so() -> None:
    with pytest.raises(CannotDo):
        queues.RabbitMqQueues().line(["s"], Message(10, 2, 1), 1, 64)
    with pytest.raises(CannotDo):
        redis.Redis().line(["s"], Message(10, 2, 1), 1, 64)
    with pytest.raises(CannotDo):
        nats.Nats().line(["s"], Message(10, 2, 1), 1, 64)


class _Wire:
    """A sender or a receiver of single bytes. The other end gets the bytes that a sender sends."""

    chunk, requests, window, is_answered = b"x", 1, 1, True

    def __init__(self, end: socket.socket) -> None:
        self.socket = end

    def begin(self) -> None:
        """Take all bytes that come."""

    def take(self, received: memoryview) -> tuple[int, int]:
        return len(received), len(received)


def test_messages_that_wait_are_no_part_of_the_schedule() -> None:
    near, far = socket.socketpair()
    far.sendall(bytes(7))  # the waiting messages
    with closing(streams.Watch()) as watch:
        found = streams.on_schedule(watch, [_Wire(far)], [_Wire(near)], Pace(1_000, 0.05), waiting=7)
    assert len(found.consumed) == 50
    assert found.caught_up[0] >= 7


def test_the_first_messages_of_a_schedule_do_not_count() -> None:
    near, far = socket.socketpair()
    with closing(streams.Watch()) as watch:
        found = streams.on_schedule(watch, [_Wire(far)], [_Wire(near)], Pace(1_000, 0.05, warm_up_s=0.02))
    assert len(found.consumed) == 50


def test_a_broker_of_ours_takes_and_gives_all_that_is_counted() -> None:
    with Barnabas() as peer:
        for topic, message in (("single", Message(100, 1, 0)), ("batches", Message(100, 10, 1))):
            peer.create(topic, 1)
            load = peer.produce(topic, message, Amount(2_000, 30.0))
            assert peer.stored(topic, 1) == load.records >= 2_000
            assert peer.consume(topic, message, load.records, pull_bytes=20_000).records == load.records
        peer.create("delays", 2)
        peer.create("others", 2)
        peer.create("warm", 1)
        found = peer.end_to_end(["delays", "others"], Message(100, 1, 1), Pace(1_000, 0.2), partitions=2)
        assert len(found.consumed) == 200
        assert found.caught_up == (0, 0.0)
        found = peer.end_to_end(["warm"], Message(100, 1, 1), Pace(1_000, 0.2, warm_up_s=0.1))
        assert len(found.consumed) == 200
        peer.create("waiting", 1)
        load = peer.produce("waiting", Message(100, 10, 1), Amount(2_000, 30.0))
        found = peer.end_to_end(["waiting"], Message(100, 10, 1), Pace(1_000, 0.2), waiting=load.records)
        assert len(found.consumed) == 200
        assert found.caught_up[0] >= load.records
        peer.create("many", 5)
        load = peer.produce("many", Message(100, 1, 1), Amount(2_000, 30.0), partitions=5, producers=2)
        assert peer.stored("many", 5) == load.records >= 2_000
        assert peer.ready_after_s > 0
