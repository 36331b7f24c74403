"""`barnabas produce --schema` and `barnabas consume --schema`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas.testing import Broker
from tests.cli.conftest import Command

AVRO = json.dumps({"type": "record", "name": "Order", "fields": [
    {"name": "id", "type": "long"},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    {"name": "on", "type": ["null", {"type": "int", "logicalType": "date"}], "default": None},
]})  # fmt: skip
LINE = b'{"id": 7, "price": "1.50", "on": "2026-01-02"}'


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def run(command: Command, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("BARNABAS_BOOTSTRAP_SERVERS", broker.bootstrap_servers)
    monkeypatch.setenv("SCHEMA_REGISTRY_URL", broker.schema_registry_url)
    return command


@pytest.mark.parametrize(
    ("ending", "text", "line"),
    [
        ("avsc", AVRO, LINE),
        ("json", '{"type":"object","properties":{"id":{"type":"integer"}}}', b'{"id": 7}'),
        ("proto", 'syntax = "proto3"; message M { int32 id = 1; bytes data = 2; }', b'{"id": 7, "data": "AAE="}'),
    ],
)
def test_lines_of_json_come_back(run: Command, name: str, tmp_path: Path, ending: str, text: str, line: bytes) -> None:
    file = tmp_path / f"schema.{ending}"
    file.write_text(text)
    assert run("produce", name, "--schema", file, stdin=line).code == 0
    ended = run("produce", name, "-K", ":", "--schema", "latest", stdin=b"k:" + line)  # with the latest schema of the subject
    assert (ended.code, ended.err) == (0, "")
    assert [json.loads(each) for each in run("consume", name, "--schema").lines] == [json.loads(line)] * 2
    as_json = [json.loads(each) for each in run("consume", name, "--schema", "--json").lines]
    assert [(each["key"], each["value"]) for each in as_json] == [(None, json.loads(line)), ("k", json.loads(line))]
    assert run("consume", name, "--schema", "-f", "%k", "-n", 2).text == "k"
    assert json.loads(run("schema", "get", f"{name}-value", "--json").text)["schemaType" if ending != "avsc" else "id"]


def test_keys_and_strings_in_json_records(run: Command, name: str, tmp_path: Path) -> None:
    schema = tmp_path / "text.avsc"
    schema.write_text('"string"')
    stdin = b'{"key": "a", "value": "7"}\n{"key": "b", "value": null}'
    ended = run("produce", name, "--format", "json", "--schema", schema, "--key-schema", schema, stdin=stdin)
    assert (ended.code, ended.err) == (0, "")
    lines = run("consume", name, "--schema", "--key-schema", "--json").lines
    found = [json.loads(each) for each in lines]
    assert [(each["key"], each["value"]) for each in found] == [("a", "7"), ("b", None)]
    assert run("produce", name, "--tombstone", "--key", '"c"', "--key-schema", "latest").code == 0
    assert run("consume", name, "--schema", "--key-schema", "-f", "%k ").text == '"a" "b" "c" '


def test_messages_of_protobuf(run: Command, name: str, tmp_path: Path) -> None:
    schema = tmp_path / "m.proto"
    schema.write_text('syntax = "proto3"; message A { int32 a = 1; } message B { string b = 1; }')
    assert run("produce", name, "--schema", schema, "--schema-message", "B", stdin=b'{"b": "x"}').code == 0
    assert run("consume", name, "--schema").text == '{"b": "x"}\n'
    ended = run("produce", name, "--schema", schema, "--schema-message", "C", stdin=b"{}")
    assert (ended.code, ended.err) == (2, "barnabas: the Protobuf schema has no message C; there are A, B\n")


def test_what_cannot_be_sent(run: Command, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = run("produce", name, "--schema", "latest", stdin=LINE)
    said = f"no schema is registered under the subject {name}-value: Subject '{name}-value' not found."
    assert (ended.code, ended.err) == (2, f"barnabas: {said}\n")
    schema = tmp_path / "order.avsc"
    schema.write_text(AVRO)
    for line, said in [
        (b"{", "record 2: the value is not JSON"),
        (b'{"id": "x"}', "record 2: the value does not fit the Avro schema: id: 'x' is not long"),
    ]:
        ended = run("produce", name, "--schema", schema, stdin=LINE + b"\n" + line)
        assert ended.code == 2
        assert ended.err.startswith(f"barnabas: {said}")
        assert ended.err.count("\n") == 1
    assert len(run("consume", name).out) > 0  # the records before the wrong one were sent
    schema.write_text("{")
    ended = run("produce", name, "--schema", schema, stdin=LINE)
    assert (ended.code, ended.err.count("\n")) == (1, 1)
    ended = run("produce", name, "--schema-message", "M", "--key-schema", "latest", stdin=LINE)
    assert (ended.code, ended.err) == (2, "barnabas: --schema-message goes with --schema\n")
    monkeypatch.setenv("SCHEMA_REGISTRY_URL", "http://127.0.0.1:1")
    for arguments in (["produce", name, "--schema", "latest"], ["consume", name, "--schema"]):
        ended = run(*arguments, stdin=LINE)
        assert (ended.code, "cannot reach the schema registry at http://127.0.0.1:1" in ended.err) == (1, True)


def test_what_cannot_be_decoded_is_named(run: Command, broker: Broker, name: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for value in (b"text", b"\0\0\0\xff\xffx", b"more"):
        producer.produce(name, value)
    producer.flush()
    ended = run("consume", name, "--schema")
    assert (ended.code, ended.lines) == (1, [])
    assert ended.err.splitlines() == [
        f"{name} partition 0 offset 0: cannot decode the value: it carries no id of a schema",
        f"{name} partition 0 offset 1: cannot decode the value: no schema with the id 65535 is registered",
        f"{name} partition 0 offset 2: cannot decode the value: it carries no id of a schema",
        "barnabas: 3 records could not be decoded",
    ]


def test_an_id_a_subject_and_ids_in_headers(run: Command, name: str, tmp_path: Path) -> None:
    schema = tmp_path / "order.avsc"
    schema.write_text(AVRO)
    made = run("schema", "register", f"{name}-orders", schema, "--json").json
    by_id = ("--schema", str(made["id"]), "--schema-ids", "headers")
    assert run("produce", name, *by_id, stdin=LINE).code == 0
    by_subject = ("--schema", "latest", "--schema-subject", f"{name}-orders")
    again = run("consume", name, "--schema", "--json").out
    assert run("produce", name, "--format", "json", *by_subject, stdin=again).code == 0
    found = [json.loads(each) for each in run("consume", name, "--schema", "--json").lines]
    assert [each["value"] for each in found] == [json.loads(LINE)] * 2
    assert [[header["key"] for header in each["headers"]] for each in found] == [["__value_schema_id"], []]
    ended = run("produce", name, "--schema", str(2**31 - 1), stdin=LINE)
    assert (ended.code, ended.err) == (2, f"barnabas: no schema with the id {2**31 - 1} is registered\n")


def test_a_missing_library_is_one_line(run: Command, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = tmp_path / "order.avsc"
    schema.write_text(AVRO)
    missing: Any = None
    for module in [each for each in sys.modules if each.startswith("barnabas.schemas.avro_codec")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "fastavro", missing)
    ended = run("produce", name, "--schema", schema, stdin=LINE)
    assert (ended.code, ended.err) == (1, "barnabas: Avro schemas need fastavro: pip install 'barnabas[registry]'\n")
