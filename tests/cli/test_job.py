"""`barnabas job` as users meet it: with an engine, without one, and on a secured cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from barnabas.testing import Broker
from tests.cli.conftest import Command
from tests.engine.cluster import Cluster, view
from tests.engine.processes import serving
from tests.waiting import wait_until

UNUSED = "127.0.0.1:1"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def cluster(broker: Broker, tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(broker, tmp_path / "engine")
    yield made
    made.close()


def test_jobs_with_an_engine(command: Command, cluster: Cluster, tmp_path: Path) -> None:
    at = ("-b", cluster.bootstrap)
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "p.py").write_text("import sys\nprint('first')\nprint('done', sys.argv[1:])")
    empty = command("job", "list", *at)
    assert (empty.code, empty.text, empty.err) == (0, "", "there is no job\n")
    with serving(cluster, engine_pipelines_dir=str(tmp_path / "ours")) as engine:
        cluster.declare(view("v"))
        cluster.wait_for("v", "running")
        assert command("job", "create", "p", "p.py", "a", "b", *at).text == "created p\n"
        cluster.wait_for("p", "completed")
        wait_until(lambda: cluster.progress.follow())
        lines = [line.split() for line in command("job", "list", *at).text.splitlines()]
        assert lines[0] == ["NAME", "KIND", "STATE", "LAG", "ROWS", "SINCE", "LAST", "ERROR"]
        assert [line[:3] for line in lines[1:]] == [["p", "pipeline", "completed"], ["v", "view", "running"]]
        found = json.loads(command("job", "list", *at, "--json").text)
        assert [(each["name"], each["rows"]) for each in found] == [("p", None), ("v", 30)]
        wait_until(lambda: engine.url in command("job", "describe", "v", *at).text)
        shown = dict(line.split(maxsplit=1) for line in command("job", "describe", "v", *at).text.splitlines())
        assert (shown["state"], shown["total_in"], shown["sql"]) == ("running", "30", "select 1")
        assert json.loads(command("job", "describe", "v", *at, "--json").text)["progress"]["offsets"] == {"v.in": {"0": 1}}
        assert command("job", "logs", "p", "--lines", "1", *at).text == "done ['a', 'b']\n"
        assert command("job", "pause", "v", *at).text == "paused v\n"
        cluster.wait_for("v", "paused")
        assert json.loads(command("job", "resume", "v", *at, "--json").text) == {"resumed": ["v"]}
        assert command("job", "restart", "v", "--rebuild", *at).text == "restarted v\n"
        wait_until(lambda: (state := cluster.state("v")) and (state.state, state.generation) == ("running", 1))
        assert command("job", "delete", "p", *at).text == "deleted p\n"
        refused = command("job", "delete", "v", *at)
        assert (refused.code, refused.err) == (2, "barnabas: v is a view; drop it by SQL: DROP MATERIALIZED VIEW\n")


@pytest.mark.parametrize("words", [("describe",), ("pause",), ("resume",), ("restart",), ("delete",), ("logs",)])
def test_an_unknown_job_is_one_line(command: Command, cluster: Cluster, words: tuple[str, ...]) -> None:
    ended = command("job", *words, "nope", "-b", cluster.bootstrap)
    assert (ended.code, ended.err, ended.text) == (2, "barnabas: there is no job nope\n", "")


def test_jobs_without_an_engine(command: Command, cluster: Cluster) -> None:
    at = ("-b", cluster.bootstrap)
    cluster.declare(view("v"))
    ended = command("job", "list", *at)
    assert ended.code == 0
    assert ended.err == "barnabas: no engine of this cluster works; `barnabas engine start` runs one\n"
    assert command("job", "logs", "v", *at).code == 1
    for words, reason in (
        (("create", "v", "x.py"), "there is a job v already"),
        (("create", "w", "x.py", "--conf", "nonsense"), "nonsense"),
        (("create", "x" * 250, "x.py"), "1 to 249"),
        (("logs", "v", "--lines", "0"), "--lines"),
    ):
        ended = command("job", *words, *at)
        assert (ended.code, ended.err.count("\n")) == (2, 1)
        assert reason in ended.err
    ended = command("job", "list", "-b", UNUSED)
    assert (ended.code, "cannot reach" in ended.err) == (1, True)


def test_a_secured_engine_asks_for_rights(command: Command, tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    ours.mkdir()
    (ours / "p.py").write_text("print('done')")
    (tmp_path / "services").write_text(f"engine.pipelines.dir={ours}\n")
    start = [
        sys.executable, "-m", "barnabas.cli", "start", "--secure", "--log-level", "warning", "--data-dir", str(tmp_path / "data"),
        "--listeners", "SASL_SSL://127.0.0.1:0", "--engine-listener", "https://127.0.0.1:0", "--services-config",
        str(tmp_path / "services"), "--services", "engine",
    ]  # fmt: skip
    with (tmp_path / "errors").open("w") as errors:
        process = subprocess.Popen(start, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert process.stdout is not None
        broker, url = (process.stdout.readline().split("connections on ")[1].strip() for _ in range(2))
        admin = tmp_path / "data-security" / "admin.properties"
        at = ("-b", broker.partition("://")[2], "--command-config", admin)
        assert command("job", "create", "p", "p.py", *at).text == "created p\n"
        wait_until(lambda: "completed" in command("job", "list", *at).text)
        wait_until(lambda: (ended := command("job", "logs", "p", *at)).text == "done\n" or not ended.err)
        assert (tmp_path / "data-engine" / "jobs" / "p" / "log").exists()
        assert command("user", "add", "alice", *at, stdin=b"geheim\n").code == 0

        def asked(method: str, path: str) -> int:
            import ssl
            from base64 import b64encode

            header = {"Authorization": f"Basic {b64encode(b'alice:geheim').decode()}"}
            context = ssl.create_default_context(cafile=str(tmp_path / "data-security" / "ca.crt"))
            try:
                with urlopen(Request(f"{url}{path}", method=method, headers=header), context=context, timeout=60) as answer:
                    status: int = answer.status
                    return status
            except HTTPError as error:
                with error:
                    return error.code

        assert (asked("GET", "/jobs"), asked("POST", "/jobs/p/pause")) == (403, 403)
        grant = ("acl", "add", "--principal", "User:alice", "--topic", "_barnabas_jobs", *at, "--operation")
        assert command(*grant, "read").code == 0
        wait_until(lambda: asked("GET", "/jobs") == 200)
        assert asked("POST", "/jobs/p/pause") == 403
        assert command(*grant, "write").code == 0
        wait_until(lambda: asked("POST", "/jobs/p/pause") == 200)
    finally:
        process.terminate()
        process.communicate(timeout=60)
