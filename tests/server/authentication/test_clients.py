"""Other people's clients log in with every mechanism that has passwords."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from collections.abc import Iterator
from typing import Any, cast

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from kafka import KafkaConsumer, KafkaProducer

from barnabas.client.asynchronous import AsyncClient
from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.errors import LoginFailed
from barnabas.testing import Broker
from barnabas.testing.users import MECHANISMS
from tests.waiting import wait_until

TIMEOUT_S = 60
USERS = {"alice": "geheim", "o=,ff": 'a "b\\ c'}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"connection.failed.authentication.delay.ms": 0}, users=USERS) as running:
        yield running


def librdkafka(broker: Broker, mechanism: str, user: str = "alice", password: str | None = None) -> dict[str, Any]:
    shown = {**broker.login(user, mechanism), "bootstrap.servers": broker.bootstrap_servers}
    return shown if password is None else {**shown, "sasl.password": password}


def options(broker: Broker, mechanism: str, password: str = "geheim") -> dict[str, str]:
    return {
        "bootstrap_servers": broker.bootstrap_servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": password,
    }


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_confluent_kafka(broker: Broker, mechanism: str, user: str) -> None:
    topic = f"confluent-{mechanism}-{len(user)}"
    producer = Producer(librdkafka(broker, mechanism, user))
    producer.produce(topic, b"hello")
    assert producer.flush(TIMEOUT_S) == 0
    consumer = Consumer({**librdkafka(broker, mechanism, user), "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found = consumer.poll(TIMEOUT_S)
    consumer.close()
    assert found is not None
    assert found.value() == b"hello"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_confluent_kafka_with_a_wrong_password(broker: Broker, mechanism: str) -> None:
    seen: list[KafkaError] = []
    settings = {**librdkafka(broker, mechanism, password="falsch"), "error_cb": seen.append, "log_level": 0}
    admin = AdminClient(settings)

    def is_told() -> bool:
        admin.poll(0.05)
        return KafkaError._AUTHENTICATION in {error.code() for error in seen}

    wait_until(is_told)
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=0.1)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python(broker: Broker, mechanism: str) -> None:
    topic = f"kafka-python-{mechanism}"
    producer = KafkaProducer(**options(broker, mechanism))
    producer.send(topic, b"hello").get(TIMEOUT_S)
    producer.close()
    consumer = KafkaConsumer(
        topic, auto_offset_reset="earliest", consumer_timeout_ms=TIMEOUT_S * 1000, **options(broker, mechanism)
    )
    assert next(consumer).value == b"hello"
    consumer.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_aiokafka(broker: Broker, mechanism: str) -> None:
    topic = f"aiokafka-{mechanism}"
    async with AIOKafkaProducer(**options(broker, mechanism)) as producer:
        await producer.send_and_wait(topic, b"hello")
    async with AIOKafkaConsumer(topic, auto_offset_reset="earliest", **options(broker, mechanism)) as consumer:
        assert (await consumer.getone()).value == b"hello"
    refused = AIOKafkaProducer(**options(broker, mechanism, "falsch"))
    with pytest.raises(KafkaConnectionError):
        await refused.start()
    await refused.stop()


@pytest.mark.interop
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kcat(broker: Broker, mechanism: str) -> None:
    program = shutil.which("kcat")
    assert program is not None, "this test needs kcat (Debian package: kcat)"
    shown = [word for key, value in librdkafka(broker, mechanism).items() for word in ("-X", f"{key}={value}")]
    topic = f"kcat-{mechanism}"
    subprocess.run([program, *shown, "-P", "-t", topic], input=b"hello\n", timeout=TIMEOUT_S, check=True)
    done = subprocess.run([program, *shown, "-C", "-t", topic, "-e", "-q"], capture_output=True, timeout=TIMEOUT_S, check=True)
    assert done.stdout == b"hello\n"


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_our_own(broker: Broker, mechanism: str) -> None:
    config = ClientConfig.from_options(librdkafka(broker, mechanism, "o=,ff"))
    assert "b\\ c" not in repr(config)
    BlockingClient(config).close()
    with BlockingClient(config) as blocking:
        expected = blocking.topics().keys()
    async with AsyncClient(config) as client:
        assert (await client.topics()).keys() == expected
    wrong = ClientConfig.from_options(librdkafka(broker, mechanism, password="falsch"))
    async with AsyncClient(wrong) as client:
        with pytest.raises(LoginFailed, match="Authentication failed"):
            await client.topics()
    with BlockingClient(wrong) as blocking, pytest.raises(LoginFailed, match="Authentication failed"):
        blocking.topics()


def test_a_user_is_made_changed_and_deleted_by_a_client(broker: Broker) -> None:
    admin = AdminClient(librdkafka(broker, "PLAIN"))
    for password in (b"one", b"two"):
        wanted = UserScramCredentialUpsertion("carol", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), password)
        for altered in cast(dict[str, Any], admin.alter_user_scram_credentials([wanted])).values():
            altered.result(TIMEOUT_S)
        shown = librdkafka(broker, "SCRAM-SHA-256") | {"sasl.username": "carol", "sasl.password": password.decode()}
        assert AdminClient(shown).list_topics(timeout=TIMEOUT_S).brokers
    described = cast(dict[str, Any], admin.describe_user_scram_credentials(["carol"]))["carol"].result(TIMEOUT_S)
    assert [(info.mechanism, info.iterations) for info in described.scram_credential_infos] == [
        (ScramMechanism.SCRAM_SHA_256, 4096)
    ]


@pytest.fixture(scope="module")
def tls_broker() -> Iterator[Broker]:
    with Broker(users=USERS, tls=True) as running:
        yield running


def tls_options(broker: Broker, mechanism: str) -> dict[str, Any]:
    context = ssl.create_default_context(cafile=broker.certificates.ca_file)
    return {**options(broker, mechanism), "security_protocol": "SASL_SSL", "ssl_context": context}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_and_our_own_over_tls(tls_broker: Broker, mechanism: str) -> None:
    topic = f"confluent-{mechanism}"
    shown = {**tls_broker.certificates.client_settings(), **librdkafka(tls_broker, mechanism), "security.protocol": "SASL_SSL"}
    producer = Producer(shown)
    producer.produce(topic, b"hello")
    assert producer.flush(TIMEOUT_S) == 0
    with BlockingClient(ClientConfig.from_options(shown)) as client:
        assert topic in client.topics()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python_over_tls(tls_broker: Broker, mechanism: str) -> None:
    topic, shown = f"kafka-python-{mechanism}", tls_options(tls_broker, mechanism)
    producer = KafkaProducer(**shown)
    producer.send(topic, b"hello").get(TIMEOUT_S)
    producer.close()
    consumer = KafkaConsumer(topic, auto_offset_reset="earliest", consumer_timeout_ms=TIMEOUT_S * 1000, **shown)
    assert next(consumer).value == b"hello"
    consumer.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_aiokafka_over_tls(tls_broker: Broker, mechanism: str) -> None:
    topic, shown = f"aiokafka-{mechanism}", tls_options(tls_broker, mechanism)
    async with AIOKafkaProducer(**shown) as producer:
        await producer.send_and_wait(topic, b"hello")
    async with AIOKafkaConsumer(topic, auto_offset_reset="earliest", **shown) as consumer:
        assert (await consumer.getone()).value == b"hello"
