"""Clients of other people over TLS: kafka-python, aiokafka, kcat and Apache Kafka's tools, in both versions, with certificates."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from kafka import KafkaConsumer, KafkaProducer
from tools.kafka import run_tool

from barnabas.testing import Broker

WAIT_S = 60
LINES = [f"value {number}" for number in range(200)]
VERSIONS = ["TLSv1.2", "TLSv1.3"]
CLIENT = "alice"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """A broker that refuses clients without a certificate."""
    with Broker({"ssl.client.auth": "required"}, tls=True) as broker:
        yield broker


@pytest.fixture(params=VERSIONS)
def context(request: pytest.FixtureRequest, broker: Broker) -> ssl.SSLContext:
    files = broker.certificates.client(CLIENT)
    context = ssl.create_default_context(cafile=broker.certificates.ca_file)
    context.load_cert_chain(files.certificate, files.key)
    context.minimum_version = context.maximum_version = ssl.TLSVersion[request.param.replace(".", "_")]
    return context


def test_kafka_python(broker: Broker, context: ssl.SSLContext) -> None:
    topic = f"kafka-python-{context.maximum_version}"
    settings = {"bootstrap_servers": broker.bootstrap_servers, "security_protocol": "SSL", "ssl_context": context}
    with closing(KafkaProducer(**settings)) as producer:
        for line in LINES:
            producer.send(topic, line.encode())
        producer.flush(WAIT_S)
    with closing(
        KafkaConsumer(topic, auto_offset_reset="earliest", group_id=topic, consumer_timeout_ms=WAIT_S * 1000, **settings)
    ) as consumer:
        assert [next(consumer).value.decode() for _ in LINES] == LINES


async def test_aiokafka(broker: Broker, context: ssl.SSLContext) -> None:
    topic = f"aiokafka-{context.maximum_version}"
    settings = {"bootstrap_servers": broker.bootstrap_servers, "security_protocol": "SSL", "ssl_context": context}
    producer = AIOKafkaProducer(**settings)
    await producer.start()
    try:
        for line in LINES:
            await producer.send_and_wait(topic, line.encode())
    finally:
        await producer.stop()
    consumer = AIOKafkaConsumer(topic, auto_offset_reset="earliest", group_id=topic, **settings)
    await consumer.start()
    try:
        assert [(await consumer.getone()).value.decode() for _ in LINES] == LINES
    finally:
        await consumer.stop()


def kcat(broker: Broker, *arguments: str, data: str = "") -> str:
    program = shutil.which("kcat")
    assert program is not None, "this test needs kcat (Debian package: kcat)"
    settings = [f"{key}={value}" for key, value in broker.certificates.client_settings(CLIENT).items()]
    options = [part for each in settings for part in ("-X", each)]
    command = [program, "-b", broker.bootstrap_servers, *options, *arguments]
    return subprocess.run(command, input=data, capture_output=True, text=True, timeout=WAIT_S, check=True).stdout


def test_kcat(broker: Broker) -> None:
    kcat(broker, "-P", "-t", "kcat", data="\n".join(LINES))
    assert kcat(broker, "-C", "-t", "kcat", "-o", "beginning", "-e", "-q").splitlines() == LINES


@pytest.mark.interop
@pytest.mark.timeout(300)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", ["PEM", "PKCS12"])
def test_java_tools(broker: Broker, tmp_path: Path, version: str, kind: str) -> None:
    certificates, files = broker.certificates, broker.certificates.client(CLIENT)
    stores = {
        "PEM": {"ssl.keystore.location": str(files.combined), "ssl.truststore.location": certificates.ca_file},
        "PKCS12": {
            "ssl.keystore.location": str(files.keystore),
            "ssl.keystore.password": certificates.password,
            "ssl.key.password": certificates.password,
            "ssl.truststore.location": str(certificates.authority.truststore),
            "ssl.truststore.password": certificates.password,
        },
    }[kind]
    settings = {"security.protocol": "SSL", "ssl.enabled.protocols": version, **stores}
    settings |= {"ssl.keystore.type": kind, "ssl.truststore.type": kind}
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    topic, at = f"java-{version}-{kind}", ("--bootstrap-server", broker.bootstrap_servers)
    run_tool("kafka-topics", *at, "--command-config", str(file), "--create", "--topic", topic)
    text = "\n".join(LINES) + "\n"
    run_tool("kafka-console-producer", *at, "--command-config", str(file), "--topic", topic, text=text)
    reading = ("--from-beginning", "--max-messages", str(len(LINES)), "--timeout-ms", "20000")
    found = run_tool("kafka-console-consumer", *at, "--command-config", str(file), "--topic", topic, *reading)
    assert found.stdout.splitlines() == LINES


@pytest.mark.interop
@pytest.mark.timeout(300)
def test_kafka_configs_changes_a_certificate(tmp_path: Path) -> None:
    listeners = {"listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0"}
    with Broker(listeners, tls=True) as broker:
        at = ("--bootstrap-server", broker.listeners["PLAINTEXT"], "--entity-type", "brokers", "--entity-name", "1")
        location = "listener.name.ssl.ssl.keystore.location"
        refused = run_tool("kafka-configs", *at, "--alter", "--add-config", f"{location}={tmp_path}/missing", check=False)
        assert refused.returncode == 1
        assert "No such file" in refused.stderr + refused.stdout
        run_tool("kafka-configs", *at, "--alter", "--add-config", f"{location}={broker.certificates.broker.combined}")
        assert location in run_tool("kafka-configs", *at, "--describe").stdout
