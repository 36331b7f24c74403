"""`barnabas pipeline` with scripts that need no Spark; `tests/interop/test_pipeline_project.py` runs projects."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.processes import is_alive
from tests.waiting import wait_until


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def script(tmp_path: Path, text: str) -> str:
    path = tmp_path / "job.py"
    path.write_text(text)
    return str(path)


def test_a_script_runs_with_its_arguments(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--packages a:b:1 --conf spark.master=local[7] pyspark-shell")
    text = "import os, sys, pathlib\npathlib.Path(sys.argv[1]).write_text(sys.argv[2] + os.environ['PYSPARK_SUBMIT_ARGS'])"
    done = command(
        "pipeline", "run", "--master", "local[1]", "--conf", "spark.a=b c", script(tmp_path, text), str(tmp_path / "out"), "x"
    )
    assert (done.code, done.lines) == (0, ["pipeline job completed"])
    written = (tmp_path / "out").read_text()
    assert "spark.master=local[1]" in written
    assert "'spark.a=b c'" in written
    assert "--packages a:b:1" in written
    assert written.index("spark.master=local[7]") < written.index("spark.master=local[1]") < written.index("pyspark-shell")
    assert written.count("pyspark-shell") == 1
    listed = command("pipeline", "list", "--json").json
    assert [(row["name"], row["state"], row["error"]) for row in listed] == [("job", "completed", None)]


def test_a_run_has_ended_when_what_it_started_has(command: Command, tmp_path: Path) -> None:
    text = (
        "import pathlib, subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "pathlib.Path(sys.argv[1]).write_text(str(child.pid))"
    )
    assert command("pipeline", "run", script(tmp_path, text), str(tmp_path / "pid")).code == 0
    assert not is_alive(int((tmp_path / "pid").read_text()))


def test_a_failure_is_one_line_and_is_listed(command: Command, tmp_path: Path) -> None:
    done = command("pipeline", "run", "--name", "mine", script(tmp_path, "raise ValueError('no luck')"))
    assert done.code == 1
    assert "pipeline mine failed: ValueError: no luck (see " in done.err
    assert len(done.err.splitlines()) == 1
    assert "ValueError: no luck" in command("pipeline", "list").text


def test_what_cannot_be_meant(command: Command, tmp_path: Path) -> None:
    job = script(tmp_path, "")
    for arguments, message in (
        (["run", str(tmp_path / "nothing")], "nothing does not exist"),
        (["run", job, "--every", "1"], "are for declared pipelines"),
        (["run", job, "--conf", "a"], "'a' is not like key=value"),
        (["run", job, "--name", "a/b"], "'a/b' is not a name for a pipeline"),
        (["init", str(tmp_path)], "exists already"),
    ):
        done = command("pipeline", *arguments)
        assert (done.code, message in done.err) == (2, True), done.err
    assert command("pipeline", "stop", "nobody").code == 1
    assert command("pipeline", "list").err == "no pipelines\n"


def test_a_project_is_made(command: Command, tmp_path: Path) -> None:
    done = command("pipeline", "init", str(tmp_path / "shop"), "-b", "kafka:1")
    assert done.code == 0
    assert "transformations/orders.py" in done.text
    made = command("pipeline", "init", str(tmp_path / "other"), "--json").json
    assert made["project"] == str(tmp_path / "other")
    assert all(Path(path).exists() for path in made["made"])


@pytest.mark.parametrize("how", ["stop", "interrupt"])
def test_a_run_is_stopped(command: Command, tmp_path: Path, state: Path, how: str) -> None:
    job = script(tmp_path, f"import pathlib, time\npathlib.Path({str(tmp_path / 'begun')!r}).touch()\ntime.sleep(60)")
    line = [sys.executable, "-m", "barnabas.cli", "pipeline", "run", job]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env={**os.environ, "XDG_STATE_HOME": str(state)}) as process:
        try:
            while not (tmp_path / "begun").exists():
                assert process.poll() is None
            assert [row["state"] for row in command("pipeline", "list", "--json").json] == ["running"]
            assert command("pipeline", "run", job).code == 1, "it is running already"
            if how == "stop":
                assert command("pipeline", "stop", "job", "--json").json == {"stopped": ["job"]}
            else:
                process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, out) == (0, "pipeline job stopped\n")
    assert [row["state"] for row in command("pipeline", "list", "--json").json] == ["stopped"]


TELLING = """
import os, pathlib, time

def tell(text):
    with open(os.environ["BARNABAS_PROGRESS_DIR"] + "/events.jsonl", "a") as events:
        events.write('{"message": "' + text + '"}\\n')

"""


def test_a_run_whose_terminal_is_closed_is_stopped(command: Command, tmp_path: Path, state: Path) -> None:
    """Nothing can be told any more, and the run tells something in its last moment."""
    begun = tmp_path / "begun"
    job = script(
        tmp_path, f"{TELLING}try:\n    pathlib.Path({str(begun)!r}).touch()\n    time.sleep(60)\nfinally:\n    tell('bye')"
    )
    terminal, end = os.openpty()
    line = [sys.executable, "-m", "barnabas.cli", "pipeline", "run", job]
    environment = {**os.environ, "XDG_STATE_HOME": str(state)}
    with subprocess.Popen(line, stdin=end, stdout=end, stderr=end, env=environment, start_new_session=True) as process:
        try:
            os.close(end)
            wait_until(begun.exists)
            os.close(terminal)
            process.send_signal(signal.SIGHUP)
            assert process.wait(60) == 0
        finally:
            process.kill()
    assert [row["state"] for row in command("pipeline", "list", "--json").json] == ["stopped"]


@contextmanager
def run_without_a_reader(job: str, state: Path) -> Iterator[subprocess.Popen[str]]:
    reading, writing = os.pipe()
    os.close(reading)
    line = [sys.executable, "-m", "barnabas.cli", "pipeline", "run", job]
    environment = {**os.environ, "XDG_STATE_HOME": str(state)}
    with subprocess.Popen(line, stdout=writing, stderr=subprocess.PIPE, text=True, env=environment) as process:
        os.close(writing)
        try:
            yield process
            _, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, err) == (0, "")


def test_a_run_whose_reader_goes_away_is_stopped_in_order(command: Command, tmp_path: Path, state: Path) -> None:
    with run_without_a_reader(script(tmp_path, f"{TELLING}tell('hello')\ntime.sleep(60)"), state):
        pass
    assert [row["state"] for row in command("pipeline", "list", "--json").json] == ["stopped"]


def test_a_run_that_has_ended_when_its_reader_is_missed_is_completed(command: Command, tmp_path: Path, state: Path) -> None:
    """The command stands still from before the run tells something until the run has ended."""
    pid = tmp_path / "pid"
    job = f"import signal\nos.kill(os.getppid(), signal.SIGSTOP)\npathlib.Path({str(pid)!r}).write_text(str(os.getpid()))\ntell('hello')"
    with run_without_a_reader(script(tmp_path, TELLING + job), state) as process:
        wait_until(lambda: pid.exists() and pid.read_text() and not is_alive(int(pid.read_text())))
        process.send_signal(signal.SIGCONT)
    assert [row["state"] for row in command("pipeline", "list", "--json").json] == ["completed"]
