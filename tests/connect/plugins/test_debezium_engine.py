"""Connectors of Debezium, without its JVM: the config, the link to the process, changes as records."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.debezium_engine import source
from barnabas.connect.plugins.debezium_engine.link import End, Part, receive, send
from barnabas.connect.plugins.debezium_engine.source import CLASS, DebeziumSource, properties_of, tables_of

CONFIG = {CLASS: "io.debezium.Some", "debezium.jvm.options": ""}
FAKE = """
import os, socket, sys, msgspec
from barnabas.connect.plugins.debezium_engine.link import *
task = msgspec.json.decode(os.environ[TASK_VARIABLE], type=Task)
link = socket.socket(fileno=task.descriptor)
{does}
"""


def envelope(value: dict[str, Any]) -> bytes:
    fields = [{"type": "int64", "optional": True, "field": name} for name in value]
    return json.dumps({"schema": {"type": "struct", "optional": False, "fields": fields}, "payload": value}).encode()


def test_messages_arrive_whole() -> None:
    ours, theirs = socket.socketpair()
    part = Part([("t", b"k", None), ("u", None, b"v" * 100_000)], {"server": "s"}, {"lsn": 1})
    with ours, theirs:
        send(theirs, part)
        send(theirs, End("broken"))
        assert receive(ours) == part
        assert receive(ours) == End("broken")
        theirs.close()
        assert receive(ours) is None


def test_the_keys_of_connect_are_not_those_of_debezium() -> None:
    found = properties_of(
        {**CONFIG, "name": "c", "topic.prefix": "p", "tasks.max": 1, "value.converter": "X", "database.port": 5, "a": None}
    )
    assert found == {"name": "c", "topic.prefix": "p", "database.port": "5", "connector.class": "io.debezium.Some"}


def test_changes_become_records_of_their_topics() -> None:
    part = Part(
        [("t", envelope({"id": 1}), envelope({"n": 2})), ("u", None, envelope({"x": 3})), ("t", envelope({"id": 1}), None)],
        {},
        {},
    )
    found = {topic: table.to_pylist() for topic, table in tables_of(part)}
    assert found == {
        "t": [{"key": {"id": 1}, "value": {"n": 2}}, {"key": {"id": 1}, "value": None}], "u": [{"key": None, "value": {"x": 3}}],
    }  # fmt: skip
    with pytest.raises(ConnectError, match="a value of Debezium for t cannot be read"):
        list(tables_of(Part([("t", None, b"{")], {}, {})))


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets another program take the place of the process with the JVM."""

    def install(does: str) -> Iterator[Any]:
        (tmp_path / "process.py").write_text(FAKE.format(does=does))
        monkeypatch.setattr(source, "COMMAND", (sys.executable, str(tmp_path / "process.py")))
        return DebeziumSource().read(CONFIG, [({"server": "s"}, {"lsn": 7})])

    return install


def test_the_process_gets_the_offsets_and_ends_with_the_reader(fake: Any) -> None:
    running = fake("send(link, Part([], *reversed(task.offsets[0])))\nlink.recv(1)")
    with closing(running):
        batch = next(each for each in running if each is not None)
        assert (batch.partition, batch.offset) == ({"lsn": 7}, {"server": "s"})


@pytest.mark.parametrize(
    ("does", "text"),
    [("send(link, End('no such host'))", "Debezium has ended: no such host"), ("sys.exit(3)", "has ended with the code 3")],
)
def test_the_end_of_the_process_is_an_error(fake: Any, does: str, text: str) -> None:
    with pytest.raises(ConnectError, match=text):
        list(fake(does))


def test_a_missing_package_says_what_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "find_spec", lambda _: None)
    assert DebeziumSource.validate(CONFIG) == {CLASS: ["Debezium is not installed here: pip install 'barnabas[debezium]'"]}
