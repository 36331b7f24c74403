"""Apache Kafka's own tools, and its reader of log files on what the broker wrote."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tools.kafka import run_tool, tool_command

from tests.interop.conftest import Server, running
from tests.interop.messages import CODECS, messages
from tests.interop.test_confluent import produce

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
# With --deep-iteration the tool reports the first record of each later segment as a gap after offset -1.
FIRST_OF_A_SEGMENT = re.compile(r"Non-consecutive offsets in \S+\s+-1 is followed by \d+")
Unique = Callable[[str], str]


def tool(server: Server, name: str, *arguments: str, text: str | None = None) -> str:
    return run_tool(name, "--bootstrap-server", server.bootstrap, *arguments, text=text).stdout


def create(server: Server, topic: str, *arguments: str) -> str:
    tool(server, "kafka-topics", "--create", "--topic", topic, *arguments)
    return topic


@pytest.mark.parametrize("codec", CODECS)
def test_console_producer_and_consumer(codec: str, server: Server, unique: Unique) -> None:
    topic = create(server, unique("topic"))
    lines = [f"h:{index}|k{index}|value {index}" for index in range(50)]
    properties = ["parse.key=true", "key.separator=|", "parse.headers=true", "headers.delimiter=|", "headers.key.separator=:"]
    settings = [part for each in properties for part in ("--reader-property", each)]
    tool(
        server, "kafka-console-producer", "--topic", topic, "--compression-codec", codec, *settings, text="\n".join(lines) + "\n"
    )
    printing = ["print.key=true", "print.headers=true", "key.separator=|", "headers.separator=,"]
    shown = [part for each in printing for part in ("--formatter-property", each)]
    found = tool(
        server,
        "kafka-console-consumer",
        "--topic",
        topic,
        "--from-beginning",
        "--max-messages",
        "50",
        "--timeout-ms",
        "20000",
        *shown,
    )
    assert found.splitlines() == lines


def test_console_consumer_from_an_offset(server: Server, unique: Unique) -> None:
    topic = create(server, unique("topic"))
    tool(server, "kafka-console-producer", "--topic", topic, text="a\nb\nc\n")
    arguments = ["--partition", "0", "--offset", "1", "--max-messages", "2", "--timeout-ms", "20000"]
    assert tool(server, "kafka-console-consumer", "--topic", topic, *arguments).split() == ["b", "c"]


def test_topics(server: Server, unique: Unique) -> None:
    topic = create(server, unique("topic"), "--partitions", "3", "--config", "retention.ms=1234567")
    assert topic in tool(server, "kafka-topics", "--list").split()
    described = tool(server, "kafka-topics", "--describe", "--topic", topic)
    assert "PartitionCount: 3" in described
    assert "retention.ms=1234567" in described
    tool(server, "kafka-topics", "--alter", "--topic", topic, "--partitions", "5")
    assert tool(server, "kafka-topics", "--describe", "--topic", topic).count("Leader: ") == 5
    again = run_tool("kafka-topics", "--bootstrap-server", server.bootstrap, "--create", "--topic", topic, check=False)
    assert again.returncode == 1
    assert "already exists" in again.stdout + again.stderr
    tool(server, "kafka-topics", "--delete", "--topic", topic)
    assert topic not in tool(server, "kafka-topics", "--list").split()


def test_configs(server: Server, unique: Unique) -> None:
    topic = create(server, unique("topic"))
    where = ["--entity-type", "topics", "--entity-name", topic]
    tool(server, "kafka-configs", "--alter", *where, "--add-config", "retention.ms=1000,cleanup.policy=[compact,delete]")
    found = tool(server, "kafka-configs", "--describe", *where)
    assert "retention.ms=1000" in found
    assert "cleanup.policy=compact,delete" in found
    tool(server, "kafka-configs", "--alter", *where, "--delete-config", "retention.ms")
    assert "retention.ms" not in tool(server, "kafka-configs", "--describe", *where)
    assert "segment.bytes=" in tool(server, "kafka-configs", "--describe", *where, "--all")
    bad = [*where, "--alter", "--add-config", "retention.ms=soon"]
    assert run_tool("kafka-configs", "--bootstrap-server", server.bootstrap, *bad, check=False).returncode != 0


def test_quotas(server: Server, unique: Unique) -> None:
    name = unique("user")
    of_user, of_client = ["--entity-type", "users", "--entity-name", name], ["--entity-type", "clients", "--entity-default"]
    tool(server, "kafka-configs", "--alter", *of_user, "--add-config", "producer_byte_rate=1024,request_percentage=50")
    tool(server, "kafka-configs", "--alter", *of_user, *of_client, "--add-config", "consumer_byte_rate=2048")
    tool(
        server,
        "kafka-configs",
        "--alter",
        "--entity-type",
        "ips",
        "--entity-name",
        "10.1.1.1",
        "--add-config",
        "connection_creation_rate=7",
    )
    assert f"Quota configs for user-principal '{name}' are " in tool(server, "kafka-configs", "--describe", *of_user)
    found = tool(server, "kafka-configs", "--describe", *of_user, *of_client)
    assert f"'{name}', the default client-id are consumer_byte_rate=2048.0" in found
    assert "connection_creation_rate=7.0" in tool(server, "kafka-configs", "--describe", "--entity-type", "ips")
    tool(server, "kafka-configs", "--alter", *of_user, "--delete-config", "producer_byte_rate,request_percentage")
    assert name not in tool(server, "kafka-configs", "--describe", *of_user)
    bad = ["--alter", *of_user, "--add-config", "producer_byte_rate=-1"]
    assert run_tool("kafka-configs", "--bootstrap-server", server.bootstrap, *bad, check=False).returncode != 0


def test_consumer_groups(server: Server, unique: Unique) -> None:
    topic, group = create(server, unique("topic")), unique("group")
    tool(server, "kafka-console-producer", "--topic", topic, text="a\nb\nc\nd\n")
    reading = ["--group", group, "--from-beginning", "--max-messages", "4", "--timeout-ms", "20000"]
    assert tool(server, "kafka-console-consumer", "--topic", topic, *reading).split() == ["a", "b", "c", "d"]
    assert group in tool(server, "kafka-consumer-groups", "--list").split()
    (row,) = [
        line.split()
        for line in tool(server, "kafka-consumer-groups", "--describe", "--group", group).splitlines()
        if topic in line
    ]
    assert row[:6] == [group, topic, "0", "4", "4", "0"] or row[3:6] == ["4", "4", "0"]
    assert "Empty" in tool(server, "kafka-consumer-groups", "--describe", "--group", group, "--state")
    reset = ["--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute"]
    tool(server, "kafka-consumer-groups", *reset)
    again = ["--group", group, "--max-messages", "4", "--timeout-ms", "20000"]
    assert tool(server, "kafka-console-consumer", "--topic", topic, *again).split() == ["a", "b", "c", "d"]
    tool(server, "kafka-consumer-groups", "--delete-offsets", "--group", group, "--topic", topic)
    tool(server, "kafka-consumer-groups", "--delete", "--group", group)
    assert group not in tool(server, "kafka-consumer-groups", "--list").split()


def test_the_consumer_protocol(server: Server, unique: Unique) -> None:
    """Java's consumer of the consumer protocol (KIP-848), by name and by a pattern that the broker resolves."""
    topic, group = create(server, unique("topic"), "--partitions", "2"), unique("group")
    tool(server, "kafka-console-producer", "--topic", topic, text="a\nb\nc\n")
    reading = ("--command-property", "group.protocol=consumer", "--from-beginning", "--timeout-ms", "20000", "--group", group)
    found = tool(server, "kafka-console-consumer", "--topic", topic, "--max-messages", "3", *reading)
    assert sorted(found.split()) == ["a", "b", "c"]
    listed = tool(server, "kafka-consumer-groups", "--list", "--type", "consumer")
    assert group in listed.split()
    described = tool(server, "kafka-consumer-groups", "--describe", "--group", group)
    assert sum(int(line.split()[3]) for line in described.splitlines() if topic in line) == 3
    tool(server, "kafka-console-producer", "--topic", topic, text="d\n")
    found = tool(server, "kafka-console-consumer", "--include", f"{topic[:-1]}.*", "--max-messages", "1", *reading)
    assert found.split() == ["d"]
    settings = ("--entity-type", "groups", "--entity-name", group)
    tool(server, "kafka-configs", *settings, "--alter", "--add-config", "consumer.session.timeout.ms=50000")
    assert "consumer.session.timeout.ms=50000" in tool(server, "kafka-configs", *settings, "--describe")
    tool(server, "kafka-consumer-groups", "--delete", "--group", group)
    assert group not in tool(server, "kafka-consumer-groups", "--list").split()


def test_delete_records_and_get_offsets(server: Server, unique: Unique, tmp_path: Path) -> None:
    topic = create(server, unique("topic"))
    tool(server, "kafka-console-producer", "--topic", topic, text="a\nb\nc\nd\n")
    wanted = tmp_path / "wanted.json"
    wanted.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 3}]}))
    assert "low_watermark: 3" in tool(server, "kafka-delete-records", "--offset-json-file", str(wanted))
    assert tool(server, "kafka-get-offsets", "--topic", topic, "--time", "-2").strip() == f"{topic}:0:3"
    assert tool(server, "kafka-get-offsets", "--topic", topic).strip() == f"{topic}:0:4"


def test_what_the_broker_tells_of_itself(server: Server, unique: Unique) -> None:
    topic = create(server, unique("topic"))
    assert "ApiVersions(18): 0 to 4" in tool(server, "kafka-broker-api-versions")
    assert topic in tool(server, "kafka-log-dirs", "--describe", "--topic-list", topic)
    tool(server, "kafka-groups", "--list")


def test_performance_tools(server: Server, unique: Unique) -> None:
    topic = create(server, unique("topic"), "--partitions", "2")
    sending = ["--topic", topic, "--num-records", "20000", "--record-size", "100", "--throughput", "-1"]
    sent = run_tool("kafka-producer-perf-test", "--bootstrap-server", server.bootstrap, *sending)
    assert "20000 records sent" in sent.stdout
    reading = ["--topic", topic, "--num-records", "20000", "--timeout", "20000"]
    found = run_tool("kafka-consumer-perf-test", "--bootstrap-server", server.bootstrap, *reading)
    assert re.search(r"\b20000\b", found.stdout), found.stdout


def test_verifiable_producer_and_consumer(server: Server, unique: Unique) -> None:
    topic, group = create(server, unique("topic")), unique("group")
    sent = run_tool(
        "kafka-verifiable-producer", "--bootstrap-server", server.bootstrap, "--topic", topic, "--max-messages", "500"
    )
    events = [json.loads(line) for line in sent.stdout.splitlines() if line.startswith("{")]
    assert sum(each["name"] == "producer_send_success" for each in events) == 500
    arguments = ["--bootstrap-server", server.bootstrap, "--topic", topic, "--group-id", group, "--max-messages", "500"]
    found = run_tool("kafka-verifiable-consumer", *arguments, "--reset-policy", "earliest")
    events = [json.loads(line) for line in found.stdout.splitlines() if line.startswith("{")]
    assert sum(each["count"] for each in events if each["name"] == "records_consumed") == 500
    assert all(each["success"] for each in events if each["name"] == "offsets_committed")


def test_every_file_is_read_by_the_dump_tool(server_kind: str, tmp_path: Path) -> None:
    """All codecs, many segments, groups and idempotent producers; then every file of the stopped broker is dumped."""
    folder = tmp_path / "data"
    folder.mkdir()
    with running(server_kind, folder) as server:
        create(server, "dumped", "--partitions", "2", "--config", "segment.bytes=1048576", "--config", "index.interval.bytes=200")
        for codec in CODECS:
            for _ in range(3):
                produce(server, "dumped", messages() * 20, compression_type=codec, enable_idempotence=True, batch_num_messages=50)
        load = ["--topic", "dumped", "--num-records", "8000", "--record-size", "600", "--throughput", "-1"]
        run_tool("kafka-producer-perf-test", "--bootstrap-server", server.bootstrap, *load)
        reading = ["--group", "dumpers", "--from-beginning", "--max-messages", "100", "--timeout-ms", "20000"]
        tool(server, "kafka-console-consumer", "--topic", "dumped", *reading)
    files = sorted(
        each for each in folder.rglob("*") if each.suffix in {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}
    )
    files = [each for each in files if not each.parent.name.startswith("__cluster_metadata")]
    assert sum(each.suffix == ".log" and each.parent.name.startswith("dumped-") for each in files) > 3
    assert {each.suffix for each in files} >= {".log", ".index", ".timeindex", ".snapshot"}
    for start in range(0, len(files), 100):
        _dump(files[start : start + 100])
    offsets = [each for each in files if each.suffix == ".log" and each.parent.name.startswith("__consumer_offsets")]
    decoded = run_tool("kafka-dump-log", "--files", ",".join(map(str, offsets)), "--offsets-decoder").stdout
    assert '"group":"dumpers"' in decoded


def test_transactions_of_version_2_with_random_aborts(server: Server, unique: Unique) -> None:
    source, copy = create(server, unique("source"), "--partitions", "1"), create(server, unique("copy"), "--partitions", "1")
    name = unique("copier")
    load = ["--topic", source, "--num-records", "3000", "--record-size", "20", "--throughput", "-1", "--transactional-id", name]
    run_tool("kafka-producer-perf-test", "--bootstrap-server", server.bootstrap, *load, "--transaction-duration-ms", "20")
    copying = ["--input-topic", source, "--input-partition", "0", "--output-topic", copy, "--consumer-group", name]
    sizes = ["--max-messages", "3000", "--transaction-size", "250", "--enable-random-aborts"]
    run_tool(
        "kafka-transactional-message-copier", "--broker-list", server.bootstrap, "--transactional-id", name, *copying, *sizes
    )
    reading = ["--from-beginning", "--max-messages", "3000", "--timeout-ms", "30000", "--isolation-level", "read_committed"]
    there, copied = (tool(server, "kafka-console-consumer", "--topic", topic, *reading) for topic in (source, copy))
    assert len(there.splitlines()) == 3000
    assert copied == there
    listed = tool(server, "kafka-transactions", "list")
    assert re.search(rf"{name}\s+\d+\s+\d+\s+CompleteCommit", listed)
    assert "CompleteCommit" in tool(server, "kafka-transactions", "describe", "--transactional-id", name)


def _dump(files: list[Path]) -> None:
    dumped = run_tool("kafka-dump-log", "--deep-iteration", "--verify-index-only", "--files", ",".join(map(str, files)))
    printed = FIRST_OF_A_SEGMENT.sub("", dumped.stdout + dumped.stderr)
    for complaint in ("Mismatches in", "Exception", "invalid", "Non-consecutive", "isvalid: false", "not a valid", "corrupt"):
        assert complaint not in printed, [line for line in printed.splitlines() if complaint in line][:5]
    assert printed.count("Dumping ") == len(files)


def test_the_tools_run_by_hand() -> None:
    """The module is a command too."""
    command = [sys.executable, "-m", "tools.kafka", "kafka-topics", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    assert done.stdout.strip() == "4.3.0"
    assert tool_command("kafka-topics")[0].endswith("java")
