"""The audit log: what is taken, how much of it, and where it goes."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas import limits
from barnabas.config.broker import BrokerConfig
from barnabas.errors import ConfigError, ErrorCode
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.records.batch import build_batch
from barnabas.security.acls import AUDIT_TOPIC, CLUSTER_NAME, Operation, ResourceType
from barnabas.security.authorizer import Session
from barnabas.server.authorization import audit as module
from barnabas.server.authorization.access_control import STANDARD, AccessControl
from barnabas.server.authorization.audit import AuditLog
from tests.server.authorization.people import ALICE, acl, guarded
from tests.server.in_process import Client
from tests.server.wire import CLIENT_ID, framed
from tests.waiting import until

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def entries(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


async def test_what_is_refused_and_what_is_changed_is_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    async with guarded(tmp_path / "data", audit_log_file=str(path), audit_log_data_sample_rate="0") as people:
        await people.admin.create(name="made")
        alice = await people.connect(ALICE)
        await alice.produce(b"v", name="made")
        await people.allow(acl(ResourceType.TOPIC, "made", Operation.WRITE))
        await alice.produce(b"v", name="made")
        await people.admin.delete(name="made")
        await until(lambda: any(entry["operation"] == "DELETE" for entry in entries(path)))
    fields = ("principal", "api", "operation", "resource", "name", "allowed")
    told = [tuple(entry[field] for field in fields) for entry in entries(path)]
    assert told == [
        ("User:admin", "CreateTopics", "CREATE", "TOPIC", "made", True),
        (ALICE, "Produce", "WRITE", "TOPIC", "made", False),
        ("User:admin", "CreateAcls", "ALTER", "CLUSTER", "kafka-cluster", True),
        ("User:admin", "DeleteTopics", "DELETE", "TOPIC", "made", True),
    ]
    assert {entry["host"] for entry in entries(path)} == {"127.0.0.1"}


async def test_it_goes_to_a_topic(tmp_path: Path) -> None:
    async with guarded(tmp_path, audit_log_topic_enable="true", audit_log_data_sample_rate="0") as people:
        await people.admin.create(name="made")
        broker = people.admin.broker
        await until(lambda: any(p.topic == AUDIT_TOPIC and p.log.log_end_offset for p in broker.partitions))
        (index,) = [p.index for p in broker.partitions if p.topic == AUDIT_TOPIC and p.log.log_end_offset]
        code, values = await people.admin.fetch(index, name=AUDIT_TOPIC)
        assert code == 0
        assert [(entry["principal"], entry["name"]) for entry in map(json.loads, filter(None, values))] == [
            ("User:admin", "made")
        ]
        alice = await people.connect(ALICE)
        assert (await alice.fetch(index, name=AUDIT_TOPIC))[0] != 0  # alice needs READ on the audit topic


async def test_who_may_do_everything_with_topics_leaves_it_alone(tmp_path: Path) -> None:
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    async with guarded(tmp_path, audit_log_topic_enable="true") as people:
        everything = [acl(ResourceType.TOPIC, "*", Operation.ALL), acl(ResourceType.CLUSTER, CLUSTER_NAME, Operation.DELETE)]
        await people.allow(*everything)
        broker = people.admin.broker
        await until(lambda: any(p.topic == AUDIT_TOPIC and p.log.log_end_offset for p in broker.partitions))
        alice = await people.connect(ALICE)
        assert await alice.produce(b"{}", name=AUDIT_TOPIC) == refused
        assert await delete(alice, AUDIT_TOPIC, "absent") == {AUDIT_TOPIC: refused, "absent": UNKNOWN}
        partitions = [DeleteRecordsPartition(partition_index=0, offset=-1)]
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=AUDIT_TOPIC, partitions=partitions)], timeout_ms=1_000)
        answer = await alice.ask((21, 2), request, DeleteRecordsResponse)
        assert [p.error_code for topic in answer.topics for p in topic.partitions] == [refused]
        assert (await alice.fetch(name=AUDIT_TOPIC))[0] == 0
        answer = await alice.ask((3, 9), MetadataRequest(topics=None), MetadataResponse)
        assert [topic.name for topic in answer.topics if topic.is_internal] == [AUDIT_TOPIC]
        await people.allow(acl(ResourceType.CLUSTER, CLUSTER_NAME, Operation.CLUSTER_ACTION))
        assert await delete(alice, AUDIT_TOPIC) == {AUDIT_TOPIC: 0}


async def test_who_may_make_all_topics_does_not_make_this_one_first(tmp_path: Path) -> None:
    async with guarded(tmp_path) as people:
        rights = [acl(ResourceType.TOPIC, "*", Operation.ALL), acl(ResourceType.CLUSTER, CLUSTER_NAME, Operation.CREATE)]
        await people.allow(*rights)
        alice = await people.connect(ALICE)
        assert await alice.create(name="another") == 0
        assert await alice.create(name=AUDIT_TOPIC, retention_ms="1") == ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def test_names_that_take_much_room_do_not_make_a_batch_that_the_topic_refuses(tmp_path: Path) -> None:
    """Otherwise a user who chooses such names would leave no trace of the other attempts in the same moment."""
    async with guarded(tmp_path, audit_log_topic_enable="true", message_max_bytes="20000") as people:
        alice = await people.connect(ALICE)
        names = [f"{number}-" + chr(0x1F600) * limits.MAX_AUDIT_TEXT for number in range(20)]
        codes = await delete(alice, *names)
        broker = people.admin.broker
        assert set(codes.values()) == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
        await until(lambda: sum(p.log.log_end_offset for p in broker.partitions if p.topic == AUDIT_TOPIC) == len(names))


async def test_who_says_to_be_a_broker_and_is_none_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    async with guarded(tmp_path / "data", audit_log_file=str(path), audit_log_data_sample_rate="0") as people:
        await people.admin.create(name=AUDIT_TOPIC)
        alice = await people.connect(ALICE)
        wanted = FetchTopic(topic=AUDIT_TOPIC, partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)])
        request = FetchRequest(replica_id=2, max_wait_ms=0, min_bytes=0, max_bytes=1, topics=[wanted])
        answer = await alice.ask((1, 11), request, FetchResponse)
        assert answer.responses[0].partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        await until(lambda: any(entry["api"] == "Fetch" for entry in entries(path)))
    told = [(entry["principal"], entry["operation"], entry["allowed"]) for entry in entries(path) if entry["api"] == "Fetch"]
    assert told == [(ALICE, "CLUSTER_ACTION", False)]


async def delete(client: Client, *names: str) -> dict[str, int]:
    request = DeleteTopicsRequest(topic_names=list(names), timeout_ms=10_000)
    answer = await client.ask((20, 4), request, DeleteTopicsResponse)
    return {topic.name: topic.error_code for topic in answer.responses}


@pytest.mark.parametrize(("rate", "expected"), [("1", 30), ("0.25", 7), ("0", 0)])
async def test_repeated_requests_are_sampled_too(tmp_path: Path, rate: str, expected: int) -> None:
    """Ten of them one by one, and twenty that arrive together."""
    path = tmp_path / "audit.log"
    async with guarded(tmp_path / "data", audit_log_file=str(path), audit_log_data_sample_rate=rate) as people:
        await people.admin.create()
        await people.allow(acl(ResourceType.TOPIC, "t", Operation.WRITE))
        alice = await people.connect(ALICE)
        assert [await alice.produce(b"v") for _ in range(10)] == [0] * 10
        data = PartitionProduceData(index=0, records=bytes(build_batch([(None, b"v")], timestamp_ms=1)))
        request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(name="t", partition_data=[data])])

        def send() -> None:
            alice.line.socket.sendall(framed((0, 8), request) * 20)
            for _ in range(20):
                alice.line.receive()

        await alice.in_thread(send)
        assert (await alice.fetch())[0] == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    fields = ("principal", "client_id", "name", "allowed")
    told = {
        api: [tuple(map(entry.get, fields)) for entry in entries(path) if entry["api"] == api] for api in ("Produce", "Fetch")
    }
    assert told == {"Produce": [(ALICE, CLIENT_ID, "t", True)] * expected, "Fetch": [(ALICE, CLIENT_ID, "t", False)]}


class Written:
    """An audit log without a broker, whose entries stay where they are put."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, rate: float) -> None:
        config = SimpleNamespace(
            audit_log_data_sample_rate=rate,
            audit_log_file=None,
            audit_log_topic_enable=False,
            broker_id=1,
            message_max_bytes=1_000_000,
            request_timeout_ms=1,
        )
        loop = SimpleNamespace(call_later=lambda *_: SimpleNamespace(cancel=lambda: None))
        broker = SimpleNamespace(config=config, clock=SimpleNamespace(now_ms=lambda: 0), loop=loop)
        self.audit = AuditLog(cast(Any, broker))
        self.lines: list[dict[str, Any]] = []

        self.sizes: list[int] = []

        async def write(lines: list[bytes]) -> None:
            self.sizes.append(len(lines))
            self.lines += map(json.loads, lines)

        monkeypatch.setattr(self.audit, "_write", write)

    def note(self, operation: Operation, *, allowed: bool = True, name: str = "t") -> None:
        self.audit.note(Session(ALICE, "10.0.0.1"), (3, "client"), (operation, ResourceType.TOPIC, name), allowed)


async def test_a_share_of_what_happens_all_the_time_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    written = Written(monkeypatch, 0.25)
    for _ in range(100):
        written.note(Operation.READ)
        written.note(Operation.READ, allowed=False)
        written.note(Operation.ALTER)
    await written.audit.close()
    found = [(line["operation"], line["allowed"]) for line in written.lines]
    assert [found.count(each) for each in (("READ", True), ("READ", False), ("ALTER", True))] == [25, 100, 100]


async def test_what_is_too_much_is_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_AUDIT_ENTRIES", 10)
    written = Written(monkeypatch, 1.0)
    for _ in range(20):
        written.note(Operation.READ, allowed=False)
    for _ in range(20):
        written.note(Operation.ALTER)
    await written.audit.close()
    operations = [line.get("operation") for line in written.lines]
    assert (operations.count("READ"), operations.count("ALTER")) == (5, 5)
    assert [line["dropped"] for line in written.lines if "dropped" in line] == [30]


async def test_so_many_entries_are_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_AUDIT_BATCH", 4)
    written = Written(monkeypatch, 1.0)
    for _ in range(10):
        written.note(Operation.ALTER)
    await written.audit.close()
    assert written.sizes == [4, 4, 2]


async def test_long_names_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    written = Written(monkeypatch, 1.0)
    written.note(Operation.ALTER, name="n" * 30_000)
    await written.audit.close()
    assert len(written.lines[0]["name"]) == limits.MAX_AUDIT_TEXT + 1


@pytest.mark.parametrize(
    "properties",
    [
        {"audit.log.file": "audit.log"},
        {"audit.log.topic.enable": "true"},
        {"authorizer.class.name": "org.example.Other"},
        {"authorizer.class.name": STANDARD, "super.users": "User:admin;alice"},
    ],
)
def test_settings_that_do_not_do_are_refused(properties: dict[str, str]) -> None:
    config, _ = BrokerConfig.from_properties({"log.dirs": "/nowhere", **properties})
    with pytest.raises(ConfigError):
        AccessControl.of(config)


def test_a_file_that_cannot_be_written_is_told_and_stops_nobody(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        module._append(tmp_path / "missing" / "audit", [b"{}"])
