"""A connection that speaks the old versions by hand, and what an answer says in plain values."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from typing import Any, Self

from barnabas.protocol.base_message import Message
from barnabas.protocol.codec import decode, encode
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.records.batch import iterate_records, split_batches
from barnabas.protocol.request_headers import has_flexible_response_header, write_request_header
from tests.differential.older_formats.sets import NOW_FROM_MS, taken_apart
from tests.waiting import wait_until

PRODUCE, FETCH, CREATE_TOPICS = 0, 1, 19
TIMEOUT_S = 20.0
STORED_VERSION = 11  # version of the Fetch in `stored`: it has topic names and needs no session
Wanted = tuple[str, int, int, int]  # topic, partition, offset, maximum bytes


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


class OldLine:
    """One connection to a broker."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, TIMEOUT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, api: int, version: int, body: bytes, correlation_id: int = 7) -> None:
        frame = struct.pack(">hhi", api, version, correlation_id) + text("old") + body
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive(self) -> bytes:
        """An answer behind its correlation id; raises EOFError where the broker closed the connection."""
        (size,) = struct.unpack(">i", self._exactly(4))
        answer = self._exactly(size)
        return answer[4:]

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                piece = self.socket.recv(size - len(data))
            except ConnectionResetError:
                piece = b""
            if not piece:
                raise EOFError
            data += piece
        return bytes(data)

    def ask(self, api: tuple[int, int], request: Message, answer: type[Message]) -> Any:
        """A question in a version that the product's own codec knows."""
        frame = write_request_header(*api, 7, "old") + bytes(encode(request, api[1]))
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)
        return decode(answer, api[1], self.receive(), 1 if has_flexible_response_header(*api) else 0)

    def create(self, name: str, partitions: int, configs: dict[str, str]) -> None:
        settings = [CreatableTopicConfig(name=key, value=value) for key, value in configs.items()]
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=settings)
        answer = self.ask((CREATE_TOPICS, 5), CreateTopicsRequest(topics=[topic], timeout_ms=10_000), CreateTopicsResponse)
        assert answer.topics[0].error_code == 0, answer

        def is_led() -> bool:
            return not any(self.stored(name, partition)["error"] for partition in range(partitions))

        wait_until(is_led, f"{name} has no leaders")

    # requests in old versions

    def produce(self, version: int, topic: str, records: Sequence[tuple[int, bytes | None]], *, acks: int = 1) -> Any:
        """The result: None for acks=0, "closed" if the connection ended."""
        body = b"" if version < 3 else struct.pack(">h", -1)
        body += struct.pack(">hii", acks, 10_000, 1) + text(topic) + struct.pack(">i", len(records))
        for partition, data in records:
            body += struct.pack(">i", partition) + (
                struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data
            )
        self.send(PRODUCE, version, body)
        if acks == 0:
            return None
        try:
            return _produced(version, self.receive())
        except EOFError:
            return "closed"

    def fetch(
        self, version: int, wanted: Sequence[Wanted], *, max_bytes: int = 1 << 20, wait_ms: int = 200, correlation_id: int = 7
    ) -> Any:
        body = struct.pack(">iii", -1, wait_ms, 1)
        body += struct.pack(">i", max_bytes) if version >= 3 else b""
        body += struct.pack(">i", len(wanted))
        for topic, partition, offset, size in wanted:
            body += text(topic) + struct.pack(">iiqi", 1, partition, offset, size)
        self.send(FETCH, version, body, correlation_id)
        try:
            return _fetched(version, self.receive())
        except EOFError:
            return "closed"

    def stored(self, topic: str, partition: int = 0) -> Any:
        """The batches of a partition, each as its attributes, producer, timestamps, and records."""
        body = struct.pack(">iiiibiii", -1, 100, 0, 1 << 20, 0, 0, -1, 1) + text(topic) + struct.pack(">i", 1)
        body += struct.pack(">iiqqi", partition, -1, 0, -1, 1 << 20) + struct.pack(">i", 0) + text("")
        self.send(FETCH, STORED_VERSION, body)
        answer = self.receive()
        at = 4 + 2 + 4 + 4 + 2 + len(topic) + 4  # throttle time, error, session, topics, the topic's name, partitions
        _, error, high_watermark, *_ = struct.unpack_from(">ihqqq", answer, at)
        at += 30
        (aborted,) = struct.unpack_from(">i", answer, at)
        at += 4 + 16 * max(aborted, 0) + 4
        (size,) = struct.unpack_from(">i", answer, at)
        data = answer[at + 4 : at + 4 + size]
        batches = []
        for position, header in split_batches(data, allow_partial=True):
            records = [
                [each.offset, _shown(each.timestamp), _plain(each.key), _plain(each.value)]
                for each in iterate_records(data, position)
            ]
            batches.append([header.attributes, header.producer_id, _shown(header.max_timestamp), records])
        return {"error": error, "high watermark": high_watermark, "batches": batches}


def _shown(time: int) -> int | str:
    return "now" if time > NOW_FROM_MS else time


def _plain(value: bytes | None) -> str | None:
    return None if value is None else value.decode("latin-1") if len(value) < 100 else f"{len(value)} bytes"


def _produced(version: int, answer: bytes) -> Any:
    at, found = 0, []
    (topics,) = struct.unpack_from(">i", answer, at)
    at += 4
    for _ in range(topics):
        (length,) = struct.unpack_from(">h", answer, at)
        at += 2 + length
        (partitions,) = struct.unpack_from(">i", answer, at)
        at += 4
        for _ in range(partitions):
            found.append(list(struct.unpack_from(">ihq", answer, at)))
            at += 14
            if version >= 2:
                (time,) = struct.unpack_from(">q", answer, at)
                found[-1].append(_shown(time))
                at += 8
    if version >= 1:
        assert struct.unpack_from(">i", answer, at) == (0,)  # not throttled
        at += 4
    assert at == len(answer)
    return sorted(found)


def _fetched(version: int, answer: bytes) -> Any:
    at, found = 0, []
    if version >= 1:
        assert struct.unpack_from(">i", answer, at) == (0,)
        at += 4
    (topics,) = struct.unpack_from(">i", answer, at)
    at += 4
    for _ in range(topics):
        (length,) = struct.unpack_from(">h", answer, at)
        at += 2 + length
        (partitions,) = struct.unpack_from(">i", answer, at)
        at += 4
        for _ in range(partitions):
            index, error, high_watermark, size = struct.unpack_from(">ihqi", answer, at)
            at += 18
            found.append([index, error, high_watermark, taken_apart(answer[at : at + max(size, 0)])])
            at += max(size, 0)
    assert at == len(answer)
    return sorted(found, key=lambda each: each[0])
