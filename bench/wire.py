"""The bytes that the load generator sends, built once, and the few requests that are not load.

Rules
  1. A request of the load is built before the clock starts. After that the generator only moves bytes.
  2. Answers are checked column by column over whole runs of answers of one size (`AnswerShape`). Every answer of a run has the same
     layout, so a strided slice of the received bytes contains one byte of each answer.

Ugly: this module repeats the layouts of Produce 9 and Fetch 12. It must not use the broker's own codec, because a fault in the
codec would be on both sides, and nobody would see it.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from struct import Struct
from typing import TypeVar

from crc32c import crc32c

from barnabas.protocol.base_message import Message
from barnabas.protocol.codec import decode, encode
from barnabas.protocol.records.compression import Compression, compress

PRODUCE, FETCH, LIST_OFFSETS, METADATA, API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS = 0, 1, 2, 3, 18, 19, 20
FIND_COORDINATOR, INIT_PRODUCER_ID = 10, 22
INCREMENTAL_ALTER_CONFIGS, ALTER_PARTITION_REASSIGNMENTS, ALTER_CLIENT_QUOTAS = 44, 45, 49
PRODUCE_VERSION, FETCH_VERSION = 9, 12
NO_SESSION, NEW_SESSION = (0, -1), (0, 0)  # session id and epoch of a fetch (KIP-227)
FIRST_FLEXIBLE = {
    LIST_OFFSETS: 6,
    METADATA: 9,
    FIND_COORDINATOR: 3,
    INIT_PRODUCER_ID: 2,
    API_VERSIONS: 3,
    CREATE_TOPICS: 5,
    DELETE_TOPICS: 4,
    INCREMENTAL_ALTER_CONFIGS: 1,
    ALTER_PARTITION_REASSIGNMENTS: 0,
    ALTER_CLIENT_QUOTAS: 1,
}
CLIENT_ID = b"bench"
REQUEST_TIMEOUT_MS = 30_000
BATCH_HEAD = Struct(">qiibIhiqqqhii")
_CRC_FROM = 21
_HEAD = Struct(">hhih")
_I32, _I64 = Struct(">i"), Struct(">q")
_OFFSET_MARK = 0x0102_0304_0506_0000  # no other bytes of a request look like this
_FETCHED = Struct(">iiqiqib")  # a partition in a fetch request
_ERROR_IN_ANSWER = 4  # bytes from the index of a partition to its error code in the response

Answer = TypeVar("Answer", bound=Message)


class BadAnswer(AssertionError):
    """A server's answer is an error, is out of order, or cannot be read."""


def varint(value: int) -> bytes:
    """An unsigned varint, as for lengths in flexible versions."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def record_batch(records: int, value_bytes: int, *, now_ms: int | None = None) -> bytes:
    """An uncompressed batch of `records` records without key, each with a value of `value_bytes`."""
    return batch_of([bytes(32 + i % 95 for i in range(value_bytes))] * records, now_ms=now_ms)


def batch_of(values: Sequence[bytes], *, codec: Compression = Compression.NONE, now_ms: int | None = None) -> bytes:
    """A batch of records without key."""
    parts = bytearray()
    for delta, value in enumerate(values):
        body = b"\0\0" + _zigzag(delta) + b"\1" + _zigzag(len(value)) + value + b"\0"
        parts += _zigzag(len(body)) + body
    records = len(values)
    parts = bytearray(compress(codec, bytes(parts)))
    stamp = int(time.time() * 1000) if now_ms is None else now_ms
    length = BATCH_HEAD.size - 12 + len(parts)
    head = bytearray(BATCH_HEAD.pack(0, length, -1, 2, 0, codec, records - 1, stamp, stamp, -1, -1, -1, records))
    head += parts
    Struct(">I").pack_into(head, 17, crc32c(memoryview(head)[_CRC_FROM:]))
    return bytes(head)


def _zigzag(value: int) -> bytes:
    return varint(value << 1)


def produce_frame(
    topic: str, partition: int, batch: bytes, *, acks: int, correlation_id: int = 0, client_id: bytes = CLIENT_ID
) -> bytes:
    name = topic.encode()
    body = b"\0" + acks.to_bytes(2, "big", signed=True) + _I32.pack(REQUEST_TIMEOUT_MS)
    body += b"\2" + varint(len(name) + 1) + name + b"\2" + _I32.pack(partition) + varint(len(batch) + 1) + batch + b"\0\0\0"
    return _frame(PRODUCE, PRODUCE_VERSION, correlation_id, body, flexible=True, client_id=client_id)


def hello_frame() -> bytes:
    """The ApiVersions request, the first one of clients."""
    body = b"\x06bench\x021\0"
    return _frame(API_VERSIONS, 3, 0, body, flexible=True)


def fetch_frame(topic: str, offsets: Mapping[int, int], *, max_bytes: int, partition_max_bytes: int) -> bytes:
    """A fetch without a session, from the given offset of each partition."""
    return fetch_topics_frame({topic: offsets}, max_bytes=max_bytes, partition_max_bytes=partition_max_bytes)


def fetch_topics_frame(
    topics: Mapping[str, Mapping[int, int]], *, max_bytes: int, partition_max_bytes: int, session: tuple[int, int] = NO_SESSION
) -> bytes:
    """As `fetch_frame`, for several topics; with the id and epoch of a session, only for the changed ones."""
    parts = [Struct(">iiiibii").pack(-1, 500, 1, max_bytes, 0, *session), varint(len(topics) + 1)]
    for topic, offsets in topics.items():
        name = topic.encode()
        parts += [varint(len(name) + 1), name, varint(len(offsets) + 1)]
        parts += [_FETCHED.pack(partition, -1, at, -1, -1, partition_max_bytes, 0) for partition, at in offsets.items()]
        parts.append(b"\0")  # no tagged fields
    parts.append(b"\1\1\0")  # no forgotten topics, no rack, no tagged fields
    return _frame(FETCH, FETCH_VERSION, 0, b"".join(parts), flexible=True)


class FetchLine:
    """Fetches of the first partitions of a topic, built once; only the offsets change from one to the next."""

    def __init__(self, topic: str, partitions: int, *, max_bytes: int, partition_max_bytes: int) -> None:
        marks = {partition: _OFFSET_MARK + partition for partition in range(partitions)}
        self._frame = bytearray(fetch_frame(topic, marks, max_bytes=max_bytes, partition_max_bytes=partition_max_bytes))
        self._places = [self._frame.index(_I64.pack(mark)) for mark in marks.values()]

    def frame(self, offsets: Iterable[int]) -> bytearray:
        """The request from these offsets; the next call reuses its memory."""
        for place, offset in zip(self._places, offsets, strict=True):
            _I64.pack_into(self._frame, place, offset)
        return self._frame


def _frame(
    api_key: int, version: int, correlation_id: int, body: bytes, *, flexible: bool, client_id: bytes = CLIENT_ID
) -> bytes:
    head = _HEAD.pack(api_key, version, correlation_id, len(client_id)) + client_id + (b"\0" if flexible else b"")
    return _I32.pack(len(head) + len(body)) + head + body


class AnswerShape:
    """The form of every good answer to one produce request, and a check of many answers together.

    The correlation ids of the requests run from 0 to `cycle` - 1 and begin again, so that the check finds answers out of order.
    """

    def __init__(self, topic: str, cycle: int) -> None:
        name = topic.encode()
        before = 4 + 4 + 1 + 1 + len(varint(len(name) + 1)) + len(name) + 1
        # partition response; no errors, no message, tags; the topic's tags; throttle time and tags
        self.size = before + 30 + 3 + 1 + 5
        self.cycle = cycle
        self._error_at = before + _ERROR_IN_ANSWER
        self._first = _I32.pack(self.size - 4)
        self._alone = self._first + _I32.pack(0)  # start of each response if the cycle is 1
        self._ids = [bytes(_I32.pack(i)[column] for i in range(cycle)) for column in range(4)]

    def check(self, data: memoryview, answers: int, first_id: int) -> None:
        """Raise BadAnswer unless `data` consists of `answers` good answers, and the first has the correlation id `first_id`."""
        size = self.size
        if answers == self.cycle == 1 and bytes(data[:8]) == self._alone and not data[self._error_at] | data[self._error_at + 1]:
            return
        end = answers * size
        columns = [bytes(data[at:end:size]) for at in (0, 1, 2, 3, self._error_at, self._error_at + 1)]
        good = all(columns[i] == self._first[i : i + 1] * answers for i in range(4))
        good = good and not any(columns[4]) and not any(columns[5])
        for column in (2, 3):  # the lower two bytes are enough, because a cycle is shorter than 65,536
            wanted = (self._ids[column][first_id:] + self._ids[column] * (answers // self.cycle + 1))[:answers]
            good = good and bytes(data[4 + column : end : size]) == wanted
        if not good:
            self._explain(data, first_id)

    def _explain(self, data: memoryview, first_id: int) -> None:
        wanted = first_id
        position = 0
        while position + 8 <= len(data):
            (size,) = _I32.unpack_from(data, position)
            (got,) = _I32.unpack_from(data, position + 4)
            error = int.from_bytes(data[position + self._error_at : position + self._error_at + 2], "big", signed=True)
            if size != self.size - 4 or got != wanted or error:
                raise BadAnswer(f"answer of {size} bytes with id {got} (expected {wanted}) and error code {error}")
            wanted = (wanted + 1) % self.cycle
            position += self.size
        raise BadAnswer("answers differ from the expected layout")


class AnswerReader:
    """Counts the good answers from a socket, all with the form of `shape` and a cycle of 1."""

    def __init__(self, line: socket.socket, shape: AnswerShape) -> None:
        self._line, self._shape = line, shape
        self._rest = b""

    def receive(self) -> tuple[int, float]:
        """Receive the available bytes; returns the number of answers that are complete now, and the time. Raises BadAnswer for
        a bad one, or at the end."""
        data = self._rest + self._line.recv(65_536)
        now = time.perf_counter()
        if len(data) == len(self._rest):
            raise BadAnswer("the server closed the connection")
        answers, left = divmod(len(data), self._shape.size)
        whole = len(data) - left
        self._shape.check(memoryview(data)[:whole], answers, 0)
        self._rest = data[whole:]
        return answers, now


def call(
    address: tuple[str, int],
    api_key: int,
    version: int,
    request: Message,
    answer: type[Answer],
    *,
    timeout_s: float = REQUEST_TIMEOUT_MS / 1000,
) -> Answer:
    """Send one request on a connection of its own; returns the answer."""
    with socket.create_connection(address, timeout=timeout_s) as line:
        line.sendall(_frame(api_key, version, 7, bytes(encode(request, version)), flexible=version >= FIRST_FLEXIBLE[api_key]))
        size = _I32.unpack(receive_exactly(line, 4))[0]
        data = receive_exactly(line, size)
    skip = 5 if version >= FIRST_FLEXIBLE[api_key] and api_key != API_VERSIONS else 4
    return decode(answer, version, memoryview(data), skip)


def receive_exactly(line: socket.socket, size: int) -> bytes:
    """The next `size` bytes of a connection; raises BadAnswer if it ends before."""
    data = bytearray()
    while len(data) < size:
        piece = line.recv(size - len(data))
        if not piece:
            raise BadAnswer("the server closed the connection")
        data += piece
    return bytes(data)
