"""Hostile peers at a real broker: their requests cost them their connection or get an error, and harm no other client."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from barnabas import limits
from barnabas.error_codes import ErrorCode
from barnabas.protocol.messages.alter_client_quotas import AlterClientQuotasResponse
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.protocol.records.batch import Record, build_batch
from barnabas.protocol.records.batch_header import HEADER_SIZE, read_header
from barnabas.protocol.records.compression import Compression, compress
from barnabas.protocol.records.record import assemble
from barnabas.protocol.request_headers import write_request_header
from barnabas.testing import Broker
from tests.server.in_process import running
from tests.server.quotas import ALTER, Client, quota_request
from tests.server.test_limits import METADATA, resident_mb, serves
from tests.server.wire import NOW_MS, SIZE, Line, batch_of, create_topic, framed

CREATE_TOPICS, JOIN_GROUP, OFFSET_COMMIT, API_VERSIONS, INIT_PRODUCER_ID = (19, 7), (11, 7), (8, 8), (18, 3), (22, 4)
FETCH = (1, 12)
BATCH = batch_of(10)
SASL = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "inter_broker_listener_name": "SASL_PLAINTEXT",
    "sasl_enabled_mechanisms": "PLAIN",
    "sasl_jaas_config": 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="geheim";',
}
ODD_NAMES = ("../../escaped", "..", ".", "a/b", "a\0b", "a\nb", "", "x" * 250, "ä", "a b", "C:\\x", "%2e%2e%2f")
BOMB_BYTES = limits.MAX_DECOMPRESSED_BATCH_BYTES + 10_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile") / "data"


@pytest.fixture(scope="module")
def broker(folder: Path) -> Iterator[Broker]:
    with Broker(data_dir=folder) as broker:
        yield broker


def raw(broker: Broker, api: tuple[int, int], body: bytes) -> Line:
    """A connection on which a request of these bytes was sent."""
    line = Line(broker)
    frame = write_request_header(*api, 0, "hostile") + body
    line.socket.sendall(SIZE.pack(len(frame)) + frame)
    return line


def create(broker: Broker, names: Sequence[str], partitions: int = 1, **configs: str) -> list[int]:
    topics = [CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names]
    with Line(broker) as line:
        answer = line.ask(CREATE_TOPICS, CreateTopicsRequest(topics=topics, timeout_ms=10_000), CreateTopicsResponse)
    return [topic.error_code for topic in answer.topics]


@pytest.mark.parametrize(
    ("api", "body"),
    [
        ((3, 1), struct.pack(">i", 2**31 - 1)),
        ((3, 1), struct.pack(">i", limits.MAX_ARRAY_LENGTH + 1) + b"\0\1x" * 10),
        ((3, 9), b"\xff\xff\xff\xff\x0f"),
        ((18, 3), b"\2a\2b" + b"\xff\xff\xff\xff\x0f"),
    ],
    ids=["array of 2^31", "array past the limit", "compact array", "tagged fields without number"],
)
def test_lengths_that_cannot_be_close_the_connection_before_anything_is_made(
    broker: Broker, api: tuple[int, int], body: bytes
) -> None:
    before = resident_mb(broker)
    with raw(broker, api, body) as line:
        assert line.is_closed()
    assert resident_mb(broker) - before < 10
    assert serves(broker)


def test_an_array_that_is_there_but_too_long_is_refused(broker: Broker) -> None:
    count = limits.MAX_ARRAY_LENGTH + 1
    with raw(broker, (3, 1), struct.pack(">i", count) + b"\0\1x" * count) as line:
        assert line.is_closed()
    assert serves(broker)


def test_tagged_fields_beyond_the_limit_are_refused(broker: Broker) -> None:
    def tagged(count: int) -> bytes:
        tags = b"".join(_varint(100 + n) + b"\0" for n in range(count))
        return b"\2a\2b" + _varint(count) + tags

    with raw(broker, API_VERSIONS, tagged(limits.MAX_TAGGED_FIELDS)) as line:
        assert line.receive()
    with raw(broker, API_VERSIONS, tagged(limits.MAX_TAGGED_FIELDS + 1)) as line:
        assert line.is_closed()


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.ZSTD])  # only these codecs compress it below max.message.bytes
def test_a_batch_that_unfolds_past_the_limit_is_refused_before_it_does(broker: Broker, codec: Compression) -> None:
    topic = f"bomb-{codec.name.lower()}"
    create_topic(broker, topic)
    bomb = build_batch([Record(0, NOW_MS, None, bytes(BOMB_BYTES), ())], compression=codec)
    before = resident_mb(broker)
    with Client(broker, "bomber") as line:
        (answer,) = line.produce(topic, bomb).responses[0].partition_responses
    assert answer.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert resident_mb(broker) - before < limits.MAX_DECOMPRESSED_BATCH_BYTES / 1e6
    assert serves(broker)


@pytest.mark.parametrize(
    ("count", "code"),
    [(limits.MAX_BATCH_RECORDS + 1, ErrorCode.MESSAGE_TOO_LARGE), (limits.MAX_RECORDS_ONE_BY_ONE + 1, ErrorCode.INVALID_RECORD)],
)
def test_tiny_records_without_number_in_one_batch_are_refused_at_once(broker: Broker, count: int, code: ErrorCode) -> None:
    """Each of them is at offset 0, which is a fault that takes long to be worded for all."""
    topic = f"tiny-{count}"
    create_topic(broker, topic)
    whole = build_batch([(None, b"")], timestamp_ms=NOW_MS)
    header = read_header(whole)._replace(attributes=Compression.GZIP, records_count=count, last_offset_delta=count - 1)
    body = compress(Compression.GZIP, bytes(whole[HEADER_SIZE:]) * count)
    before = resident_mb(broker)
    with Client(broker, "bomber") as line:
        (answer,) = line.produce(topic, assemble(header, body)).responses[0].partition_responses
    assert answer.error_code == code
    assert not answer.record_errors
    assert resident_mb(broker) - before < 50


def files_beside(folder: Path) -> set[Path]:
    """Everything in the folder above except for this one, in which the broker goes on writing."""
    return {path for beside in folder.parent.iterdir() if beside != folder for path in (beside, *beside.rglob("*"))}


def test_no_name_leads_out_of_the_data_folder(broker: Broker, folder: Path) -> None:
    outside = files_beside(folder)
    assert all(create(broker, [name])[0] == ErrorCode.INVALID_TOPIC_EXCEPTION for name in ODD_NAMES)
    with Line(broker) as line:
        topics = [MetadataRequestTopic(name=name) for name in ODD_NAMES]
        answer = line.ask(METADATA, MetadataRequest(topics=topics, allow_auto_topic_creation=True), MetadataResponse)
        assert {topic.error_code for topic in answer.topics} == {ErrorCode.INVALID_TOPIC_EXCEPTION}
        for name in filter(None, ODD_NAMES):
            topic = OffsetCommitRequestTopic(
                name="t",
                partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata=name)],
            )
            line.ask(OFFSET_COMMIT, OffsetCommitRequest(group_id=name, topics=[topic]), OffsetCommitResponse)
            request = InitProducerIdRequest(
                transactional_id=name, transaction_timeout_ms=1_000, producer_id=-1, producer_epoch=-1
            )
            line.ask(INIT_PRODUCER_ID, request, InitProducerIdResponse)
            quota = quota_request({"user": name, "client_id": name}, request_percentage=50.0)
            assert line.ask(ALTER, quota, AlterClientQuotasResponse).entries[0].error_code == 0
    assert files_beside(folder) == outside
    broker.stop()
    broker.start()
    assert serves(broker)


def test_partitions_without_number_are_refused(broker: Broker) -> None:
    assert create(broker, ["many"], limits.MAX_PARTITIONS_PER_REQUEST + 1) == [ErrorCode.POLICY_VIOLATION]
    assert create(broker, ["max"], 2**31 - 1) == [ErrorCode.POLICY_VIOLATION]
    assert serves(broker)


def test_groups_without_number_cost_little(broker: Broker) -> None:
    before = resident_mb(broker)
    with Line(broker) as line:
        for number in range(2_000):
            join = joining(f"group-{number}")
            assert line.ask(JOIN_GROUP, join, JoinGroupResponse).error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert resident_mb(broker) - before < 40
    assert serves(broker)


def joining(group: str) -> JoinGroupRequest:
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=protocols,
    )


def test_tiny_requests_without_number_are_answered_and_leave_nothing(broker: Broker) -> None:
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    frames = framed(API_VERSIONS, request) * 1_000
    with Line(broker) as line:
        line.ask(API_VERSIONS, request, ApiVersionsResponse)
        before = resident_mb(broker)
        for _ in range(10):
            line.socket.sendall(frames)
            for _ in range(1_000):
                line.receive()
        assert resident_mb(broker) - before < 10


def test_a_request_that_never_ends_does_not_keep_its_connection_open() -> None:
    with Broker({"connections.max.idle.ms": 500}) as broker, Line(broker) as line:
        line.socket.sendall(SIZE.pack(10_000))
        line.socket.settimeout(0.05)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                line.socket.sendall(b"\0")  # one byte every 50 ms
                assert line.socket.recv(1) == b""
            except TimeoutError:
                continue
            except ConnectionError:
                break
            else:
                break
        assert time.monotonic() < deadline
        assert "reason=idle" in broker.log


def test_one_that_resets_its_connections_leaves_nothing(broker: Broker) -> None:
    for _ in range(200):
        line = Line(broker)
        line.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        line.socket.sendall(framed(API_VERSIONS, ApiVersionsRequest(client_software_name="a", client_software_version="1"))[:20])
        line.socket.close()
    assert serves(broker)
    assert "Traceback" not in broker.log


def test_more_kinds_of_requests_than_a_connection_remembers_are_answered_alike(broker: Broker) -> None:
    count = limits.MAX_REPEATED_REQUESTS + 5
    assert create(broker, ["kinds"], count) == [0]
    names = [
        "",
        "i",
        "in" * 40,
        "x" * (limits.MAX_REPEATED_BYTES + 1),
        *("y" * (200 + n) for n in range(limits.MAX_REPEATED_LAYOUTS)),
    ]
    with Client(broker, "kinds") as line:
        for partition in [*range(count)] * 3:
            (answer,) = line.produce("kinds", BATCH, partition=partition).responses[0].partition_responses
            assert (answer.index, answer.error_code) == (partition, 0)
        for name in names * 3:
            line.client_id = name
            assert line.produce("kinds", BATCH).responses[0].partition_responses[0].error_code == 0
        line.client_id = "reader"
        wanted = [
            FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=2**20, current_leader_epoch=-1)
            for number in range(count)
        ]
        request = FetchRequest(
            max_wait_ms=0, min_bytes=1, max_bytes=2**26, session_epoch=-1, topics=[FetchTopic(topic="kinds", partitions=wanted)]
        )
        (topic,) = line.ask(FETCH, request, FetchResponse).responses  # more buffers than one write takes
    assert len(topic.partitions) == count > limits.MAX_BUFFERS_PER_WRITE
    assert all(len(partition.records or b"") >= 3 * len(BATCH) for partition in topic.partitions)


async def test_a_log_in_that_never_ends_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOGIN_TIMEOUT_S", 0.2)
    async with running([tmp_path], **SASL) as client:

        def dawdle() -> bool:
            line = client.line
            line.socket.sendall(SIZE.pack(1_000) + b"\0")
            return line.is_closed()

        assert await client.in_thread(dawdle)
