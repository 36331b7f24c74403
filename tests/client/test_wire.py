"""Frames in and out of one connection, without a socket."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas import __version__
from barnabas.client.batches import next_offset, whole_batches
from barnabas.client.config import MAX_RESPONSE_BYTES, ClientConfig, parse_servers
from barnabas.client.errors import UnsupportedRequest
from barnabas.client.wire import Wire, size_of_frame
from barnabas.error_codes import ErrorCode
from barnabas.errors import BarnabasError, Closed, ConfigError, FrameTooLarge, KafkaError, ProtocolError
from barnabas.protocol.codec import decode, encode
from barnabas.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.pipelines.batches import batch


def hello(versions: dict[int, tuple[int, int]], version: int = 4, code: int = 0, correlation_id: int = 0) -> bytes:
    keys = [ApiVersion(api_key=key, min_version=first, max_version=last) for key, (first, last) in versions.items()]
    body = encode(ApiVersionsResponse(error_code=code, api_keys=keys), version)
    return struct.pack(">i", correlation_id) + bytes(body)


def agreed(versions: dict[int, tuple[int, int]]) -> Wire:
    wire = Wire("me")
    wire.send_hello()
    assert wire.receive_hello(hello(versions)) is None
    return wire


def test_brokers_are_told_the_version_of_the_package() -> None:
    assert __version__.encode() in Wire("me").send_hello()


def test_the_newest_common_version_is_spoken() -> None:
    wire = agreed({3: (0, 9)})
    frame = wire.send(MetadataRequest(topics=[]))
    assert struct.unpack(">ihhih", frame[:14]) == (len(frame) - 4, 3, 9, 1, 2)
    assert frame[14:17] == b"me\0"  # client id and no tagged fields: header version 2
    assert decode(MetadataRequest, 9, frame, 17).topics == []
    body = struct.pack(">i", 1) + b"\0" + bytes(encode(MetadataResponse(cluster_id="c"), 9))
    assert wire.receive(body).cluster_id == "c"


def test_old_versions_have_no_tagged_fields_in_their_headers() -> None:
    wire = agreed({3: (0, 4)})
    assert wire.send(MetadataRequest(topics=[]))[14:16] == b"me"
    body = struct.pack(">i", 1) + bytes(encode(MetadataResponse(cluster_id="c"), 4))
    assert wire.receive(body).cluster_id == "c"


def test_a_request_that_the_broker_does_not_know() -> None:
    with pytest.raises(UnsupportedRequest, match="Metadata: the broker does not know it"):
        agreed({}).send(MetadataRequest())
    with pytest.raises(UnsupportedRequest, match="Metadata: the broker speaks versions 90 to 91, we speak 0 to"):
        agreed({3: (90, 91)}).send(MetadataRequest())


def test_an_older_broker_is_asked_for_its_versions_again() -> None:
    wire = Wire("me")
    wire.send_hello()
    again = wire.receive_hello(hello({18: (0, 2)}, version=0, code=ErrorCode.UNSUPPORTED_VERSION))
    assert again is not None
    assert struct.unpack(">h", again[6:8]) == (2,)
    assert wire.receive_hello(hello({3: (0, 1)}, version=2, correlation_id=1)) is None
    assert wire.ready


def test_a_broker_that_refuses_to_talk() -> None:
    wire = Wire("me")
    wire.send_hello()
    with pytest.raises(KafkaError, match="CLUSTER_AUTHORIZATION_FAILED"):
        wire.receive_hello(hello({}, code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))


def test_answers_come_in_the_order_of_the_requests() -> None:
    wire = agreed({3: (0, 9)})
    wire.send(MetadataRequest(topics=[]))
    with pytest.raises(ProtocolError, match="correlation id 9 instead of 1"):
        wire.receive(struct.pack(">i", 9) + b"\0" * 8)


def test_nothing_is_taken_unasked() -> None:
    with pytest.raises(ProtocolError, match="0 requests in flight"):
        agreed({3: (0, 9)}).receive(struct.pack(">i", 2) + b"\0" * 8)


def test_who_broke_the_protocol_is_neither_heard_nor_told_anything_more() -> None:
    wire = agreed({3: (0, 9)})
    wire.send(MetadataRequest(topics=[]))
    wire.send(MetadataRequest(topics=[]))
    with pytest.raises(ProtocolError):
        wire.receive(struct.pack(">i", 9) + b"\0" * 8)
    with pytest.raises(Closed, match="correlation id 9 instead of 1"):
        wire.receive(struct.pack(">i", 2) + b"\0" * 8)
    with pytest.raises(Closed):
        wire.send(MetadataRequest(topics=[]))


@given(st.binary(max_size=80))
def test_bytes_that_are_no_answer_end_in_an_error_of_ours(body: bytes) -> None:
    wire = agreed({3: (0, 12)})
    wire.send(MetadataRequest(topics=[]))
    left: Exception | None = None
    try:
        wire.receive(struct.pack(">i", 1) + body)
    except (BarnabasError, IndexError, ValueError) as error:  # the last two come from the header's tagged fields
        left = error
    assert left is None or isinstance(left, BarnabasError)


def test_frames_are_measured_before_memory_is_taken() -> None:
    assert size_of_frame(struct.pack(">i", MAX_RESPONSE_BYTES)) == MAX_RESPONSE_BYTES
    for size in (-1, MAX_RESPONSE_BYTES + 1):
        with pytest.raises(FrameTooLarge):
            size_of_frame(struct.pack(">i", size))


def test_batches_are_walked_up_to_the_last_whole_one() -> None:
    data = batch(5, [(b"k", b"v")] * 3) + batch(8, [(None, b"w")] * 2)
    assert [base for _, _, base in whole_batches(data)] == [5, 8]
    assert next_offset(data, 0) == 10
    assert next_offset(data[:-1], 0) == 8
    assert next_offset(data[:30], 5) == 5


@pytest.mark.parametrize(
    ("text", "servers"),
    [
        ("a:1", (("a", 1),)),
        (" a:1 , b.c:65535,", (("a", 1), ("b.c", 65535))),
        ("[::1]:9092", (("::1", 9092),)),
        ("PLAINTEXT://h:9", (("h", 9),)),
    ],
)
def test_bootstrap_servers(text: str, servers: tuple[tuple[str, int], ...]) -> None:
    assert parse_servers(text) == servers


def test_no_step_of_an_operation_waits_longer_than_the_whole() -> None:
    config = ClientConfig.from_options({"bootstrap.servers": "h:1", "default.api.timeout.ms": "2000"})
    assert (config.request_timeout_ms, config.socket_connection_setup_timeout_ms) == (2_000, 2_000)
    config = ClientConfig.from_options({"bootstrap.servers": "h:1", "default.api.timeout.ms": "0"})
    assert (config.request_timeout_ms, config.default_api_timeout_ms) == (1, 0)


@pytest.mark.parametrize(
    "options",
    [
        {"bootstrap.servers": ""},
        {"bootstrap.servers": "host"},
        {"bootstrap.servers": "host:0"},
        {"bootstrap.servers": "h:1", "request.timeout.ms": "soon"},
        {"bootstrap.servers": "h:1", "max.partition.fetch.bytes": "0"},
        {"bootstrap.servers": "h:1", "isolation.level": "serializable"},
        {"bootstrap.servers": "h:1", "security.protocol": "TLS"},
    ],
)
def test_refused_settings_are_named(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        ClientConfig.from_options(options)
    assert caught.value.key in options
