"""`barnabas schema export` and `import`: a registry moves with its ids, contexts, levels and modes."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.cli import registry_connection
from barnabas.schemas.registry_client import RegistryClient, RegistryUnreachable
from barnabas.testing import Broker
from tests.cli.conftest import Command

RECORD = '{"type":"record","name":"R","fields":[]}'
USES = '{"type":"record","name":"U","fields":[{"name":"r","type":"R"}]}'


@pytest.fixture
def urls() -> Iterator[tuple[str, str]]:
    with Broker() as one, Broker() as other:
        yield one.schema_registry_url, other.schema_registry_url


def fill(url: str) -> None:
    """Schemas with a reference, a gap in versions and ids, a deleted version, a context, a level and a mode."""
    with RegistryClient(url) as client:
        for number in range(3):
            client.post("subjects", "gone", "versions", body={"schema": f'{{"type":"fixed","name":"F","size":{number + 1}}}'})
            client.put("config", body={"compatibility": "NONE"})
        client.delete("subjects", "gone", "versions", 2)
        client.delete("subjects", "gone", "versions", 1)
        client.delete("subjects", "gone", "versions", 1, permanent=True)
        client.post("subjects", "z", "versions", body={"schema": RECORD})
        reference = {"name": "R", "subject": "z", "version": 1}
        client.post("subjects", "a", "versions", body={"schema": USES, "references": [reference]})
        client.post("subjects", ":.c:s", "versions", body={"schema": '"int"', "metadata": {"properties": {"owner": "x"}}})
        client.put("config", ":.c:", body={"compatibility": "FULL"})
        client.put("config", "a", body={"compatibility": "FORWARD"})
        client.put("mode", "z", body={"mode": "READONLY"})


def everything(command: Command, url: str) -> list[dict[str, Any]]:
    lines = command("schema", "export", "--schema-registry", url).lines
    return [{key: value for key, value in json.loads(line).items() if key != "ts"} for line in lines]


def test_a_registry_moves_and_an_interrupted_import_goes_on(
    command: Command, urls: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = urls
    fill(one)
    monkeypatch.setattr(registry_connection, "PAGE", 2)
    file = tmp_path / "all.jsonl"
    assert command("schema", "export", file, "--schema-registry", one).text == f"5 schemas written to {file}\n"
    with RegistryClient(other) as client:
        client.put("mode", "a", body={"mode": "READWRITE"})
        post, made = RegistryClient.post, []

        def fails_later(self: RegistryClient, *path: object, body: Any, **query: object) -> Any:
            made.append(path)
            if len(made) == 5:
                raise RegistryUnreachable(other, "the cable is out")
            return post(self, *path, body=body, **query)

        with monkeypatch.context() as patch:
            patch.setattr(RegistryClient, "post", fails_later)
            failed = command("schema", "import", "--from", one, "--schema-registry", other)
        assert (failed.code, len(failed.err.splitlines())) == (1, 1)
        assert "the cable is out" in failed.err
        for subject in ("gone", "z", ":.c:s"):
            assert client.get("mode", subject, defaultToGlobal=True)["mode"] == "READWRITE"
        assert client.get("mode", "a") == {"mode": "READWRITE"}  # the mode from before the import

        again = command("schema", "import", "--from", one, "--schema-registry", other)
        assert again.text == "1 schema imported, 4 were there already\n", again
    moved, original = everything(command, other), everything(command, one)
    assert [each for each in moved if "schema" in each] == [each for each in original if "schema" in each]
    extra = {"subject": "a", "mode": {"mode": "READWRITE"}}
    assert [each for each in moved if "schema" not in each and each != extra] == [
        each for each in original if "schema" not in each
    ]
    by_file = command("schema", "import", file, "--schema-registry", other, "--json").json
    assert by_file == {"imported": 0, "skipped": 5}


def test_progress_is_shown_on_a_terminal(urls: tuple[str, str]) -> None:
    one, other = urls
    with RegistryClient(one) as client:
        client.post("subjects", "s", "versions", body={"schema": '"int"'})
    terminal, its_end = pty.openpty()
    arguments = ["schema", "import", "--from", one, "--schema-registry", other]
    done = subprocess.run(
        [sys.executable, "-m", "barnabas.cli", *arguments], stderr=its_end, stdout=subprocess.PIPE, check=True, timeout=60
    )
    os.close(its_end)
    shown = os.read(terminal, 1_000)
    os.close(terminal)
    assert shown.strip() == b"1 of 1 schema"
    assert done.stdout == b"1 schema imported, 0 were there already\n"


def test_other_schemas_in_the_place_are_not_overwritten(command: Command, urls: tuple[str, str]) -> None:
    one, other = urls
    with RegistryClient(one) as client:
        client.post("subjects", "s", "versions", body={"schema": '"int"'})
    with RegistryClient(other) as client:
        client.post("subjects", "s", "versions", body={"schema": '"long"'})
        refused = command("schema", "import", "--from", one, "--schema-registry", other)
        assert (refused.code, len(refused.err.splitlines())) == (1, 1)
        assert "s has another schema as version 1" in refused.err
        assert client.get("subjects", "s", "versions", 1)["schema"] == '"long"'
        assert client.get("mode", "s", defaultToGlobal=True) == {"mode": "READWRITE"}
    assert command("schema", "export", "/dev/null", "--schema-registry", one).text == "1 schema written to /dev/null\n"
