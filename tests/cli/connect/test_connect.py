"""`barnabas connect` as users meet it, with a worker and an engine that only says that it works."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.testing import Broker
from tests.cli.conftest import UNUSED, Command
from tests.cli.conftest import command as command
from tests.connect.fake_engine import FakeEngine
from tests.connect.workers import Worker, worker

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    with Broker() as broker:
        engine = FakeEngine(broker.bootstrap_servers, {"connect-broken-0": "the disk is full"})
        with worker(broker.bootstrap_servers, tmp_path_factory.mktemp("worker"), "cli") as worker_:
            yield worker_
        engine.close()


@pytest.fixture
def it(running: Worker) -> Iterator[Worker]:
    """The worker, without connectors."""
    yield running
    for name in running.ask("GET", "/connectors")[1]:
        running.ask("DELETE", f"/connectors/{name}")


def test_connectors_from_files_to_their_end(command: Command, it: Worker, tmp_path: Path) -> None:
    at = ("--url", it.url)
    file = tmp_path / "c.yaml"
    file.write_text("{name: lines, config: {connector.class: FileStreamSource, topic: t}}")
    assert command("connect", "list", *at).err == "there is no connector\n"
    assert command("connect", "create", file, *at).text == "created lines\n"
    again = command("connect", "create", file, *at)
    assert (again.code, again.err) == (2, f"barnabas: {it.url} refuses: Connector lines already exists\n")
    it.waits_for("lines", "RUNNING", ["RUNNING"])
    assert [line.split()[:5] for line in command("connect", "list", *at).lines] == [
        ["NAME", "TYPE", "CLASS", "STATE", "TASKS"], ["lines", "source", "FileStreamSource", "RUNNING", "1/1"],
    ]  # fmt: skip
    assert command("connect", "status", "lines", "--json", *at).json[0]["connector"]["state"] == "RUNNING"
    assert [each["name"] for each in command("connect", "status", "--json", *at).json] == ["lines"]
    assert "topic            t" in command("connect", "describe", "lines", *at).text
    assert command("connect", "describe", "lines", "--json", *at).json["offsets"] == []
    for verb, done, state, tasks in (
        ("pause", "paused", "PAUSED", ["PAUSED"]), ("resume", "resumed", "RUNNING", ["RUNNING"]), ("stop", "stopped", "STOPPED", []),
    ):  # fmt: skip
        assert command("connect", verb, "lines", *at).text == f"{done} lines\n"
        it.waits_for("lines", state, tasks)
    place = '{"filename":"/a"}'
    assert command("connect", "offsets", "lines", "--set", f'{place}={{"position":4}}', *at).text == "changed offsets of lines\n"
    assert command("connect", "offsets", "lines", *at).lines[1].split() == [place, '{"position":4}']
    assert command("connect", "offsets", "lines", "--reset", *at).text == "reset the offsets of lines\n"
    assert command("connect", "offsets", "lines", *at).err == "lines has no offsets\n"
    assert command("connect", "delete", "lines", *at).text == "deleted lines\n"
    assert command("connect", "delete", "lines", *at).code == 2


def test_keys_that_do_nothing_are_named(command: Command, it: Worker, tmp_path: Path) -> None:
    at = ("--url", it.url)
    file = tmp_path / "unused.yaml"
    config = (
        "connector.class: FileStreamSource, topic: t, fiel: /a, config.action.reload: none, errors.retry.timeout: 5,"
        " producer.override.linger.ms: 5, value.converter.any: x, 'transforms.x.type': Filter"
    )
    file.write_text(f"{{name: unused, config: {{{config}}}}}")
    made = command("connect", "create", file, *at)
    name = "org.apache.kafka.connect.file.FileStreamSourceConnector"
    assert made.code == 0
    assert made.text.splitlines()[-1] == "created unused"
    assert sorted(made.err.splitlines()) == [
        "barnabas: config.action.reload has no effect: the config providers do not tell of changes",
        f"barnabas: fiel has no effect: {name} has no such key",
        f"barnabas: transforms.x.type has no effect: {name} has no such key",
    ]
    file.write_text("{name: fine, config: {connector.class: FileStreamSource, topic: t}}")
    assert command("connect", "create", file, *at).err == ""


def test_what_failed_is_shown_and_restarted(command: Command, it: Worker, tmp_path: Path) -> None:
    at = ("--url", it.url)
    (tmp_path / "c.properties").write_text("name=broken\nconnector.class=FileStreamSource\ntopic=t\n")
    assert command("connect", "create", tmp_path / "c.properties", *at).code == 0
    it.waits_for("broken", "RUNNING", ["FAILED"])
    assert command("connect", "list", *at).lines[1].endswith("the disk is full")
    assert "the disk is full" in command("connect", "status", "broken", *at).lines[2]
    assert command("connect", "restart", "broken", "--only-failed", *at).text == "restarted broken\n"
    assert command("connect", "restart", "broken", "--task", "0", *at).code == 0
    assert command("connect", "restart", "broken", "--task", "7", *at).err.endswith("refuses: Unknown task: broken-7\n")
    assert command("connect", "restart", "broken", "--task", "0", "--only-failed", *at).code == 2
    assert command("connect", "delete", "broken", *at).code == 0


def test_a_folder_is_applied_after_its_diff(command: Command, it: Worker, tmp_path: Path) -> None:
    at = ("--url", it.url)
    (tmp_path / "a.properties").write_text("name=applied\nconnector.class=FileStreamSource\ntopic=t\n")
    shown = command("connect", "apply", tmp_path, *at)
    assert (shown.code, shown.lines[0], shown.err) == (2, "+ applied", "barnabas: nothing was changed; --yes makes the changes\n")
    assert it.ask("GET", "/connectors/applied")[0] == 404
    assert command("connect", "apply", tmp_path, "--yes", *at).lines[-1] == "made 1 change"
    assert command("connect", "apply", tmp_path, *at).text == "nothing changes\n"
    (tmp_path / "a.properties").write_text("name=applied\nconnector.class=FileStreamSource\ntopic=u\n")
    assert command("connect", "apply", tmp_path, "--yes", *at).lines == [
        "~ applied", "    - topic=t", "    + topic=u", "made 1 change",
    ]  # fmt: skip
    assert it.ask("GET", "/connectors/applied/config")[1]["topic"] == "u"
    (tmp_path / "b.properties").write_text("name=wrong\nconnector.class=FileStreamSource\n")
    refused = command("connect", "apply", tmp_path, "--yes", *at)
    assert (refused.code, 'Missing required configuration "topic"' in refused.err) == (2, True)
    (tmp_path / "b.properties").unlink()
    (tmp_path / "a.properties").write_text("name=other\nconnector.class=FileStreamSource\ntopic=u\n")
    assert [each["kind"] for each in command("connect", "apply", tmp_path, "--yes", "--prune", "--json", *at).json] == [
        "delete",
        "create",
    ]
    assert it.ask("GET", "/connectors") == (200, ["other"])


def test_files_are_checked_without_making_connectors(command: Command, it: Worker, tmp_path: Path) -> None:
    at = ("--url", it.url)
    (tmp_path / "a.json").write_text('{"name": "x", "connector.class": "FileStreamSource", "tasks.max": 0}')
    found = command("connect", "validate", tmp_path / "a.json", *at)
    assert (found.code, found.err) == (1, "barnabas: 2 errors\n")
    assert found.lines[1].split(maxsplit=2)[:2] == ["x", "tasks.max"]
    assert it.ask("GET", "/connectors/x")[0] == 404
    assert "FileStreamSinkConnector" in command("connect", "plugins", *at).text
    kinds = {each["type"] for each in command("connect", "plugins", "--all", "--json", *at).json}
    assert {"source", "sink"} <= kinds


def test_a_worker_that_does_not_answer_is_named(command: Command) -> None:
    ended = command("connect", "list", "--url", f"http://{UNUSED}")
    assert (ended.code, ended.err) == (1, f"barnabas: cannot reach Connect at http://{UNUSED}: Connection refused\n")
    assert command("connect", "list", "--url", "nope").code == 2
    assert command("connect", "logs", "x", "-b", UNUSED, "--timeout", "1").code == 1
