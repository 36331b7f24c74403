"""Bytes that are no request, and the order of answers."""

from __future__ import annotations

import struct

from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from tests.differential.batch import Batch
from tests.differential.script.common import fetch, produce
from tests.differential.talk import Talk
from tests.differential.wire import KEYS, ConnectionEnded, framed, request_body, request_header

METADATA = KEYS["Metadata"]
VALID = request_header(METADATA, 1, 1, flexible=False) + struct.pack(">i", 0)
FLEXIBLE = request_header(METADATA, 12, 1, flexible=True) + request_body(MetadataRequest(topics=[]), 12)


def _unknown(api_key: int, version: int, *, flexible: bool = False) -> bytes:
    return request_header(api_key, version, 1, flexible=flexible) + b"\0" * 20


CASES = {
    "valid": framed(VALID),
    "valid, flexible": framed(FLEXIBLE),
    "valid, without a client id": framed(struct.pack(">hhih", METADATA, 1, 1, -1) + struct.pack(">i", 0)),
    "valid, with an empty client id": framed(struct.pack(">hhih", METADATA, 1, 1, 0) + struct.pack(">i", 0)),
    "bytes behind the request": framed(VALID + b"\0\0\0"),
    "bytes behind the flexible request": framed(FLEXIBLE + b"\0\0\0"),
    "unknown key 999": framed(_unknown(999, 0)),
    "unknown key -1": framed(_unknown(-1, 0)),
    "Metadata in version 99": framed(_unknown(METADATA, 99, flexible=True)),
    "Metadata in version -1": framed(_unknown(METADATA, -1)),
    "Produce in version 2": framed(request_header(0, 2, 1, flexible=False) + struct.pack(">hii", 1, 0, 0)),
    "Fetch in version 3": framed(_unknown(1, 3)),
    "Fetch in version 19": framed(_unknown(1, 19, flexible=True)),
    "a key of brokers only": framed(_unknown(4, 0)),
    "cut in the header": framed(VALID[:5]),
    "cut in the client id": framed(VALID[:14]),
    "cut in the body": framed(VALID[:-2]),
    "empty frame": framed(b""),
    "negative size": struct.pack(">i", -1) + VALID,
    "lowest size": struct.pack(">i", -(2**31)) + VALID,
    "size over 100 MiB": struct.pack(">i", 104_857_601) + VALID,
    "largest size": struct.pack(">i", 2**31 - 1) + VALID,
    "array of a billion": framed(request_header(METADATA, 1, 1, flexible=False) + struct.pack(">i", 1_000_000_000)),
    "array of minus two": framed(request_header(METADATA, 1, 1, flexible=False) + struct.pack(">i", -2)),
    "string past the end": framed(request_header(METADATA, 1, 1, flexible=False) + struct.pack(">ih", 1, 3000)),
    "string of minus two": framed(request_header(METADATA, 1, 1, flexible=False) + struct.pack(">ih", 1, -2)),
    "client id past the end": framed(struct.pack(">hhih", METADATA, 1, 1, 3000) + b"abc"),
    "client id of minus two": framed(struct.pack(">hhih", METADATA, 1, 1, -2) + struct.pack(">i", 0)),
    "not UTF-8": framed(request_header(METADATA, 1, 1, flexible=False) + struct.pack(">ih", 1, 2) + b"\xff\xfe"),
    "an endless varint": framed(request_header(METADATA, 12, 1, flexible=True) + b"\xff" * 12),
    "tags without end": framed(request_header(METADATA, 12, 1, flexible=False) + b"\xff\xff\xff\xff\x0f"),
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TLS": bytes.fromhex("16030100c8010000c40303") + bytes(200),
    "garbage": bytes(range(255, 0, -1)),
}


def frames(talk: Talk) -> None:
    """Whether an answer, or the end of the connection, comes of it; other connections never suffer."""
    for case, data in CASES.items():
        line = talk.connect()
        line.socket.sendall(data)
        try:
            frame = line.receive_frame()
        except ConnectionEnded:
            talk.note(case, "<connection closed>")
        else:
            talk.note(case, {"correlation_id": struct.unpack_from(">i", frame)[0]})
        talk.ask(f"another connection after: {case}", MetadataRequest(topics=[]), 1)


def a_valid_request_behind_a_bad_one(talk: Talk) -> None:
    """The answer to what came before a bad frame may be lost; nothing after it is answered."""
    line = talk.connect()
    line.send(MetadataRequest(topics=[]), 1)
    talk.hear("before", 1, on=line)
    line.socket.sendall(framed(VALID[:5]) + framed(VALID))
    try:
        line.receive_frame()
    except ConnectionEnded:
        talk.note("after", "<connection closed>")
    else:
        talk.note("after", "an answer")


def a_frame_in_pieces(talk: Talk) -> None:
    line = talk.connect()
    for byte in framed(VALID):
        line.socket.sendall(bytes([byte]))
    talk.note("one byte at a time", struct.unpack_from(">i", line.receive_frame())[0])
    line.socket.sendall(framed(VALID) * 3)
    talk.note("three at once", [struct.unpack_from(">i", line.receive_frame())[0] for _ in range(3)])


def pipelined(talk: Talk) -> None:
    """Answers come in the order of the requests, whatever takes longer."""
    topic = talk.create("pipelined")
    line = talk.connect()
    line.send(fetch(topic, max_wait_ms=300, min_bytes=1), 11)
    line.send(MetadataRequest(topics=[]), 1)
    line.send(ApiVersionsRequest(), 0)
    line.send(fetch(topic, max_wait_ms=0), 11)
    talk.hear("a fetch that waits", 11, on=line)
    talk.hear("metadata behind it", 1, on=line)
    talk.note("ApiVersions behind that", type(line.receive()).__name__)
    talk.hear("a fetch that does not wait", 11, on=line)
    for _ in range(50):
        line.send(produce(topic, Batch()), 9)
    answers = [line.receive() for _ in range(50)]
    offsets = [answer.responses[0].partition_responses[0].base_offset for answer in answers]
    talk.note("offsets of fifty pipelined requests", offsets == list(range(50)))
    for index in range(20):
        line.send(produce(topic, Batch(), acks=index % 2), 9)
        if not index % 2:
            line.forget_last()
    answers = [line.receive() for _ in range(10)]
    offsets = [answer.responses[0].partition_responses[0].base_offset for answer in answers]
    talk.note("offsets with acks 0 and 1 in turn", offsets == list(range(51, 70, 2)))
