"""A folder that Apache Kafka wrote, taken over: the same records, groups, settings and ids, and not a byte of a log changed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from tools.kafka import KafkaNode

from barnabas.cli.main import run
from barnabas.server.authorization.access_control import STANDARD
from barnabas.testing import Broker

pytestmark = pytest.mark.interop
WAIT_S = 60
GUARDED = {"authorizer.class.name": STANDARD, "super.users": "User:ANONYMOUS"}
ANY_ACL: Any = (ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY)
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def fill(servers: str) -> dict[Any, Any]:
    """Make topics, records of all codecs, transactions and a group; returns what a consumer must see of them."""
    admin = AdminClient({"bootstrap.servers": servers})
    topics = [NewTopic("flights", 3, 1, config={"retention.ms": "-1"}), NewTopic("weather", 1, 1), NewTopic("gone", 1, 1)]
    for future in admin.create_topics(topics).values():
        future.result(WAIT_S)
    for number, codec in enumerate(CODECS):
        producer = Producer({"bootstrap.servers": servers, "compression.type": codec, "enable.idempotence": True})
        for index in range(300):
            text = f"{codec} {index}"
            producer.produce(
                "flights", text, key=str(index), partition=index % 3, timestamp=1_700_000_000_000 + 1000 * number + index
            )
        assert producer.flush(WAIT_S) == 0
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "t"})
    producer.init_transactions(WAIT_S)
    for name in ("kept", "aborted", "kept too"):
        producer.begin_transaction()
        producer.produce("weather", name, timestamp=1_700_000_000_000)
        producer.flush(WAIT_S)
        if name == "aborted":
            producer.abort_transaction(WAIT_S)
        else:
            producer.commit_transaction(WAIT_S)
    admin.delete_topics(["gone"])["gone"].result(WAIT_S)
    where = ["-b", servers]
    assert (
        run(["acl", "add", "--principal", "User:alice", "--topic", "flights", "--operation", "read", "--prefixed", *where]) == 0
    )
    assert run(["quota", "set", "--user", "alice", "producer_byte_rate=1000000", "request_percentage=12.5", *where]) == 0
    scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192)
    (made,) = admin.alter_user_scram_credentials([UserScramCredentialUpsertion("alice", scram, b"geheim")]).values()
    made.result(WAIT_S)
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "readers", "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition("flights", 0, 100), TopicPartition("flights", 1, 7)], asynchronous=False)
    consumer.close()
    return described(servers)


def described(servers: str) -> dict[Any, Any]:
    """The topics as clients see them: records by partition, settings, ids, committed offsets."""
    admin = AdminClient({"bootstrap.servers": servers})
    topics = admin.list_topics(timeout=WAIT_S).topics
    seen: dict[Any, Any] = {"topics": {name: len(topics[name].partitions) for name in ("flights", "weather")}}
    assert "gone" not in topics
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "readers", "enable.auto.commit": False,
                         "auto.offset.reset": "earliest", "isolation.level": "read_uncommitted", "enable.partition.eof": True})  # fmt: skip
    for topic, count in seen["topics"].items():
        for index in range(count):
            consumer.assign([TopicPartition(topic, index, 0)])
            records = []
            while (message := consumer.poll(WAIT_S)) is not None and not message.error():
                records.append((message.offset(), message.timestamp(), message.key(), message.value()))
            seen[topic, index] = records
    committed = consumer.committed([TopicPartition("flights", index) for index in range(3)], WAIT_S)
    seen["committed"] = [place.offset for place in committed]
    resource = ConfigResource(ConfigResource.Type.TOPIC, "flights")
    acls = admin.describe_acls(AclBindingFilter(*ANY_ACL)).result(WAIT_S)
    seen["acls"] = [
        (each.name, each.resource_pattern_type, each.principal, each.operation, each.permission_type) for each in acls
    ]
    describing: Any = admin.describe_user_scram_credentials()
    users = describing.result(WAIT_S)
    seen["users"] = {
        name: [(info.mechanism, info.iterations) for info in each.scram_credential_infos] for name, each in users.items()
    }
    seen["retention"] = admin.describe_configs([resource])[resource].result(WAIT_S)["retention.ms"].value
    consumer.close()
    return seen


def logs_of(folders: list[Path]) -> dict[Path, bytes]:
    return {
        path: path.read_bytes()
        for folder in folders
        for path in folder.rglob("*.log")
        if not path.parent.name.endswith(("__cluster_metadata-0", "-delete"))
    }


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_a_folder_of_kafka_is_served_as_it_was(tmp_path: Path, clean: bool, capfd: pytest.CaptureFixture[str]) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    log_dirs = ",".join(map(str, folders))
    with KafkaNode(
        config={"log.dirs": log_dirs, "offsets.topic.num.partitions": "3", **GUARDED}, heap="512m", data_dir=folders[0]
    ) as node:
        before = fill(node.bootstrap)
        if not clean:
            copies = [Path(shutil.copytree(folder, tmp_path / "killed" / folder.name)) for folder in folders]
    if not clean:
        folders, log_dirs = copies, ",".join(map(str, copies))
    options = [word for folder in folders for word in ("--data-dir", str(folder))]
    logs = logs_of(folders)
    assert run(["broker", "adopt", *options, "--dry-run"]) == 0
    assert not list(tmp_path.rglob("metadata.db"))
    assert run(["broker", "adopt", *options]) == 0
    told = capfd.readouterr()
    assert "retention.ms=-1" in told.out
    assert "also: 1 access control entries, 1 SCRAM users, 2 quotas" in told.out
    assert logs_of(folders) == logs
    config: dict[str, str | int | bool] = {"node.id": 1, "log.dirs": log_dirs, **GUARDED}
    with Broker(config=config, data_dir=folders[0]) as broker:
        assert described(broker.bootstrap_servers) == before
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True})
        producer.produce("weather", "ours")
        assert producer.flush(WAIT_S) == 0
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "readers"})
        consumer.subscribe(["flights"])
        first: dict[int, int] = {}
        while len(first) < 2 and (message := consumer.poll(WAIT_S)) is not None:
            first.setdefault(message.partition() or 0, message.offset() or 0)
        assert {index: offset for index, offset in first.items() if index < 2} == {0: 100, 1: 7}
        consumer.close()
    assert all(path.read_bytes().startswith(data) for path, data in logs.items())
    assert run(["doctor", "check", *options]) == 0, capfd.readouterr().out
    assert run(["broker", "adopt", *options]) == 2
    assert "belongs to barnabas already" in capfd.readouterr().err
