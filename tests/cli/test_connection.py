"""Addresses, client settings, and which of them win."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import KafkaError

from barnabas.cli.connection import Connection, parse_address, reason_of, translate_client_properties
from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.properties import parse_pairs
from barnabas.testing.certificates import Certificates
from tests.cli.conftest import UNUSED, Command


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:9093", ("localhost", 9093)),
        ("localhost", ("localhost", 9092)),
        ("[::1]:1234", ("::1", 1234)),
        ("[::1]", ("::1", 9092)),
        ("PLAINTEXT://host:1", ("host", 1)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", [":9092", "host:port", "host:70000"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="is not host:port"):
        parse_address(text)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (KafkaError(3), "Unknown topic or partition (UNKNOWN_TOPIC_OR_PARTITION)"),
        (KafkaError(17, "no such name"), "no such name (INVALID_TOPIC_EXCEPTION)"),
        (KafkaError(105), "TRANSACTIONAL_ID_NOT_FOUND"),
        (KafkaError(KafkaError._TIMED_OUT), "Timed out (the client's _TIMED_OUT)"),
        (ValueError("too many"), "too many"),
    ],
)
def test_errors_have_kafkas_names_and_not_librdkafkas(error: Exception, reason: str) -> None:
    assert reason_of(error) == reason


def test_settings_of_the_java_tools_are_translated(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "authority")
    java = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": 'org.apache.kafka.PlainLoginModule required username="ann" password="a\\"b";',
        "ssl.truststore.location": str(certificates.authority.truststore),
        "ssl.truststore.password": certificates.password,
        "ssl.keystore.location": str(certificates.client("ann").combined),
        "ssl.keystore.type": "PEM",
        "ssl.endpoint.identification.algorithm": "",
        "key.deserializer": "X",
    }
    assert translate_client_properties(java) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "ann",
        "sasl.password": 'a"b',
        "ssl.ca.pem": certificates.authority.ca_file.read_text(),
        "ssl.certificate.pem": certificates.client("ann").certificate.read_text(),
        "ssl.key.pem": certificates.client("ann").key.read_text(),
        "ssl.endpoint.identification.algorithm": "none",
    }


def test_settings_of_the_user_go_before_those_of_a_command_under_another_name_too() -> None:
    settings = Connection("a:1", {"max.in.flight": "5"}).settings({"max.in.flight.requests.per.connection": 1})
    assert [value for name, value in settings.items() if name.startswith("max.in.flight")] == [1, "5"], "the last one counts"


def test_a_store_that_cannot_be_read_is_bad_input() -> None:
    with pytest.raises(BadInput, match=r"ssl\.truststore\.location: a file that can be read"):
        translate_client_properties({"ssl.truststore.location": "missing.p12"})


def test_the_user_s_settings_win_over_those_of_a_command() -> None:
    settings = Connection("h:1", {"acks": "0"}).settings({"acks": "all", "linger.ms": 3})
    assert (settings["acks"], settings["linger.ms"], settings["bootstrap.servers"]) == ("0", 3, "h:1")


def test_pairs_keep_further_equal_signs() -> None:
    assert parse_pairs(["a=b=c", "d="], "-X") == {"a": "b=c", "d": ""}
    with pytest.raises(BadInput, match="-X 'a' is not key=value"):
        parse_pairs(["a"], "-X")


def test_every_bootstrap_server_is_tried() -> None:
    with pytest.raises(Failure, match=r"cannot reach 127\.0\.0\.1:1 .*, 127\.0\.0\.1:2 "):
        Connection("127.0.0.1:1,127.0.0.1:2").require_broker()


def test_the_address_may_come_from_the_file(
    kafka_command: Command, bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BARNABAS_BOOTSTRAP_SERVERS", UNUSED)  # options win over the environment
    (tmp_path / "client.properties").write_text(f"# where\nbootstrap.servers={bootstrap}\n")
    assert kafka_command("topic", "list", "--command-config", tmp_path / "client.properties").code == 0
    assert kafka_command("topic", "list", "-X", f"bootstrap.servers={bootstrap}").code == 0
    assert kafka_command("topic", "list").code == 1
    assert kafka_command("topic", "list", "-b", UNUSED, "--command-config", tmp_path / "client.properties").code == 1


def test_bad_settings_are_exit_code_2(kafka_command: Command, tmp_path: Path) -> None:
    assert kafka_command("topic", "list", "-X", "nonsense").code == 2
    assert kafka_command("topic", "list", "--command-config", tmp_path / "missing").code == 2
    ended = kafka_command("topic", "list", "-X", "no.such.setting=1")
    assert ended.code == 2
    assert 'No such configuration property: "no.such.setting"' in ended.err


def test_something_else_than_kafka_is_told(command: Command) -> None:
    import socket
    import threading

    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            peer, _ = server.accept()
            with peer:
                peer.recv(1)
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        ended = command("cluster", "api-versions", "-b", f"127.0.0.1:{server.getsockname()[1]}")
        thread.join()
    assert ended.code == 1
    assert "does not speak the Kafka protocol" in ended.err


@pytest.mark.parametrize("words", ["username=ann password='a\\\\b'", 'password="a\\\\b" username="ann"'])
def test_log_ins_are_read_as_java_reads_them(words: str) -> None:
    found = translate_client_properties({"sasl.jaas.config": f"org.apache.kafka.ScramLoginModule required {words};"})
    assert found == {"sasl.username": "ann", "sasl.password": "a\\b"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('a.b required username="t" password="h" tokenauth="true";', "cannot log in with a delegation token"),
        ("nonsense", "sasl.jaas.config: "),
    ],
)
def test_log_ins_that_cannot_be_had_are_bad_input(text: str, reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        translate_client_properties({"sasl.jaas.config": text})
