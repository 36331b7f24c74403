"""A connection that tests of the server hold in their own hands: frames out, answers in, in whatever order and at whatever pace."""

from __future__ import annotations

import socket
import struct
import time
from typing import Self, TypeVar

from barnabas.protocol.base_message import Message
from barnabas.protocol.codec import decode, encode
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from barnabas.protocol.records.batch import Record, build_batch
from barnabas.protocol.request_headers import has_flexible_response_header, write_request_header
from barnabas.testing import Broker

SIZE = struct.Struct(">i")
TIMEOUT_S = 60.0
CLIENT_ID = "limits"
CREATE_TOPICS = (19, 7)
NOW_MS = int(time.time()) * 1000  # timestamp of records: retention keeps them, however long a test takes

Answer = TypeVar("Answer", bound=Message)


class Line:
    """A connection that sends frames and reads answers, as slowly as the test wants.

    Args:
        broker: or its port.
        source: the address that it comes from.
    """

    def __init__(self, broker: Broker | int, receive_buffer: int = 0, *, source: str = "127.0.0.1") -> None:
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(TIMEOUT_S)
        try:
            self.socket.bind((source, 0))
            self.socket.connect(("127.0.0.1", broker if isinstance(broker, int) else broker.port))
        except OSError:
            self.socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, api: tuple[int, int], request: Message, correlation_id: int = 0) -> None:
        self.socket.sendall(framed(api, request, correlation_id))

    def receive(self) -> bytes:
        """One answer without its size; raises EOFError where the broker closed the connection."""
        return self._exactly(*SIZE.unpack(self._exactly(SIZE.size)))

    def ask(self, api: tuple[int, int], request: Message, answer: type[Answer]) -> Answer:
        self.send(api, request)
        return decode(answer, api[1], self.receive(), 5 if has_flexible_response_header(*api) else 4)

    def is_closed(self) -> bool:
        """Whether the broker closes it; waits for that."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise EOFError
            data += piece
        return bytes(data)


def framed(api: tuple[int, int], request: Message, correlation_id: int = 0, client_id: str = CLIENT_ID) -> bytes:
    frame = write_request_header(*api, correlation_id, client_id) + bytes(encode(request, api[1]))
    return SIZE.pack(len(frame)) + frame


def create_topic(broker: Broker, name: str) -> bytes:
    """Create it with one partition; its id."""
    with Line(broker) as line:
        topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1)]
        answer = line.ask(CREATE_TOPICS, CreateTopicsRequest(topics=topics, timeout_ms=10_000), CreateTopicsResponse)
        assert answer.topics[0].error_code == 0
        return answer.topics[0].topic_id.bytes


def batch_of(size: int) -> bytes:
    return build_batch([Record(0, NOW_MS, None, b"v" * size, ())])
