"""`barnabas mirror create --source-config`: links to sources with TLS and log-ins, and what is told of wrong ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from barnabas.cli.errors import BadInput
from barnabas.cli.mirror_source import read_source_settings, source_settings
from barnabas.config.jaas import quote
from barnabas.errors import ConfigError
from barnabas.testing import Broker
from barnabas.testing.certificates import Certificates
from barnabas.tls.settings import client_settings
from tests.cli.conftest import Command
from tests.waiting import wait_until

PASSWORD = 'pa"ss, wörd='
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
LISTENERS = {
    "listeners": "SASL_SSL://127.0.0.1:0,SSL://127.0.0.1:0",
    "inter.broker.listener.name": "SSL",
    "listener.name.ssl.ssl.client.auth": "required",
}


@pytest.fixture(scope="module")
def source() -> Iterator[Broker]:
    """A source with SASL_SSL and with TLS that requires certificates; the topic `orders` has ten records."""
    with Broker(LISTENERS, users={"alice": PASSWORD}, tls=True) as broker:
        producer = Producer(
            {
                "bootstrap.servers": broker.listeners["SASL_SSL"],
                **broker.login(mechanism="SCRAM-SHA-512"),
                "ssl.ca.location": broker.certificates.ca_file,
            }
        )
        for number in range(10):
            producer.produce("orders", str(number))
        assert producer.flush(30) == 0
        yield broker


@pytest.fixture
def target() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Certificates of another authority."""
    return Certificates(tmp_path_factory.mktemp("stranger"))


def properties(path: Path, **settings: str) -> str:
    file = path / "source.properties"
    text = {key.replace("_", "."): value.replace("\\", "\\\\") for key, value in settings.items()}
    file.write_text("".join(f"{key}={value}\n" for key, value in text.items()), encoding="utf-8")
    return str(file)


def scram(source: Broker, password: str = PASSWORD) -> dict[str, str]:
    """Settings as Kafka's tools have them."""
    return {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_jaas_config": f'{SCRAM} required username="alice" password={quote(password)};',
        "ssl_truststore_location": str(source.certificates.authority.truststore),
        "ssl_truststore_password": source.certificates.password,
        "ssl_truststore_type": "PKCS12",
    }


def create(command: Command, target: Broker, source: str, file: str) -> None:
    ended = command("mirror", "create", "eu", "--source", source, "--source-config", file, "-b", target.bootstrap_servers)
    assert (ended.code, ended.text) == (0, "created mirror link eu\n"), ended.err


def state(command: Command, target: Broker) -> str:
    (link,) = command("mirror", "list", "--json", "-b", target.bootstrap_servers).json
    assert isinstance(link["state"], str)
    return link["state"]


def wait_for_state(command: Command, target: Broker, wanted: str) -> str:
    wait_until(lambda: wanted in state(command, target), f"{wanted!r} is not told", within_s=30)
    return state(command, target)


def wait_for_end(command: Command, target: Broker, end: int) -> None:
    def ends() -> list[int]:
        return [row["end"] for row in command("mirror", "status", "eu", "--json", "-b", target.bootstrap_servers).json]

    wait_until(lambda: ends() == [end], "the records are not copied", within_s=30)


def wait_copied(command: Command, target: Broker) -> None:
    wait_for_end(command, target, 10)
    wait_until(lambda: state(command, target) == "running", within_s=30)


def test_a_source_with_scram_over_tls(command: Command, source: Broker, target: Broker, tmp_path: Path) -> None:
    create(command, target, source.listeners["SASL_SSL"], properties(tmp_path, **scram(source)))
    wait_copied(command, target)
    shown = command("mirror", "describe", "eu", "-b", target.bootstrap_servers).text
    assert "alice" in shown
    assert PASSWORD not in shown
    assert "BEGIN" not in shown
    assert PASSWORD not in target.log


def test_a_wrong_password_is_told_and_can_be_mended(command: Command, source: Broker, target: Broker, tmp_path: Path) -> None:
    create(command, target, source.listeners["SASL_SSL"], properties(tmp_path, **scram(source, "wrong one")))
    told = wait_for_state(command, target, "no log-in at")
    assert "Authentication failed" in told
    assert "\n" not in told
    shown = command("mirror", "status", "eu", "-b", target.bootstrap_servers)
    assert "the source: no log-in at" in shown.err
    assert "wrong one" not in shown.err + shown.text + told + target.log
    mended = command("config", "alter", "link", "eu", "--set", f"sasl.password={PASSWORD}", "-b", target.bootstrap_servers)
    assert mended.code == 0, mended.err
    assert PASSWORD not in mended.text + mended.err
    wait_copied(command, target)


def test_an_untrusted_source_is_told_and_can_be_mended(
    command: Command, source: Broker, target: Broker, stranger: Certificates, tmp_path: Path
) -> None:
    settings = {**scram(source), "ssl_truststore_location": str(stranger.authority.truststore)}
    create(command, target, source.listeners["SASL_SSL"], properties(tmp_path, **settings))
    assert "\n" not in wait_for_state(command, target, "certificate")
    trusted = Path(source.certificates.ca_file).read_text()
    mended = command(
        "config", "alter", "link", "eu", "--set", f"ssl.truststore.certificates={trusted}", "-b", target.bootstrap_servers
    )
    assert mended.code == 0, mended.err
    wait_copied(command, target)


def test_a_source_that_requires_certificates(command: Command, source: Broker, target: Broker, tmp_path: Path) -> None:
    files = source.certificates.client("mirror")
    settings = {
        "security_protocol": "SSL",
        "ssl_truststore_location": source.certificates.ca_file,
        "ssl_keystore_location": str(files.keystore),
        "ssl_keystore_password": source.certificates.password,
        "ssl_key_password": source.certificates.password,
    }
    create(command, target, source.listeners["SSL"], properties(tmp_path, **settings))
    wait_copied(command, target)
    shown = command("mirror", "describe", "eu", "--json", "-b", target.bootstrap_servers).json
    settings = {row["name"]: row["value"] for row in shown}
    assert settings["security.protocol"] == "SSL"
    assert settings["ssl.keystore.key"] is None  # it is never told
    assert "PRIVATE KEY" not in target.log


def test_a_certificate_that_is_missing_or_a_stranger_s_is_told(
    command: Command, source: Broker, target: Broker, stranger: Certificates, tmp_path: Path
) -> None:
    settings = {"security_protocol": "SSL", "ssl_truststore_location": source.certificates.ca_file}
    create(command, target, source.listeners["SSL"], properties(tmp_path, **settings))
    assert "\n" not in wait_for_state(command, target, "certificate")
    theirs = stranger.client("mirror")
    chain, key = theirs.certificate.read_text(), theirs.key.read_text()
    at = ("-b", target.bootstrap_servers)
    changes = ("--set", f"ssl.keystore.certificate.chain={chain}", "--set", f"ssl.keystore.key={key}")
    assert command("config", "alter", "link", "eu", *changes, *at).code == 0
    assert "\n" not in wait_for_state(command, target, "unknown ca")
    ours = source.certificates.client("mirror")
    chain, key = ours.certificate.read_text(), ours.key.read_text()
    changes = ("--set", f"ssl.keystore.certificate.chain={chain}", "--set", f"ssl.keystore.key={key}")
    assert command("config", "alter", "link", "eu", *changes, *at).code == 0
    wait_copied(command, target)


def test_a_password_that_changes_while_the_link_runs(command: Command, target: Broker, tmp_path: Path) -> None:
    """Connections that are open stay; the next one needs the other password."""
    with Broker(users={"alice": PASSWORD}, tls=True) as source:
        login = {**source.login(mechanism="SCRAM-SHA-512"), "ssl.ca.location": source.certificates.ca_file}
        producer = Producer({"bootstrap.servers": source.bootstrap_servers, **login})
        producer.produce("orders", "0")
        assert producer.flush(30) == 0
        create(command, target, source.bootstrap_servers, properties(tmp_path, **scram(source)))
        wait_for_end(command, target, 1)
        admin = AdminClient({"bootstrap.servers": source.bootstrap_servers, **login})
        other = UserScramCredentialUpsertion("alice", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), b"other")
        for altered in cast(dict[str, Any], admin.alter_user_scram_credentials([other])).values():
            altered.result(30)
        producer.produce("orders", "1")
        assert producer.flush(30) == 0
        wait_for_end(command, target, 2)
        source.restart()
        wait_for_state(command, target, "no log-in at")
        mended = command("config", "alter", "link", "eu", "--set", "sasl.password=other", "-b", target.bootstrap_servers)
        assert mended.code == 0, mended.err
        assert wait_for_state(command, target, "running") == "running"
        wait_for_end(command, target, 2)


# The file


def test_stores_become_pem_texts(source: Broker) -> None:
    files = source.certificates.client("mirror")
    found = source_settings(
        {
            "security.protocol": "SSL",
            "ssl.keystore.location": str(files.keystore),
            "ssl.keystore.password": source.certificates.password,
            "ssl.truststore.location": str(source.certificates.authority.truststore),
            "ssl.truststore.password": source.certificates.password,
            "bootstrap.servers": "elsewhere:9092",
            "max.poll.records": "5",
        }
    )
    assert found.left_out == ("max.poll.records",)
    assert set(found.settings) == {
        "security.protocol", "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.truststore.certificates",
    }  # fmt: skip
    assert client_settings(found.settings).keystore_location is None
    assert found.settings["ssl.truststore.certificates"].startswith("-----BEGIN CERTIFICATE-----")


def test_names_of_librdkafka_are_known(source: Broker) -> None:
    found = source_settings(
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanisms": "PLAIN",
            "sasl.username": "u",
            "sasl.password": "p",
            "ssl.ca.location": source.certificates.ca_file,
            "ssl.endpoint.identification.algorithm": "none",
        }
    )
    assert found.settings["sasl.mechanism"] == "PLAIN"
    assert found.settings["ssl.endpoint.identification.algorithm"] == ""
    assert "ssl.truststore.certificates" in found.settings


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"sasl.mechanism": "GSSAPI"}, "sasl.mechanism"),
        ({"sasl.oauthbearer.client.secret": "hidden"}, "a mirror link has no setting sasl.oauthbearer.client.secret"),
        ({"ssl.enabled.protocols": "TLSv1.3"}, "a mirror link has no setting ssl.enabled.protocols"),
        ({"enable.ssl.certificate.verification": "false"}, "no setting enable.ssl.certificate.verification"),
        ({"sasl.jaas.config": 'x.Krb5LoginModule required keyTab="hidden";'}, "Krb5LoginModule"),
        ({"sasl.jaas.config": f'{SCRAM} required tokenauth="true" password="hidden";'}, "delegation token"),
        ({"sasl.jaas.config": f'{SCRAM} password="hidden'}, "sasl.jaas.config"),
        ({"ssl.truststore.location": "/missing"}, "ssl.truststore.location"),
    ],
)
def test_a_file_that_a_link_cannot_honour_is_refused(settings: dict[str, str], reason: str) -> None:
    with pytest.raises((BadInput, ConfigError)) as refused:
        source_settings(settings)
    assert reason in str(refused.value)
    assert "hidden" not in str(refused.value).replace("[hidden]", "")


def test_a_refusal_names_the_file(tmp_path: Path) -> None:
    file = properties(tmp_path, ssl_provider="x")
    with pytest.raises(BadInput, match=r"source\.properties: a mirror link has no setting ssl\.provider"):
        read_source_settings(file)
