"""`barnabas group`."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.cli.errors import BadInput
from barnabas.cli.group import lag_rows
from barnabas.cli.offsets import parse_scope
from tests.cli.conftest import Command


@pytest.fixture
def group(kafka_command: Command, topic: str) -> str:
    """A group that read 3 of the 5 records of partition 0 and none of partition 1's two."""
    name = f"group-{topic}"
    assert kafka_command("produce", topic, "-p", 0, stdin=b"a\nb\nc\n").code == 0
    assert kafka_command("consume", topic, "-g", name).code == 0
    assert kafka_command("produce", topic, "-p", 0, stdin=b"d\ne\n").code == 0
    assert kafka_command("produce", topic, "-p", 1, stdin=b"f\ng\n").code == 0
    return name


@pytest.fixture
def member(kafka_command: Command, topic: str, bootstrap: str) -> Iterator[str]:
    """A group with one member, which has printed a record."""
    assert kafka_command("produce", topic, "-p", 0, stdin=b"a\n").code == 0
    name = f"live-{topic}"
    arguments = [sys.executable, "-m", "barnabas.cli", "consume", topic, "-b", bootstrap, "-g", name, "--follow"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, start_new_session=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"a\n"
            yield name
            process.send_signal(signal.SIGINT)
            process.wait(30)
        finally:
            process.kill()
    assert process.returncode == 0


def offsets(command: Command, group: str) -> dict[int, int]:
    (described,) = command("group", "describe", group, "--json").json
    return {p["partition"]: p["committed"] for p in described["partitions"]}


def test_lag(kafka_command: Command, group: str, topic: str) -> None:
    (described,) = kafka_command("group", "describe", group, "--json").json
    assert described["state"] == "empty"
    assert described["partitions"][0]["committed"] == 3
    assert described["partitions"][0]["lag"] == 2
    lines = kafka_command("group", "describe", group).lines
    assert [topic, "0", "3", "5", "2", "-", "-"] in [line.split() for line in lines]
    assert group in [row["group"] for row in kafka_command("group", "list", "--json").json]
    assert group in [row["group"] for row in kafka_command("group", "list", "--state", "empty", "--json").json]
    assert group not in [row["group"] for row in kafka_command("group", "list", "--state", "stable", "--json").json]


def test_members(kafka_command: Command, member: str, topic: str) -> None:
    (described,) = kafka_command("group", "describe", member, "--json").json
    assert described["state"] == "stable"
    assert [m["partitions"] for m in described["members"]] == [[f"{topic}:0", f"{topic}:1"]]
    assert "MEMBER" in kafka_command("group", "describe", member, "--members").text


def test_a_group_with_members_is_left_alone(kafka_command: Command, member: str, topic: str) -> None:
    ended = kafka_command("group", "reset-offsets", member, "-t", topic, "--to-earliest", "--execute")
    assert ended.code == 1
    assert "active members" in ended.err
    assert kafka_command("group", "delete", member).code == 1


def test_a_reset_is_only_shown_until_it_is_executed(kafka_command: Command, group: str) -> None:
    ended = kafka_command("group", "reset-offsets", group, "--all-topics", "--to-earliest")
    assert ended.code == 0
    assert "nothing committed" in ended.text
    assert offsets(kafka_command, group)[0] == 3
    assert kafka_command("group", "reset-offsets", group, "--all-topics", "--to-earliest", "--execute").code == 0
    assert offsets(kafka_command, group)[0] == 0


@pytest.mark.parametrize(
    ("options", "offset"),
    [
        (["--to-earliest"], 0),
        (["--to-latest"], 5),
        (["--to-current"], 3),
        (["--to-offset", "1"], 1),
        (["--to-offset", "99"], 5),
        (["--shift-by", "1"], 4),
        (["--shift-by", "-9"], 0),
        (["--to-datetime", "2000-01-01T00:00:00"], 0),
        (["--to-datetime", "2100-01-01T00:00:00"], 5),
        (["--by-duration", "PT1H"], 0),
    ],
)
def test_every_way_to_reset(kafka_command: Command, group: str, topic: str, options: list[str], offset: int) -> None:
    ended = kafka_command("group", "reset-offsets", group, "-t", f"{topic}:0", *options, "--json")
    assert ended.json["executed"] is False
    assert [(row["partition"], row["committed"], row["new"]) for row in ended.json["offsets"]] == [(0, 3, offset)]


def test_offsets_go_to_a_file_and_come_back(kafka_command: Command, group: str, topic: str, tmp_path: Path) -> None:
    exported = kafka_command("group", "reset-offsets", group, "-t", topic, "--to-offset", 1, "--export")
    assert exported.lines == [f"{topic},0,1", f"{topic},1,1"]
    (tmp_path / "offsets.csv").write_bytes(exported.out)
    assert kafka_command("group", "reset-offsets", group, "--from-file", tmp_path / "offsets.csv", "--execute").code == 0
    assert offsets(kafka_command, group) == {0: 1, 1: 1}
    (tmp_path / "offsets.csv").write_text("topic,0\n")
    ended = kafka_command("group", "reset-offsets", group, "--from-file", tmp_path / "offsets.csv")
    assert ended.code == 2
    assert "line 1" in ended.err


def test_a_reset_wants_one_place_and_a_scope(kafka_command: Command, group: str, topic: str) -> None:
    assert kafka_command("group", "reset-offsets", group, "-t", topic).code == 2
    assert kafka_command("group", "reset-offsets", group, "-t", topic, "--to-latest", "--to-earliest").code == 2
    assert kafka_command("group", "reset-offsets", group, "--to-latest").code == 2
    assert kafka_command("group", "reset-offsets", group, "-t", topic, "--all-topics", "--to-latest").code == 2
    assert kafka_command("group", "reset-offsets", group, "-t", f"{topic}:x", "--to-latest").code == 2
    assert kafka_command("group", "reset-offsets", group, "-t", "missing-topic", "--to-latest").code == 1


def test_offsets_of_a_topic_are_forgotten(kafka_command: Command, group: str, topic: str) -> None:
    assert kafka_command("group", "delete-offsets", group, "-t", f"{topic}:0", "--json").json == {
        "group": group,
        "deleted": [f"{topic}:0"],
    }
    assert 0 not in offsets(kafka_command, group) if kafka_command("group", "describe", group).code == 0 else True
    assert kafka_command("group", "delete-offsets", group, "-t", f"{topic}:0").code == 1


def test_groups_are_deleted(kafka_command: Command, group: str) -> None:
    assert kafka_command("group", "delete", group).text == f"deleted group {group}\n"
    ended = kafka_command("group", "describe", group)
    assert ended.code == 1
    assert ended.err == f"barnabas: group {group}: there is no such group\n"
    assert kafka_command("group", "delete", group).code == 1


def test_lag_is_unknown_where_an_offset_is() -> None:
    rows = lag_rows({("a", 0): 3, ("gone", 0): 1}, {("a", 0): 10, ("a", 1): 5}, {("a", 1): {"member": "m"}})
    assert [(r["topic"], r["partition"], r["lag"]) for r in rows] == [("a", 0, 7), ("a", 1, None), ("gone", 0, None)]


def test_scopes() -> None:
    assert parse_scope("t") == ("t", [])
    assert parse_scope("t:0,2") == ("t", [0, 2])
    for text in ("t:", ":1", "t:a"):
        with pytest.raises(BadInput):
            parse_scope(text)
