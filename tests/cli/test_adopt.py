"""`barnabas broker adopt` on a folder made here as Apache Kafka leaves one; `tests/interop/test_adopt.py` takes a real one."""

from __future__ import annotations

import struct
from base64 import b64encode
from pathlib import Path
from uuid import UUID

import pytest

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.errors import LoginFailed
from barnabas.cluster.offline.kraft.metadata_log import KraftMetadata
from barnabas.cluster.store.embedded import EmbeddedStore
from barnabas.cluster.store.interface import StoreUnavailable
from barnabas.errors import KafkaError
from barnabas.protocol.records.batch_header import split_batches
from barnabas.protocol.records.record import build_batch
from barnabas.security.scram import credential_of
from barnabas.security.tokens import secret_of
from barnabas.server.authorization.access_control import STANDARD
from barnabas.storage import checkpoints
from barnabas.storage.files import OsFiles
from barnabas.testing import Broker
from tests.cli.conftest import Command
from tests.locks import held_by_another_process

FLIGHTS, WEATHER, GONE = (UUID(int=number) for number in (7, 8, 9))
FIRST = "0" * 20
MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
NODE, CLUSTER = 5, "YmFybmFiYXMtb3JhY2xlIQ"
NOW = 1_700_000_000_000


def text(value: str) -> bytes:
    return bytes([len(value) + 1]) + value.encode()


def topic(name: str, topic_id: UUID) -> bytes:
    return b"\1\2\0" + text(name) + topic_id.bytes + b"\0"


def partition(topic_id: UUID, index: int, epoch: int, *replicas: int) -> bytes:
    nodes = bytes([len(replicas) + 1]) + b"".join(struct.pack(">i", node) for node in replicas)
    numbers = struct.pack(">iii", replicas[0], epoch, 0)
    return b"\1\3\1" + struct.pack(">i", index) + topic_id.bytes + nodes + nodes + b"\1\1" + numbers + b"\1" + b"\0"


def new_leader(topic_id: UUID, index: int, leader: int) -> bytes:
    return b"\1\5\0" + struct.pack(">i", index) + topic_id.bytes + b"\1\1\4" + struct.pack(">i", leader)


def setting(kind: int, name: str, key: str, value: str | None) -> bytes:
    return b"\1\4\0" + bytes([kind]) + text(name) + text(key) + (b"\0" if value is None else text(value)) + b"\0"


def removal(topic_id: UUID) -> bytes:
    return b"\1\x09\0" + topic_id.bytes + b"\0"


def producer_ids(following: int) -> bytes:
    return b"\1\x0f\0" + struct.pack(">iqq", NODE, 1, following) + b"\0"


def scram_user(name: str, mechanism: int, salt: bytes) -> bytes:
    kept = credential_of({1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}[mechanism], "geheim", salt, 4096)
    parts = b"".join(bytes([len(part) + 1]) + part for part in (kept.salt, kept.stored_key, kept.server_key))
    return b"\1\x0b\0" + text(name) + bytes([mechanism]) + parts + struct.pack(">i", kept.iterations) + b"\0"


def acl(number: int, operation: int, principal: str) -> bytes:
    resource = b"\2" + text("flights") + b"\3"
    return b"\1\x12\0" + UUID(int=number).bytes + resource + text(principal) + text("*") + bytes([operation, 3]) + b"\0"


def quota(user: str | None, key: str, value: float, *, removes: bool = False) -> bytes:
    entity = b"\2" + text("user") + (b"\0" if user is None else text(user)) + b"\0"
    return b"\1\x0e\0" + entity + text(key) + struct.pack(">d?", value, removes) + b"\0"


def token(token_id: str, ends_ms: int) -> bytes:
    people = text("User:alice") + text("User:alice") + b"\2" + text("User:bob")
    return b"\1\x0a\0" + people + struct.pack(">qqq", NOW, ends_ms, ends_ms) + text(token_id) + b"\0"


SNAPSHOT = [topic("flights", FLIGHTS), partition(FLIGHTS, 0, 3, NODE), setting(2, "flights", "retention.ms", "1")]
RECORDS = [
    *SNAPSHOT,
    partition(FLIGHTS, 1, 0, NODE),
    setting(2, "flights", "retention.ms", "-1"),
    setting(2, "flights", "no.such.key", "1"),
    setting(4, "", "log.retention.ms", "77"),
    new_leader(FLIGHTS, 0, NODE),
    topic("gone", GONE),
    partition(GONE, 0, 0, NODE),
    removal(GONE),
    producer_ids(4000),
    scram_user("alice", 2, b"salt"),
    scram_user("bob", 1, b"salt"),
    b"\1\x16\0" + text("bob") + b"\1\0",
    acl(1, 3, "User:alice"),
    acl(2, 4, "User:alice"),
    acl(3, 100, "User:alice"),
    b"\1\x13\0" + UUID(int=2).bytes + b"\0",
    quota("alice", "producer_byte_rate", 1e6),
    quota(None, "request_percentage", 50.0),
    quota(None, "request_percentage", 0.0, removes=True),
    quota("alice", "consumer_byte_rate", float("nan")),
    token("first", 4 * NOW),
    token("second", 4 * NOW),
    b"\1\x1a\0" + text("second") + b"\0",
    b"\1\x63\0of a later version",
]


def make_partition(folder: Path, name: str, topic_id: UUID, records: int) -> None:
    files, path = OsFiles(), folder / name
    path.mkdir(parents=True)
    log = b"".join(
        build_batch([(b"k", b"%d" % offset)], base_offset=offset, timestamp_ms=NOW, partition_leader_epoch=2)
        for offset in range(records)
    )
    (path / f"{FIRST}.log").write_bytes(log)
    (path / f"{FIRST}.index").write_bytes(bytes(800))  # Kafka allocates index files in advance
    (path / f"{FIRST}.timeindex").write_bytes(bytes(1200))
    checkpoints.write_partition_metadata(files, path / checkpoints.PARTITION_METADATA, topic_id)
    checkpoints.write_leader_epochs(files, path / checkpoints.LEADER_EPOCHS, [(2, 0)])


@pytest.fixture
def kafka_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    make_partition(folder, "flights-0", FLIGHTS, 10)
    make_partition(folder, "flights-1", FLIGHTS, 3)
    make_partition(folder, "gone-0", GONE, 1)
    metadata = folder / "__cluster_metadata-0"
    metadata.mkdir()
    leader_change = build_batch([(b"\0\0\0\2", b"\0\0")], control=True)
    (metadata / f"{FIRST}.log").write_bytes(leader_change + build_batch([(None, value) for value in RECORDS], base_offset=1))
    (metadata / f"{4:020d}-0000000001.checkpoint").write_bytes(build_batch([(None, value) for value in SNAPSHOT]))
    properties = {"version": "1", "cluster.id": CLUSTER, "node.id": str(NODE), "directory.id": "AAAAAAAAAAAAAAAAAAAABw"}
    checkpoints.write_properties(OsFiles(), folder / checkpoints.META_PROPERTIES, properties)
    for name in (checkpoints.RECOVERY_POINTS, checkpoints.LOG_START_OFFSETS, checkpoints.HIGH_WATERMARKS):
        (folder / name).touch()
    return folder


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_is_taken_over_and_served(command: Command, kafka_folder: Path) -> None:
    before = tree(kafka_folder)
    dry = command("broker", "adopt", "--data-dir", kafka_folder, "--dry-run", "--json")
    assert dry.code == 0, dry
    assert tree(kafka_folder) == before
    found = dry.json
    assert (found["cluster_id"], found["node_id"], found["next_producer_id"]) == (CLUSTER, NODE, 4000)
    (adopted,) = found["topics"]
    assert (adopted["topic"], adopted["partitions"], adopted["leader_epoch"]) == ("flights", 2, 5)
    assert adopted["settings"] == ["retention.ms=-1"]
    assert found["broker_settings"] == {"": {"log.retention.ms": "77"}}
    assert found["notes"] == [
        "topic flights keeps its default of no.such.key: Unknown topic config name: no.such.key",
        "topic gone was deleted: Kafka's metadata does not know it; its folders stay and are not served",
        "access control entries (1) hold where authorizer.class.name is set, beside its super.users",
        "delegation tokens (1) hold with the delegation.token.secret.key of before",
        "access control entries (1) do not come along: this version does not know what they say",
        "quotas (1) do not come along: this version does not know what they say",
        "records of kind 99 version 0 (1) do not come along",
    ]
    assert found["declared"] == {"access control entries": 1, "SCRAM users": 1, "quotas": 1, "delegation tokens": 1}
    ended = command("broker", "adopt", "--data-dir", kafka_folder)
    assert ended.code == 0
    assert ended.lines[-1] == f"adopted; start it with: barnabas broker start --broker-id 5 --config log.dirs={kafka_folder}"
    logs = {name: data for name, data in before.items() if name.endswith(".log")}
    assert {name: data for name, data in tree(kafka_folder).items() if name.endswith(".log")} == logs
    with Broker(config={"node.id": NODE}, data_dir=kafka_folder) as broker, BlockingClient.to(broker.bootstrap_servers) as client:
        topics = client.topics()
        assert set(topics) == {"flights"}
        data = bytes(client.fetch("flights", 0, 0).records)
        assert data == before[f"flights-0/{FIRST}.log"]
        assert client.produce("flights", 1, build_batch([(b"k", b"ours")], timestamp_ms=NOW)).base_offset == 3
        assert split_batches(bytes(client.fetch("flights", 1, 3).records))[0][1].partition_leader_epoch > 0
        assert client.describe_topic_config("flights")["retention.ms"] == "-1"
    assert (kafka_folder / "gone-0" / f"{FIRST}.log").read_bytes() == logs[f"gone-0/{FIRST}.log"]
    assert tree(kafka_folder / "__cluster_metadata-0").keys() == {f"{FIRST}.log", f"{4:020d}-0000000001.checkpoint"}


def test_users_rights_quotas_and_tokens_come_along(command: Command, kafka_folder: Path) -> None:
    assert (
        "also: 1 access control entries, 1 SCRAM users, 1 quotas, 1 delegation tokens"
        in command("broker", "adopt", "--data-dir", kafka_folder).lines
    )
    config: dict[str, str | int | bool] = {
        "node.id": NODE,
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "authorizer.class.name": STANDARD,
        "super.users": "User:ANONYMOUS",
        "delegation.token.secret.key": "of before",
        "connection.failed.authentication.delay.ms": 0,
    }
    with Broker(config, data_dir=kafka_folder) as broker:
        secured, plain = broker.bootstrap_servers, broker.listeners["PLAINTEXT"]
        shown = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512", "bootstrap.servers": secured}
        by_password = {**shown, "sasl.username": "alice", "sasl.password": "geheim"}
        hmac = b64encode(secret_of("first", "of before")).decode()
        by_token = {**shown, "sasl.jaas.config": f'{MODULE} required username=first password="{hmac}" tokenauth=true;'}
        for options in (by_password, by_token):
            with BlockingClient(ClientConfig.from_options(options)) as client:
                assert bytes(client.fetch("flights", 0, 0).records)
                with pytest.raises(KafkaError):
                    client.produce("flights", 1, build_batch([(b"k", b"not allowed")], timestamp_ms=NOW))
        with (
            BlockingClient(ClientConfig.from_options({**by_password, "sasl.username": "bob"})) as client,
            pytest.raises(LoginFailed),
        ):
            client.topics()
        listed = command("quota", "list", "--json", "-b", plain)
        assert listed.json == [{"entity": {"user": "alice"}, "quotas": {"producer_byte_rate": 1e6}}]


def test_server_properties_name_the_folders(command: Command, kafka_folder: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "metadata"
    elsewhere.mkdir()
    (kafka_folder / "__cluster_metadata-0").rename(elsewhere / "__cluster_metadata-0")
    settings = tmp_path / "server.properties"
    settings.write_text(f"log.dirs={kafka_folder}\nmetadata.log.dir={elsewhere}\n")
    found = command("broker", "adopt", "--config-from", settings, "--dry-run", "--json").json
    assert found["topics"][0]["settings"] == ["retention.ms=-1"]
    plain = command("broker", "adopt", "--data-dir", kafka_folder, "--dry-run", "--json").json
    assert plain["topics"][0]["settings"] == []
    assert "settings of topics and brokers, users, rights and quotas do not come along" in plain["notes"][0]


@pytest.mark.parametrize(
    ("name", "data", "obstacle"),
    [
        ("flights-1/partition.metadata", None, "has no partition.metadata, so its topic id is not known"),
        ("flights-1/partition.metadata", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAACA", "have different topic ids"),
        ("meta.properties", b"version=1\n", "does not say of which cluster and node the folder is"),
        ("metadata.db", b"", "it belongs to barnabas already"),
        ("recovery-point-offset-checkpoint", b"rubbish", "it cannot be read: not a line of it: 'rubbish'"),
        (
            f"__cluster_metadata-0/{FIRST}.log",
            build_batch([(None, b"\1\2\0\x50")]),
            "is no metadata record: it ends within a field",
        ),
        ("flights-0/leader-epoch-checkpoint", b"rubbish", "leader-epoch-checkpoint cannot be read"),
    ],
)
def test_obstacles_refuse_all(command: Command, kafka_folder: Path, name: str, data: bytes | None, obstacle: str) -> None:
    path = kafka_folder / name
    if data is None:
        path.unlink()
    else:
        path.write_bytes(data)
        if name.startswith("__cluster"):
            (path.parent / f"{4:020d}-0000000001.checkpoint").unlink()
    before = tree(kafka_folder)
    ended = command("broker", "adopt", "--data-dir", kafka_folder)
    assert ended.code == 2
    assert obstacle in ended.err
    assert tree(kafka_folder) == before


def test_a_commit_that_fails_takes_over_nothing(command: Command, kafka_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(store: EmbeddedStore, _operations: object) -> int:
        raise StoreUnavailable(f"{store.path}: the disk fails")

    before = set(tree(kafka_folder))
    with monkeypatch.context() as failing:
        failing.setattr(EmbeddedStore, "commit", fail)
        assert command("broker", "adopt", "--data-dir", kafka_folder).code == 1
    assert set(tree(kafka_folder)) == before
    assert command("broker", "adopt", "--data-dir", kafka_folder).code == 0


def test_what_a_kill_left_of_taking_over_is_no_obstacle(command: Command, kafka_folder: Path) -> None:
    for name in ("metadata.db.adopting", "metadata.db.adopting-wal", "metadata.db-wal"):
        (kafka_folder / name).write_bytes(b"half of it")
    assert command("broker", "adopt", "--data-dir", kafka_folder).code == 0
    assert {path.name for path in kafka_folder.glob("metadata.db*")} == {"metadata.db"}
    with EmbeddedStore(kafka_folder) as store:
        assert [entry.path for entry in store.list("/topics/")] == ["/topics/flights"]


def test_partitions_that_are_elsewhere_are_an_obstacle(command: Command, kafka_folder: Path) -> None:
    (kafka_folder / "flights-0").rename(kafka_folder.parent / "flights-0")
    ended = command("broker", "adopt", "--data-dir", kafka_folder)
    assert ended.code == 2
    assert "topic flights has 2 partitions, of which 0 are not in these folders" in ended.err


def test_a_running_kafka_is_refused(command: Command, kafka_folder: Path) -> None:
    with held_by_another_process(kafka_folder / ".lock"):
        ended = command("broker", "adopt", "--data-dir", kafka_folder)
    assert ended.code == 2
    assert "a broker is running on" in ended.err
    assert command("broker", "adopt").code == 2
    assert command("broker", "adopt", "--data-dir", kafka_folder / "missing").code == 2


@pytest.mark.parametrize(
    "value", [b"", b"\2\2\0", b"\1\2\0\x50abc", b"\1\3\1\0", b"\1\xff\xff\xff\xff\xff\xff", b"\1\x0b\0rest of a user"]
)
def test_bytes_that_are_no_metadata_record(value: bytes) -> None:
    with pytest.raises((ValueError, struct.error)):
        KraftMetadata().replay(value)
