"""`barnabas cluster`, `doctor` against a broker, `bench`."""

from __future__ import annotations

from tests.cli.conftest import Command


def test_describe(kafka_command: Command, bootstrap: str) -> None:
    described = kafka_command("cluster", "describe", "--json").json
    (broker,) = described["brokers"]
    assert f"{broker['host']}:{broker['port']}" == bootstrap
    assert broker["controller"] is True
    assert described["cluster_id"] in kafka_command("cluster", "describe").text


def test_more_in_sync_are_asked_for_than_there_are_replicas(kafka_command: Command, topic: str) -> None:
    """Brokers take acks=all then, Kafka's too, so it is no trouble."""
    assert kafka_command("config", "alter", "topic", topic, "--set", "min.insync.replicas=2").code == 0
    assert kafka_command("produce", topic, stdin=b"acknowledged\n").code == 0
    assert kafka_command("cluster", "describe", "--json").json["under_min_isr"] == []


def test_api_versions(kafka_command: Command) -> None:
    apis = {api["name"]: api for api in kafka_command("cluster", "api-versions", "--json").json["apis"]}
    assert apis["ApiVersions"]["max"] >= 4
    assert apis["Produce"]["known"].startswith("0 to")
    assert any(line.split()[1] == "Metadata" for line in kafka_command("cluster", "api-versions").lines[2:])


def test_doctor_finds_the_broker_well(kafka_command: Command) -> None:
    checks = {finding["check"]: finding["status"] for finding in kafka_command("doctor", "--json").json}
    assert checks["broker"] == "ok"
    assert checks["leaders"] == "ok"


def test_doctor_fails_without_a_broker(command: Command) -> None:
    ended = command("doctor", "--json", "-b", "127.0.0.1:1")
    assert ended.code == 1
    assert {f["check"]: f["status"] for f in ended.json}["broker"] == "failed"


def test_bench_measures_and_cleans_up(kafka_command: Command) -> None:
    ended = kafka_command("bench", "-n", 2_000, "--skip-latency", "--json")
    assert [(row["test"], row["records"]) for row in ended.json] == [("produce", 2_000), ("consume", 2_000)]
    assert all(row["records_per_s"] > 0 for row in ended.json)
    assert not [t for t in kafka_command("topic", "list", "--json").json if t["name"].startswith("barnabas-bench")]


def test_bench_says_in_a_line_that_records_are_too_large(kafka_command: Command) -> None:
    ended = kafka_command("bench", "-n", 1, "--record-bytes", 2_000_000)
    assert ended.code == 1
    assert "a record of 2000000 bytes makes a batch larger than the topic's max.message.bytes (1048588)" in ended.err
    assert len(ended.err.splitlines()) == 1


def test_bench_uses_a_topic_that_is_there(kafka_command: Command, topic: str) -> None:
    assert kafka_command("bench", "-n", 100, "--skip-latency", "--topic", topic).code == 0
    assert kafka_command("topic", "describe", topic).code == 0
