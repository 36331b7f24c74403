"""`barnabas start`: the broker asks the schema registry beside it, also over TLS and with a log-in, and nobody sets anything."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.cli.properties import read_properties_file
from barnabas.cli.services_beside import ServicesAsked, beside
from barnabas.config.broker import BrokerConfig
from barnabas.schemas.registry_client import RegistryClient
from tests.services.test_beside import started

VALIDATED = {"confluent.value.schema.validation": "true"}


def client_settings(folder: Path, bootstrap: str) -> tuple[dict[str, str], dict[str, str]]:
    """For librdkafka and for the registry, of the user whom `--secure` made."""
    file = folder / "data-security/admin.properties"
    if not file.exists():
        return {"bootstrap.servers": bootstrap}, {}
    said = read_properties_file(str(file))
    found = re.search(r'username="([^"]*)" password="([^"]*)"', said["sasl.jaas.config"])
    assert found is not None
    user, password = found.groups()
    authority = said["ssl.truststore.location"]
    kafka = {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": said["sasl.mechanism"],
        "sasl.username": user,
        "sasl.password": password,
        "ssl.ca.location": authority,
    }
    return kafka, {"basic.auth.user.info": f"{user}:{password}", "ssl.ca.location": authority}


@pytest.mark.parametrize(
    "options", [["--listeners", "PLAINTEXT://127.0.0.1:0"], ["--secure", "--listeners", "SASL_SSL://127.0.0.1:0"]]
)
def test_the_broker_knows_the_registry(tmp_path: Path, options: list[str]) -> None:
    scheme = "https" if "--secure" in options else "http"
    with started(tmp_path, *options, "--registry-listener", f"{scheme}://127.0.0.1:0") as process:
        assert process.stdout is not None
        address = re.search(r"//(127.0.0.1:\d+)", process.stdout.readline())
        url = re.search(r"https?://\S+", process.stdout.readline())
        assert address is not None
        assert url is not None
        settings, of_registry = client_settings(tmp_path, address[1])
        admin = AdminClient(dict(settings))
        for made in admin.create_topics([NewTopic("t", 1, config=VALIDATED)]).values():
            made.result()
        with RegistryClient(url[0], of_registry) as registry:
            known = registry.post("subjects", "t-value", "versions", body={"schema": '"int"'})["id"]
        codes = []
        producer = Producer({**settings, "linger.ms": 0})
        for number in (known, known + 1):
            value = struct.pack(">bi", 0, number) + b"\2"
            producer.produce("t", value=value, on_delivery=lambda error, _: codes.append(error and error.code()))
            assert producer.flush(60) == 0
        process.terminate()
        process.communicate(timeout=60)
    assert codes == [None, KafkaError.INVALID_RECORD]


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize(
    ("listener", "given", "url"),
    [
        ("http://127.0.0.1:0", {}, r"http://127\.0\.0\.1:[1-9]\d*"),
        ("http://0.0.0.0:0", {}, r"http://127\.0\.0\.1:[1-9]\d*"),
        ("http://127.0.0.1:0", {"confluent.schema.registry.url": "http://other:1"}, "http://other:1"),
    ],
)
def test_where_the_broker_asks(listener: str, given: dict[str, str], url: str) -> None:
    properties = {"listeners": "PLAINTEXT://127.0.0.1:0", **given}
    beside(ServicesAsked(None, False, {"registry": listener}, None), properties, None, "info", by_default=False)
    config, _ = BrokerConfig.from_properties(properties)
    (asked,) = config.confluent_schema_registry_url
    assert re.fullmatch(url, asked)


def test_without_a_registry_the_broker_knows_none() -> None:
    properties = {"listeners": "PLAINTEXT://127.0.0.1:0"}
    beside(ServicesAsked(None, True, {}, None), properties, None, "info", by_default=True)
    assert "confluent.schema.registry.url" not in properties
