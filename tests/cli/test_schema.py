"""`barnabas schema`: registering, showing, checking and deleting, as a user does it in an empty folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.testing import Broker
from tests.cli.conftest import UNUSED, Command

V1 = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'
V2 = V1.replace("]}", ',{"name":"note","type":"string","default":""}]}')
BROKEN = V1.replace("]}", ',{"name":"price","type":"double"}]}')
PROTO = 'syntax = "proto3";\n\nmessage Order {\n  int64 id = 1;\n}'


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with Broker() as broker:
        yield broker.schema_registry_url


@pytest.fixture
def schema(command: Command, url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """`barnabas schema …` in an empty folder."""
    monkeypatch.setenv("SCHEMA_REGISTRY_URL", url)
    monkeypatch.chdir(tmp_path)
    return lambda *arguments, stdin=b"": command("schema", *arguments, stdin=stdin)


def test_register_evolve_check_and_diff(schema: Command, name: str) -> None:
    for file, text in (("v1.avsc", V1), ("v2.avsc", V2), ("broken.avsc", BROKEN)):
        Path(file).write_text(text)
    first = schema("register", name, "v1.avsc", "--json").json
    assert (first["version"], first["schema"]) == (1, V1)
    again = schema("register", name, stdin=V1.encode())
    assert again.text == f"{name} has this schema as version 1, id {first['id']}\n"
    assert schema("check", name, "v2.avsc").text == f"compatible with {name}\n"
    assert schema("register", name, "v2.avsc").code == 0

    misplaced = schema("diff", name, "v2.avsc")
    assert (misplaced.code, "'v2.avsc' is a file; give it by --file" in misplaced.err) == (2, True)
    refused = schema("check", name, "broken.avsc")
    assert (refused.code, refused.out, len(refused.err.splitlines())) == (1, b"", 1)
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in refused.err
    as_json = schema("check", name, "broken.avsc", "--json")
    assert (as_json.code, as_json.json["is_compatible"]) == (1, False)
    assert schema("register", name, "broken.avsc").code == 1

    told = schema("diff", name, "--file", "broken.avsc").lines
    assert told[0] == "Consumers with the schema of broken.avsc cannot read records of version 1, 2:"
    assert told[-1] == "Records of the schema of broken.avsc are read by consumers with version 1, 2."
    rows = schema("diff", name, "--file", "broken.avsc", "--json").json
    assert {(row["version"], row["reader"], row["kind"]) for row in rows} == {
        (1, "new", "READER_FIELD_MISSING_DEFAULT_VALUE"), (2, "new", "READER_FIELD_MISSING_DEFAULT_VALUE"),
    }  # fmt: skip
    assert schema("diff", name, 1, 2).lines == [
        "Consumers with version 2 read records of version 1.",
        "Records of version 2 are read by consumers with version 1.",
    ]


def test_get_and_list(schema: Command, name: str) -> None:
    Path("order.proto").write_text(PROTO)
    assert schema("list", "--prefix", name).err == "no schema is registered\n"
    made = schema("register", f"{name}-p", "order.proto", "--metadata", "owner=x", "--json").json
    Path("v1.avsc").write_text(V1)
    Path("v2.avsc").write_text(V2)
    schema("register", f"{name}-a", "v1.avsc")
    schema("register", f"{name}-a", "v2.avsc")
    assert schema("get", f"{name}-p").text.strip() == PROTO
    found = schema("get", "--id", made["id"], "--json").json
    assert (found["schemaType"], found["metadata"]) == ("PROTOBUF", {"properties": {"owner": "x"}})
    assert json.loads(schema("get", f"{name}-a", 1).text) == json.loads(V1)
    assert schema("get", f"{name}-a").text.startswith('{\n  "type": "record"')

    table = [line.split() for line in schema("list", "--prefix", name).lines]
    assert table[0] == ["SUBJECT", "VERSIONS", "ID", "TYPE"]
    assert [row[:2] + row[3:] for row in table[1:]] == [[f"{name}-a", "1-2", "AVRO"], [f"{name}-p", "1", "PROTOBUF"]]
    assert [row["versions"] for row in schema("list", f"{name}-a", "--json").json] == ["1", "2"]


def test_a_reference_is_named_and_followed(schema: Command, name: str) -> None:
    schema("register", f"{name}-base", stdin=b'{"type":"record","name":"Base","fields":[]}')
    text = b'{"type":"record","name":"Whole","fields":[{"name":"base","type":"Base"}]}'
    made = schema("register", name, "--reference", f"Base={name}-base:1", "--json", stdin=text).json
    assert made["references"] == [{"name": "Base", "subject": f"{name}-base", "version": 1}]
    assert schema("diff", name).text == "version 1 is the only one\n"
    changed = text.replace(b'"Base"}', b'["null","Base"],"default":null}')
    told = schema("diff", name, "--file", "-", "--reference", f"Base={name}-base:latest", stdin=changed)
    assert told.lines[:2] == [
        "Consumers with the schema of - read records of version 1.",
        "Records of the schema of - cannot be read by consumers with version 1:",
    ]
    assert schema("delete", f"{name}-base").code == 1


def test_delete(schema: Command, name: str) -> None:
    schema("register", name, stdin=V1.encode())
    schema("register", name, stdin=V2.encode())
    assert schema("delete", name, 1).text == f"deleted: {name} 1\n"
    assert schema("delete", name, "--permanent").code == 1
    assert schema("delete", name, "--json").json == {"subject": name, "versions": [2]}
    assert schema("get", name).code == 1
    assert schema("get", name, 2, "--deleted").code == 0
    assert schema("delete", name, "--permanent").text == f"deleted for good: {name} 1-2\n"
    assert schema("get", name, 2, "--deleted").code == 1


def test_levels_and_modes(schema: Command, name: str) -> None:
    assert schema("compatibility").text == "BACKWARD for all subjects without one of their own\n"
    assert schema("compatibility", name, "--set", "full", "--normalize").text == f"FULL for {name}\n"
    assert schema("compatibility", name, "--json").json == {"compatibilityLevel": "FULL", "normalize": True}
    assert schema("compatibility", name, "--remove").text == f"BACKWARD for {name}\n"
    assert schema("mode").text == "READWRITE for all subjects without one of their own\n"
    assert schema("mode", name, "--set", "readonly").text == f"READONLY for {name}\n"
    assert schema("register", name, stdin=V1.encode()).code == 1
    assert schema("mode", name, "--remove", "--json").json == {"mode": "READWRITE"}
    assert schema("register", name, stdin=V1.encode()).code == 0
    assert schema("mode", name, "--set", "import").code == 1
    assert schema("mode", name, "--set", "import", "--force").code == 0
    assert schema("mode", name, "--remove").code == 0


@pytest.mark.parametrize(
    ("arguments", "stdin", "code", "said"),
    [
        (("register", "s", "nowhere.avsc"), b"", 2, "cannot read nowhere.avsc"),
        (("register", "s"), b"\xff", 2, "cannot read -"),
        (("register", "s"), b"{", 1, "42201"),
        (("register", "s", "--type", "xml"), b"", 2, "xml"),
        (("register", "s", "--reference", "a"), b"", 2, "NAME=SUBJECT:VERSION"),
        (("register", "s", "--reference", "a=b:0"), b"", 2, "is no version"),
        (("register", "s", "--reference", "a=b:1"), b'"int"', 1, "No schema reference found"),
        (("register", "s", "--metadata", "a"), b'"int"', 2, "--metadata"),
        (("register", "__GLOBAL"), b'"int"', 1, "42208"),
        (("get",), b"", 2, "SUBJECT or --id"),
        (("get", "s", "--id", "1"), b"", 2, "SUBJECT or --id"),
        (("get", "none"), b"", 1, "40401"),
        (("get", "s", "x"), b"", 2, "is no version"),
        (("get", "--id", "2000000000"), b"", 1, "40403"),
        (("get", "--id", "0"), b"", 2, "--id"),
        (("list", "none"), b"", 1, "40401"),
        (("check", "s", "nowhere.avsc"), b"", 2, "cannot read"),
        (("check", "s"), b"{", 1, "Invalid schema"),
        (("diff", "none"), b"", 1, "40401"),
        (("delete", "none"), b"", 1, "40401"),
        (("delete", "s", "0"), b"", 2, "is no version"),
        (("compatibility", "s", "--set", "odd"), b"", 2, "odd"),
        (("compatibility", "s", "--set", "full", "--remove"), b"", 2, "exclude each other"),
        (("compatibility", "none", "--remove"), b"", 1, "40401"),
        (("mode", "s", "--set", "odd"), b"", 2, "odd"),
        (("mode", "s", "--set", "import", "--remove"), b"", 2, "exclude each other"),
        (("import",), b"", 2, "FILE or --from"),
        (("import", "-", "--from", "http://a"), b"", 2, "FILE or --from"),
        (("import", "-"), b"{", 2, "line 1 is no JSON"),
        (("import", "-"), b'{"subject":"s"}\n', 2, "line 1 is neither a schema nor a setting"),
        (("export", "no/such/folder"), b"", 1, "cannot write"),
        (("list", "--schema-registry", "ftp://a"), b"", 2, "is no URL"),
        (("list", "--registry-config", "nowhere"), b"", 2, "nowhere"),
        (("list", "--schema-registry", f"http://{UNUSED}"), b"", 1, "http://127.0.0.1:1"),
    ],
)  # fmt: skip
def test_errors_are_one_line(schema: Command, arguments: tuple[str, ...], stdin: bytes, code: int, said: str) -> None:
    ended = schema(*arguments, stdin=stdin)
    assert (ended.code, ended.out) == (code, b""), ended
    assert said in ended.err
    assert len([line for line in ended.err.splitlines() if not line.startswith(("Usage:", "Try "))]) <= 1, ended.err
