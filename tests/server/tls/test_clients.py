"""Clients over TLS at a real broker: they produce and consume, with and without certificates, in both versions."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from barnabas.testing import Broker

WAIT_S = 60
LARGE = 900_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(tls=True) as broker:
        yield broker


def exchange(broker: Broker, topic: str, values: list[bytes], settings: dict[str, str]) -> list[bytes | None]:
    """The values that come back."""
    common = {"bootstrap.servers": broker.bootstrap_servers, **settings}
    producer = Producer({**common, "linger.ms": 5})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(WAIT_S) == 0
    consumer = Consumer({**common, "group.id": "none", "enable.partition.eof": True, "fetch.message.max.bytes": 4 * LARGE})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes | None] = []
    while (message := consumer.poll(WAIT_S)) is not None and message.error() is None:
        found.append(message.value())
    consumer.close()
    assert message is not None
    error = message.error()
    assert error is not None
    assert error.code() == KafkaError._PARTITION_EOF
    return found


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_records_go_there_and_back(version: str) -> None:
    values = [b"%d" % number for number in range(2_000)]
    with Broker({"ssl.enabled.protocols": version}, tls=True) as broker:
        assert exchange(broker, "small", values, broker.certificates.client_settings("alice")) == values


def test_large_records_go_there_and_back(broker: Broker) -> None:
    values = [os.urandom(LARGE) for _ in range(12)]
    assert exchange(broker, "large", values, broker.certificates.client_settings()) == values


def test_users_log_in_over_tls() -> None:
    with Broker(tls=True, users={"ann": "pencil"}) as broker:
        settings = {
            **broker.certificates.client_settings(),
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": "ann",
            "sasl.password": "pencil",
        }
        assert exchange(broker, "users", [b"a", b"b"], settings) == [b"a", b"b"]
