"""A cluster of three brokers as Kafka's own tools see it: topics, moves with a throttle, elections, settings, the cluster itself.

With `--server=kafka` the same is asked of three nodes of Apache Kafka, which shows that the tests are right.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tools.kafka import run_tool

from tests.interop.conftest import running_three

pytestmark = [
    pytest.mark.interop,
    # a tool takes 1 s on an idle machine, and many seconds on a busy one
    pytest.mark.timeout(600),
]
DEADLINE_S = 60.0
Tool = Callable[..., str]


@pytest.fixture(scope="module")
def bootstrap(server_kind: str) -> Iterator[str]:
    with running_three(server_kind) as servers:
        yield servers


@pytest.fixture
def tool(bootstrap: str) -> Tool:
    """Runs a tool that must succeed; returns its output."""
    return lambda name, *arguments: run_tool(name, *place(name, bootstrap, arguments)).stdout


@pytest.fixture
def refused(bootstrap: str) -> Tool:
    """Runs a tool that must end badly; all that it said."""

    def run(name: str, *arguments: str) -> str:
        done: subprocess.CompletedProcess[str] = run_tool(name, *place(name, bootstrap, arguments), check=False)
        assert done.returncode != 0, done.stdout
        return done.stdout + done.stderr

    return run


def place(name: str, bootstrap: str, arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Where the tool wants the address: kafka-cluster behind its command."""
    server = ("--bootstrap-server", bootstrap)
    return (arguments[0], *server, *arguments[1:]) if name == "kafka-cluster" else (*server, *arguments)


def described(tool: Tool, topic: str) -> dict[int, dict[str, Any]]:
    """Leader, replicas and in-sync replicas of each partition by kafka-topics."""
    line = re.compile(
        r"Partition: (\d+)\s+Leader: (\d+|none)\s+Replicas: ([\d,]+)\s+Isr: ([\d,]+)\s+Elr:[ \t]*\S*\s+LastKnownElr:"
    )
    return {
        int(number): {
            "leader": leader,
            "replicas": [int(each) for each in replicas.split(",")],
            "isr": {int(each) for each in isr.split(",")},
        }
        for number, leader, replicas, isr in line.findall(tool("kafka-topics", "--describe", "--topic", topic))
    }


def plan(path: Path, topic: str, moves: dict[int, list[int]]) -> str:
    partitions = [{"topic": topic, "partition": number, "replicas": replicas} for number, replicas in moves.items()]
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(path)


def test_topics_are_made_enlarged_described_and_deleted(tool: Tool, refused: Tool) -> None:
    assert "Created topic made." in tool(
        "kafka-topics", "--create", "--topic", "made", "--partitions", "3", "--replication-factor", "2"
    )
    partitions = described(tool, "made")
    assert [len(partition["replicas"]) for partition in partitions.values()] == [2, 2, 2]
    assert all(
        int(each["leader"]) == each["replicas"][0] and each["isr"] == set(each["replicas"]) for each in partitions.values()
    )
    tool("kafka-topics", "--alter", "--topic", "made", "--partitions", "5")
    assert len(described(tool, "made")) == 5
    assert "Unable to replicate the partition 4 time(s)" in refused(
        "kafka-topics", "--create", "--topic", "wide", "--partitions", "1", "--replication-factor", "4"
    )
    assert tool("kafka-topics", "--describe", "--unavailable-partitions").strip() == ""
    tool("kafka-topics", "--delete", "--topic", "made")
    assert "made" not in tool("kafka-topics", "--list").split()


def test_moves_are_planned_throttled_verified_and_led_by_the_preferred(tool: Tool, tmp_path: Path) -> None:
    tool("kafka-topics", "--create", "--topic", "moving", "--replica-assignment", "1:2,2:3")
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": "moving"}]}))
    generated = tool(
        "kafka-reassign-partitions", "--generate", "--topics-to-move-json-file", str(topics), "--broker-list", "1,2,3"
    )
    current = json.loads(generated.splitlines()[1])
    assert [each["replicas"] for each in current["partitions"]] == [[1, 2], [2, 3]]
    moves = plan(tmp_path / "moves.json", "moving", {0: [3, 1], 1: [2, 3, 1]})
    began = tool("kafka-reassign-partitions", "--execute", "--reassignment-json-file", moves, "--throttle", "5000000")
    assert "The inter-broker throttle limit was set to 5000000 B/s" in began
    assert "Successfully started partition reassignments for moving-0,moving-1" in began
    settings = tool("kafka-configs", "--describe", "--entity-type", "topics", "--entity-name", "moving")
    assert "follower.replication.throttled.replicas=0:3,1:1 " in settings
    assert "leader.replication.throttled.replicas=0:1,0:2,1:2,1:3 " in settings
    assert "leader.replication.throttled.rate=5000000 " in tool(
        "kafka-configs", "--describe", "--entity-type", "brokers", "--entity-name", "3"
    )
    deadline = time.monotonic() + DEADLINE_S
    while "is still in progress" in (ended := tool("kafka-reassign-partitions", "--verify", "--reassignment-json-file", moves)):
        assert time.monotonic() < deadline, ended
    assert "Reassignment of partition moving-0 is completed." in ended
    assert "Clearing broker-level throttles on brokers 1,2,3" in ended
    for kind, name in (("topics", "moving"), ("brokers", "3")):
        assert "throttled" not in tool("kafka-configs", "--describe", "--entity-type", kind, "--entity-name", name)
    assert [each["replicas"] for each in described(tool, "moving").values()] == [[3, 1], [2, 3, 1]]
    elected = tool("kafka-leader-election", "--election-type", "preferred", "--topic", "moving", "--partition", "0")
    assert "moving-0" in elected  # elected now or earlier
    assert described(tool, "moving")[0]["leader"] == "3"


def test_moves_are_listed_and_cancelled(tool: Tool, tmp_path: Path) -> None:
    """Nothing passes a throttle of one byte a second, so the move stays under way."""
    tool("kafka-topics", "--create", "--topic", "held", "--replica-assignment", "1:2")
    tool("kafka-producer-perf-test", "--topic", "held", "--num-records", "1000", "--record-size", "1000", "--throughput", "-1")
    moves = plan(tmp_path / "moves.json", "held", {0: [1, 3]})
    tool("kafka-reassign-partitions", "--execute", "--reassignment-json-file", moves, "--throttle", "1")
    listed = tool("kafka-reassign-partitions", "--list")
    assert "held-0: replicas: 1,3,2. adding: 3. removing: 2." in listed
    assert "is still in progress" in tool("kafka-reassign-partitions", "--verify", "--reassignment-json-file", moves)
    cancelled = tool("kafka-reassign-partitions", "--cancel", "--reassignment-json-file", moves)
    assert "Successfully cancelled partition reassignment for: held-0" in cancelled
    assert "No partition reassignments found." in tool("kafka-reassign-partitions", "--list")
    assert described(tool, "held")[0]["replicas"] == [1, 2]


def test_elections_say_what_they_could_not_do(tool: Tool, refused: Tool) -> None:
    tool("kafka-topics", "--create", "--topic", "elected", "--replica-assignment", "2:1")
    election = "kafka-leader-election", "--election-type"
    assert "Valid replica already elected for partitions elected-0" in tool(
        *election, "preferred", "--topic", "elected", "--partition", "0"
    )
    assert "Valid replica already elected" in tool(*election, "unclean", "--topic", "elected", "--partition", "0")
    assert "UnknownTopicOrPartition" in refused(*election, "preferred", "--topic", "nothing", "--partition", "0")


def test_settings_of_all_brokers_of_one_and_of_topics(tool: Tool, refused: Tool) -> None:
    configs = "kafka-configs"
    default, one = ("--entity-type", "brokers", "--entity-default"), ("--entity-type", "brokers", "--entity-name", "2")
    tool(configs, "--alter", *default, "--add-config", "log.retention.ms=1000000")
    assert "log.retention.ms=1000000 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG" in tool(
        configs, "--describe", *default
    )
    tool(configs, "--alter", *one, "--add-config", "log.retention.ms=2000000")
    told = tool(configs, "--describe", *one)
    assert "DYNAMIC_BROKER_CONFIG:log.retention.ms=2000000, DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=1000000" in told
    for which in (default, one):
        tool(configs, "--alter", *which, "--delete-config", "log.retention.ms")
    tool("kafka-topics", "--create", "--topic", "set", "--partitions", "1", "--replication-factor", "3")
    topic = "--entity-type", "topics", "--entity-name", "set"
    tool(configs, "--alter", *topic, "--add-config", "cleanup.policy=[compact,delete],retention.ms=5000")
    told = tool(configs, "--describe", *topic)
    assert "cleanup.policy=compact,delete sensitive=false" in told
    assert "retention.ms=5000 sensitive=false" in told
    assert "Unknown topic config name: nope" in refused(configs, "--alter", *topic, "--add-config", "nope=5")
    assert (
        "read only" in (said := refused(configs, "--alter", *default, "--add-config", "log.dirs=x").lower())
        or "cannot update" in said
    )


def test_the_cluster_itself(tool: Tool, refused: Tool) -> None:
    assert re.search(r"Cluster ID: [\w-]{22}\b", tool("kafka-cluster", "cluster-id"))
    listed = [line.split() for line in tool("kafka-cluster", "list-endpoints").splitlines()]
    assert [line[0] for line in listed[1:]] == ["1", "2", "3"]
    assert {line[4] for line in listed[1:]} == {"unfenced"}
    assert "BrokerIdNotRegisteredException" in refused("kafka-cluster", "unregister", "--id", "9")
    status = dict(
        line.split(":", 1) for line in tool("kafka-metadata-quorum", "describe", "--status").splitlines() if ":" in line
    )
    assert status["LeaderId"].strip() in {"1", "2", "3"}
    assert [voter["id"] for voter in json.loads(status["CurrentVoters"])] == [1, 2, 3]
    rows = [line.split() for line in tool("kafka-metadata-quorum", "describe", "--replication").splitlines()[1:]]
    assert {row[0]: row[-1] for row in rows} == {
        each: "Leader" if each == status["LeaderId"].strip() else "Follower" for each in "123"
    }
    assert all(int(row[2]) > 0 for row in rows)
