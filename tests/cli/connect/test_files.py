"""Connectors in files, and what `apply` makes of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barnabas.cli.connect.apply import changes_of
from barnabas.cli.connect.files import FileConnector, read_file, read_folder
from barnabas.cli.connect.offsets import parse_change
from barnabas.cli.errors import BadInput

CONFIG = {"connector.class": "FileStreamSource", "tasks.max": "1", "topics": "a,b", "fast": "true"}
YAML = """
name: a
initial_state: paused
config: {connector.class: FileStreamSource, tasks.max: 1, topics: [a, b], fast: true}
---
- {name: b, connector.class: FileStreamSink}
"""


def written(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_the_three_forms_say_the_same(tmp_path: Path) -> None:
    yaml = read_file(written(tmp_path, "a.yaml", YAML))
    assert yaml == [
        FileConnector("a", CONFIG, "PAUSED"),
        FileConnector("b", {"name": "b", "connector.class": "FileStreamSink"}),
    ]
    body = {"name": "a", "config": {**CONFIG, "tasks.max": 1, "fast": True}, "initial_state": "PAUSED"}
    assert read_file(written(tmp_path, "a.json", json.dumps(body))) == yaml[:1]
    flat = "name=a\n" + "".join(f"{key}={value}\n" for key, value in CONFIG.items())
    assert read_file(written(tmp_path, "a.properties", flat)) == [FileConnector("a", {"name": "a", **CONFIG})]
    assert yaml[0].request() == {"name": "a", "config": CONFIG, "initial_state": "PAUSED"}


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.txt", "", "is none of .json, .properties, .yaml, .yml"),
        ("a.json", "{", "is not JSON"),
        ("a.yaml", "a: [", "is not YAML"),
        ("a.json", "5", "no connector"),
        ("a.json", '[{"config": {}}, {"config": {}}]', "without a name"),
        ("a.json", '{"name": "x", "config": {"a": {}}}', "the value of a is text"),
        ("a.json", '{"name": "x", "config": {}, "state": "PAUSED"}', "not state"),
        ("a.json", '{"name": "x", "a": null}', "the value of a is text"),
    ],
)
def test_what_is_no_connector_is_named(tmp_path: Path, name: str, text: str, says: str) -> None:
    with pytest.raises(BadInput) as raised:
        read_file(written(tmp_path, name, text))
    assert says in raised.value.message


def test_a_folder_has_each_name_once(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has no connectors"):
        read_folder(str(tmp_path))
    written(tmp_path, "b.properties", "name=b\n")
    written(tmp_path, "a.json", '{"name": "a"}')
    written(tmp_path, "notes.txt", "x")
    assert [each.name for each in read_folder(str(tmp_path))] == ["a", "b"]
    written(tmp_path, "c.yaml", "{name: a}")
    with pytest.raises(BadInput, match="the connector a is in"):
        read_folder(str(tmp_path))


def test_apply_says_what_changes() -> None:
    wanted = [
        FileConnector("new", {"k": "1"}), FileConnector("same", {"k": "1", "db.password": "p"}),
        FileConnector("other", {"k": "2", "more.password": "hunter2"}),
    ]  # fmt: skip
    there = {
        "same": {"name": "same", "k": "1", "db.password": "[hidden]"}, "other": {"name": "other", "k": "1", "gone": "x"},
        "stranger": {},
    }  # fmt: skip
    lines = [line for each in changes_of(wanted, there, prune=False) for line in each.lines()]
    assert lines == [
        "+ new", "    + k=1", "    + name=new", "~ other", "    - gone=x", "    - k=1", "    + k=2", "    + more.password=[hidden]",
    ]  # fmt: skip
    assert [(each.kind, each.name) for each in changes_of(wanted, there, prune=True)][-1] == ("delete", "stranger")
    assert changes_of(wanted[1:2], there, prune=False) == []


@pytest.mark.parametrize(
    ("text", "partition", "offset"),
    [
        ("t:0=5", {"kafka_topic": "t", "kafka_partition": 0}, {"kafka_offset": 5}),
        ("a:b:1=null", {"kafka_topic": "a:b", "kafka_partition": 1}, None),
        ('{"f":"a=b"}={"p":1}', {"f": "a=b"}, {"p": 1}),
        ('{"f":"/a"}=null', {"f": "/a"}, None),
    ],
)
def test_offsets_are_given_as_text(text: str, partition: object, offset: object) -> None:
    assert parse_change(text) == {"partition": partition, "offset": offset}


@pytest.mark.parametrize("text", ["t=5", "t:x=5", "t:0=-1", '{"f":1}', '{"f":1}={', '{"f":1}=5', ""])
def test_other_texts_are_no_offsets(text: str) -> None:
    with pytest.raises(BadInput, match="--set"):
        parse_change(text)
