"""Access control lists made by Kafka's own tool, and what they let clients do that log in: refused, allowed, refused again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AclOperation, AdminClient
from tools.kafka import run_tool

from barnabas.testing import Broker
from tests.server.mirroring.acls import AUTHORIZED, binding, matching

pytestmark = pytest.mark.interop

WAIT_S = 20
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'
    ),
    **AUTHORIZED,
}
ALICE = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": "secret"}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS) as running:
        yield running


def acls(broker: Broker, *arguments: str) -> str:
    """The output of the tool, which may do everything."""
    return run_tool("kafka-acls", "--bootstrap-server", broker.bootstrap_servers, *arguments).stdout


def settings(broker: Broker) -> dict[str, str | int | float | bool]:
    return {**ALICE, "bootstrap.servers": broker.listeners["SASL_PLAINTEXT"], "log_level": 0}


def produce(broker: Broker, topic: str) -> str:
    """The name of the error that alice's record gets, or of none."""
    told: list[KafkaError | None] = []
    producer = Producer({**settings(broker), "linger.ms": 0, "message.timeout.ms": 10_000})
    producer.produce(topic, b"v", on_delivery=lambda error, _: told.append(error))
    producer.flush(WAIT_S)
    (error,) = told
    return "none" if error is None else error.name()


def test_producers_and_consumers_by_the_short_forms_of_the_tool(broker: Broker) -> None:
    assert produce(broker, "orders") == "TOPIC_AUTHORIZATION_FAILED"
    made = acls(broker, "--add", "--allow-principal", "User:alice", "--producer", "--topic", "orders")
    assert "operation=WRITE, permissionType=ALLOW" in made
    assert "operation=CREATE, permissionType=ALLOW" in made
    assert produce(broker, "orders") == "none"
    consumer = Consumer({**settings(broker), "group.id": "billing", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    with pytest.raises(KafkaException, match="GROUP_AUTHORIZATION_FAILED"):
        _poll(consumer)
    consumer.close()
    acls(broker, "--add", "--allow-principal", "User:alice", "--consumer", "--topic", "orders", "--group", "billing")
    consumer = Consumer({**settings(broker), "group.id": "billing", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    assert _poll(consumer) == b"v"
    consumer.close()
    acls(broker, "--remove", "--force", "--allow-principal", "User:alice", "--producer", "--topic", "orders")
    assert produce(broker, "orders") == "TOPIC_AUTHORIZATION_FAILED"
    listed = acls(broker, "--list", "--principal", "User:alice")
    assert "ResourcePattern(resourceType=GROUP, name=billing, patternType=LITERAL)" in listed
    assert "operation=WRITE" not in listed


def _poll(consumer: Consumer) -> bytes | None:
    message = consumer.poll(WAIT_S)
    assert message is not None
    error = message.error()
    if error is not None:
        raise KafkaException(error)
    return message.value()


def test_prefixes_denials_and_lists(broker: Broker) -> None:
    prefixed = ("--topic", "app-", "--resource-pattern-type", "prefixed")
    acls(broker, "--add", "--allow-principal", "User:alice", "--operation", "All", *prefixed)
    acls(broker, "--add", "--deny-principal", "User:alice", "--operation", "Write", "--topic", "app-secret")
    assert produce(broker, "app-open") == "none"
    assert produce(broker, "app-secret") == "TOPIC_AUTHORIZATION_FAILED"
    matching = acls(broker, "--list", "--topic", "app-secret", "--resource-pattern-type", "match")
    assert "name=app-, patternType=PREFIXED" in matching
    assert "permissionType=DENY" in matching
    removed = ("--remove", "--force", "--topic", "app-secret", "--resource-pattern-type", "match")
    acls(broker, *removed)
    assert acls(broker, "--list", "--topic", "app-secret", "--resource-pattern-type", "match").strip() == ""


def test_clusters_transactional_ids_hosts_and_users(broker: Broker) -> None:
    acls(broker, "--add", "--allow-principal", "User:tx", "--idempotent", "--producer", "--topic", "t", "--transactional-id", "x")
    acls(broker, "--add", "--allow-principal", "User:ops", "--operation", "Alter", "--cluster", "--allow-host", "127.0.0.1")
    acls(broker, "--add", "--allow-principal", "User:ops", "--operation", "CreateTokens", "--user-principal", "User:tx")
    acls(broker, "--add", "--allow-principal", "User:ops", "--operation", "Describe", "--delegation-token", "token")
    listed = acls(broker, "--list")
    assert "resourceType=TRANSACTIONAL_ID, name=x" in listed
    assert "operation=IDEMPOTENT_WRITE" in listed
    assert "host=127.0.0.1, operation=ALTER" in listed
    assert "resourceType=USER, name=User:tx" in listed
    assert "resourceType=DELEGATION_TOKEN, name=token" in listed


def test_confluent_kafka_makes_lists_and_removes(broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    made, every = binding("confluent", "User:bob"), matching(principal="User:bob")
    for future in admin.create_acls([made]).values():
        future.result(WAIT_S)
    assert admin.describe_acls(every).result(WAIT_S) == [made]
    for future in admin.delete_acls([every]).values():
        assert future.result(WAIT_S) == [made]
    assert admin.describe_acls(every).result(WAIT_S) == []


def test_who_may_not_alter_the_cluster_makes_no_bindings(broker: Broker) -> None:
    admin = AdminClient({**settings(broker)})
    mine = binding("mine", operation=AclOperation.ALL)
    with pytest.raises(KafkaException, match="CLUSTER_AUTHORIZATION_FAILED"):
        next(iter(admin.create_acls([mine]).values())).result(WAIT_S)
    consumer = Consumer({**settings(broker), "group.id": "offsets"})
    with pytest.raises(KafkaException):
        consumer.get_watermark_offsets(TopicPartition("mine", 0), timeout=WAIT_S)
    consumer.close()
