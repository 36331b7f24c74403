"""Runs, their folders and their progress, without Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.pipelines.runs.folders import (
    Events,
    PipelineError,
    Run,
    RunFolder,
    begin_update,
    flow_error,
    known_runs,
    last_error,
    state_folder,
)
from barnabas.pipelines.runs.process import catalog_settings, checkpoint_settings
from barnabas.pipelines.runs.progress import ProgressFile, read_progress
from barnabas.pipelines.runs.project import create_project, find_target
from barnabas.pipelines.spark_session import CHECKPOINTS
from tests.processes import is_alive
from tests.waiting import wait_until

HOLD = """
import sys, time
from pathlib import Path
from barnabas.pipelines.runs.folders import RunFolder
with RunFolder("one", Path(sys.argv[1])).running("x.py"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_name_runs_once_at_a_time(tmp_path: Path) -> None:
    folder = RunFolder("one", tmp_path)
    with folder.running("x.py") as run:
        assert folder.is_held()
        with pytest.raises(PipelineError, match="pipeline one is running already"), folder.running("x.py"):
            pass
        found = folder.read()
        assert found == run
        assert found.state == "running"
        folder.finish(run, "failed", "it broke")
    assert not folder.is_held()
    assert [(r.name, r.state, r.error) for _, r in known_runs(tmp_path)] == [("one", "failed", "it broke")]
    with pytest.raises(PipelineError, match="pipeline one does not run"):
        folder.stop(1)
    folder.forget()
    assert known_runs(tmp_path) == []
    assert folder.read() is None


def test_a_run_is_stopped_from_elsewhere_and_known_to_be_killed(tmp_path: Path) -> None:
    folder = RunFolder("one", tmp_path)
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        folder.stop(timeout_s=30)
        process.wait(30)
    run = folder.read()
    assert isinstance(run, Run)
    assert (run.state, run.pid) == ("killed", process.pid), "it had no time to say how it ended"


def test_names_and_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("", "..", "a/b", "a b", "x" * 101):
        with pytest.raises(PipelineError, match="is not a name for a pipeline"):
            RunFolder(name, tmp_path)
    monkeypatch.setenv("BARNABAS_STATE_DIR", "/s")
    assert state_folder() == Path("/s/pipelines")
    monkeypatch.delenv("BARNABAS_STATE_DIR")
    monkeypatch.setenv("XDG_STATE_HOME", "/x")
    assert state_folder() == Path("/x/barnabas/pipelines")
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "run.json").write_text("{")
    with pytest.raises(PipelineError, match=r"run\.json is not the file of a run"):
        known_runs(tmp_path)


def test_the_last_error_is_one_line(tmp_path: Path) -> None:
    folder = RunFolder("one", tmp_path)
    assert last_error(folder) is None
    folder.path.mkdir()
    folder.log.write_text("Traceback:\n  File x\npyspark.errors.AnalysisException: no table\nsome notice\n")
    assert last_error(folder) == "pyspark.errors.AnalysisException: no table"
    events = [{"time_s": 1, "message": "Flow a has FAILED.\nError: [BAD] it\nbroke"}, {"time_s": 2, "message": "Run is FAILED."}]
    folder.events.write_text("".join(json.dumps(event) + "\n" for event in events) + '{"half')
    assert last_error(folder) == flow_error(folder.events) == "[BAD] it broke"


def test_events_are_read_as_they_come_and_from_one_update_to_the_next(tmp_path: Path) -> None:
    folder = RunFolder("one", tmp_path)
    folder.path.mkdir()
    with Events(folder.events) as events:
        assert events.read() == []
        with folder.events.open("w") as first:
            first.write('{"n": 1}\n{"n"')
            first.flush()
            assert events.read() == [{"n": 1}]
            first.write(": 2}\n")
            first.flush()
            begin_update(folder.events)
            folder.events.write_text('{"n": 3}\n')
            assert events.read() == [{"n": 2}, {"n": 3}]
        assert events.read() == []
        begin_update(folder.events)
        assert events.read() == []


def test_an_update_begins_without_what_the_last_one_told(tmp_path: Path) -> None:
    folder = RunFolder("one", tmp_path)
    folder.path.mkdir()
    folder.events.write_text('{"message": "Error: of the past"}\n')
    ProgressFile(str(folder.path), "g").record({("t", 0): 1}, {("t", 0): 2}, 1.0)
    assert (flow_error(folder.events), len(folder.progress())) == ("of the past", 1)
    begin_update(folder.events)
    assert (flow_error(folder.events), folder.progress()) == (None, [])


def test_progress_counts_rows_rate_and_lag(tmp_path: Path) -> None:
    progress = ProgressFile(str(tmp_path), "g")
    progress.record({("t", 0): 100}, {("t", 0): 500}, 10.0)
    progress.record({("t", 0): 100}, {("t", 0): 999}, 10.1)  # no progress, and the file was written a moment ago
    (first,) = read_progress(tmp_path)
    assert (first.topics, first.group, first.rows, first.rows_per_second, first.lag) == (["t"], "g", 0, 0.0, 400)
    progress.record({("t", 0): 300}, {("t", 0): 500, ("u", 0): 7}, 12.0)
    (second,) = read_progress(tmp_path)
    assert (second.topics, second.rows, second.rows_per_second, second.lag) == (["t", "u"], 200, 100.0, 207)
    for second_s in range(13, 40):
        progress.record({("t", 0): 300}, {("t", 0): 500}, float(second_s))
    assert read_progress(tmp_path)[0].rows_per_second == 0.0
    (tmp_path / "source-1-1.json").write_text("{")
    assert len(read_progress(tmp_path)) == 1
    ProgressFile(None, None).record({("t", 0): 1}, {}, 1.0)
    ProgressFile(str(tmp_path / "gone"), None).record({("t", 0): 1}, {}, 1.0)


def test_projects_and_targets(tmp_path: Path) -> None:
    made = create_project(tmp_path / "shop", "kafka:9092")
    assert all(path.exists() for path in made)
    example = (tmp_path / "shop" / "transformations" / "orders.py").read_text()
    compile(example, "orders.py", "exec")
    assert 'os.environ.get("BARNABAS_BOOTSTRAP", "kafka:9092")' in example
    assert "sinkName" not in example, "each append flow into a sink is a query, which needs a name of its own"
    target = find_target(tmp_path / "shop")
    assert (target.name, target.is_script, target.path.name) == ("shop", False, "spark-pipeline.yml")
    script = tmp_path / "job.py"
    script.write_text("")
    assert find_target(script).is_script
    spec = tmp_path / "bad.yml"
    for text, message in (("{", "is not YAML"), ("storage: x", "has no name for the pipeline")):
        spec.write_text(text)
        with pytest.raises(PipelineError, match=message):
            find_target(spec)
    (tmp_path / "a.txt").write_text("")
    for path, message in (
        (tmp_path, "has no spark-pipeline.yml"),
        (tmp_path / "a.txt", "is neither"),
        (tmp_path / "n", "does not exist"),
    ):
        with pytest.raises(PipelineError, match=message):
            find_target(path)
    with pytest.raises(PipelineError, match="exists already"):
        create_project(tmp_path / "shop", "a:1")


def test_the_catalog_lies_beside_the_storage(tmp_path: Path) -> None:
    local = catalog_settings((tmp_path / "my storage").as_uri(), tmp_path)
    assert local["spark.sql.warehouse.dir"] == str(tmp_path / "my storage" / "warehouse")
    assert catalog_settings("s3a://bucket/x", tmp_path)["spark.sql.warehouse.dir"] == str(tmp_path / ".catalog" / "warehouse")


def test_the_checkpoints_manager_is_that_of_a_local_disk_only_where_the_storage_is_on_one() -> None:
    for storage in ("file:///data/shop", "file:/data/shop", "/data/shop", "shop"):
        assert checkpoint_settings(storage) == CHECKPOINTS, storage
    for storage in ("hdfs://names/shop", "s3a://bucket/shop", "abfss://c@account/shop", "viewfs:///shop"):
        assert checkpoint_settings(storage) == {}, storage


SLEEPS = "import time\nprint('begun', flush=True)\ntime.sleep(60)\n"
DOES_NOT_STOP = """
import sys, threading, types
pyspark, sql = types.ModuleType("pyspark"), types.ModuleType("pyspark.sql")
context = types.SimpleNamespace(stop=threading.Event().wait)
pyspark.SparkContext = types.SimpleNamespace(_active_spark_context=context)
sql.SparkSession = types.SimpleNamespace(_instantiatedSession=None)
sys.modules.update({"pyspark": pyspark, "pyspark.sql": sql})
"""


@pytest.mark.parametrize(("text", "grace_s"), [(SLEEPS, 60), (DOES_NOT_STOP + SLEEPS, 0.1)])
def test_the_process_of_a_run_ends_with_its_parent(text: str, grace_s: float, tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(text)
    reading, writing = os.pipe()
    command = [sys.executable, "-m", "barnabas.pipelines.runs.process", f"--events={tmp_path / 'e'}", f"--parent-pipe={reading}"]
    command += [f"--grace={grace_s}"]
    with subprocess.Popen([*command, str(script)], pass_fds=[reading], stdout=subprocess.PIPE, text=True) as process:
        os.close(reading)
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        os.close(writing)
        assert process.wait(60) == 143, "as after SIGTERM"


DOES_NOT_END = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('begun', flush=True)\nsignal.pause()\n"
STARTS_A_CHILD = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE, text=True)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("killed", ["process", "parent"])
def test_what_a_run_started_ends_with_it(killed: str, tmp_path: Path) -> None:
    """Spark's JVM does not end by itself while it starts."""
    script = tmp_path / "job.py"
    script.write_text(STARTS_A_CHILD)
    reading, writing = os.pipe()
    command = [sys.executable, "-m", "barnabas.pipelines.runs.process", f"--events={tmp_path / 'e'}", f"--parent-pipe={reading}"]
    with subprocess.Popen(
        [*command, "--leave=1", str(script), DOES_NOT_END],
        pass_fds=[reading], stdout=subprocess.PIPE, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        os.close(reading)
        assert process.stdout is not None
        child = int(process.stdout.readline())
        if killed == "process":
            process.kill()
        else:
            os.close(writing)
        process.wait(60)
        wait_until(lambda: not is_alive(child))
    if killed == "process":
        os.close(writing)
