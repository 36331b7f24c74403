"""A batch whose answer is lost, and an abort before it is sent again: librdkafka reuses its sequence numbers, and no record may be lost."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tools.kafka import free_ports

from barnabas.testing import Broker

TOPIC, WITHIN_S = "t", 30.0
PRODUCE = 0
Settings = dict[str, str | int | float | bool]
SIZE = struct.Struct(">i")


class Line:
    """A way to the broker that forwards one request after the other, and loses answers to Produce when it is told to."""

    def __init__(self, broker_port: int) -> None:
        self.loses, self.has_lost = Event(), Event()
        self._broker = "127.0.0.1", broker_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._threads = [Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def close(self) -> None:
        for each in (self._listener, *self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._open.append(client)
                self._threads.append(Thread(target=self._forward, args=(client,)))
                self._threads[-1].start()

    def _forward(self, client: socket.socket) -> None:
        with client, suppress(OSError, EOFError), socket.create_connection(self._broker) as broker:
            self._open.append(broker)
            while True:
                request = frame_from(client)
                is_lost = self.loses.is_set() and request[4:6] == PRODUCE.to_bytes(2, "big")
                if not (is_lost and self.has_lost.is_set()):  # the broker gets the first request but no retry
                    broker.sendall(request)
                    answer = frame_from(broker)
                if is_lost:
                    self.has_lost.set()
                    return
                client.sendall(answer)


def frame_from(line: socket.socket) -> bytes:
    head = exactly(line, SIZE.size)
    return head + exactly(line, *SIZE.unpack(head))


def exactly(line: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = line.recv(size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


@contextmanager
def behind_a_line() -> Iterator[tuple[Broker, Line]]:
    (port,) = free_ports(1)
    line = Line(port)
    try:
        listeners = {"listeners": f"PLAINTEXT://127.0.0.1:{port}", "advertised.listeners": f"PLAINTEXT://127.0.0.1:{line.port}"}
        with Broker(config=listeners) as broker:
            yield broker, line
    finally:
        line.close()


def test_records_behind_an_abort_are_stored_or_refused() -> None:
    with behind_a_line() as (_, line):
        server: Settings = {"bootstrap.servers": f"127.0.0.1:{line.port}", "log_level": 0}
        admin = AdminClient(server)
        admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(WITHIN_S)
        producer = Producer({**server, "transactional.id": "x", "linger.ms": 0, "reconnect.backoff.max.ms": 100})
        producer.init_transactions(WITHIN_S)
        producer.begin_transaction()
        line.loses.set()
        producer.produce(TOPIC, b"aborted")
        while not line.has_lost.is_set():
            producer.poll(0.01)
        abort(producer)
        line.loses.clear()
        for value in (b"first", b"second"):
            transact(producer, value)
        assert read(server) == [b"first", b"second"]


def abort(producer: Producer) -> None:
    """Again where the batch was on its way once more, and so was not dropped."""
    while True:
        try:
            producer.abort_transaction(2.0)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
        else:
            return


def transact(producer: Producer, value: bytes) -> None:
    """One record in a transaction, which is tried again as the client says."""
    while True:
        producer.begin_transaction()
        producer.produce(TOPIC, value)
        try:
            producer.commit_transaction(WITHIN_S)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            producer.abort_transaction(WITHIN_S)
        else:
            return


def read(server: Settings) -> list[bytes]:
    consumer = Consumer({**server, "group.id": "g", "enable.partition.eof": True})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    values: list[bytes] = []
    while True:
        message = consumer.poll(WITHIN_S)
        assert message is not None
        if message.error():
            consumer.close()
            return values
        values.append(message.value() or b"")
