"""The supervisor with a fake driver: what runs becomes equal to the jobs."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import msgspec

from barnabas.engine.folders import job_folder, job_log
from barnabas.engine.holding import HeldFolder
from barnabas.engine.jobs import JobProgress
from tests.engine.cluster import PAUSED, Cluster, pipeline, view
from tests.waiting import wait_until

SLEEPS = """
import pathlib, sys, time
from barnabas.pipelines.runs.progress import ProgressFile
ProgressFile.of_environment(None).record({("t", 0): 4}, {("t", 0): 9}, 1.0)
pathlib.Path(sys.argv[1]).write_text("x")
time.sleep(600)
"""
FLOWS = """
import json, os, pathlib, sys
events = pathlib.Path(os.environ["BARNABAS_PROGRESS_DIR"]) / "events.jsonl"
events.write_text(json.dumps({"message": "Flow x has FAILED. Error: it cannot read orders"}) + chr(10))
sys.exit(1)
"""


def test_spark_starts_with_the_first_view_and_ends_after_the_last(cluster: Cluster) -> None:
    with cluster.supervisor() as supervisor:
        wait_until(lambda: supervisor.jobs.cluster_id)
        assert not cluster.folder.exists()
        cluster.declare(view("rests", desired=PAUSED))
        cluster.wait_for("rests", "paused")
        assert cluster.said == []
        cluster.declare(view("b"), view("a"))
        first = cluster.wait_for("a", "running")
        assert cluster.said[0] == "starting Spark for the job a; this takes some seconds"
        wait_until(lambda: len(cluster.said) > 1)
        assert cluster.said[1].startswith("Spark is ready after ")
        task = json.loads((cluster.folder / "fake.task").read_text())
        assert task == {
            "settings": {"bootstrap.servers": cluster.bootstrap}, "folder": str(cluster.folder), "master": "local[3]",
            "conf": {"spark.x": "y"},
        }  # fmt: skip
        assert "fake driver works" in (cluster.folder / "driver.log").read_text()
        cluster.drop("b")
        cluster.declare(view("a", desired=PAUSED))
        assert cluster.wait_for("a", "paused").since_ms >= first.since_ms
        wait_until(lambda: cluster.driver is None)
        cluster.declare(view("a"))
        cluster.wait_for("a", "running")
        wait_until(lambda: len(cluster.said) == 4)
    assert cluster.driver is None
    left = cluster.wait_for("a", "waiting")
    assert left.error == "the engine was stopped"


def test_a_driver_that_dies_starts_again(cluster: Cluster) -> None:
    cluster.declare(view("a"))
    with cluster.supervisor() as supervisor:
        cluster.wait_for("a", "running")
        before = cluster.driver
        assert before is not None
        os.kill(before, signal.SIGKILL)
        waiting = cluster.wait_for("a", "waiting")
        assert waiting.error == "its process was ended by SIGKILL"
        assert (waiting.tries, (waiting.next_try_ms or 0) > waiting.since_ms) == (1, True)
        running = cluster.wait_for("a", "running")
        assert (running.tries, running.error) == (0, None)
        assert cluster.driver not in (before, None)
        assert supervisor.spark is not None
        assert supervisor.spark.restarts == 1


def test_a_driver_that_fails_each_time_waits_longer(cluster: Cluster) -> None:
    cluster.declare(view("a", "crash"))
    with cluster.supervisor():
        wait_until(lambda: (found := cluster.state("a")) is not None and found.tries >= 2 and found.state == "waiting")
        found = cluster.state("a")
        assert found is not None
        assert found.error == "its process ended with exit code 1: SomeError: the fake crashes"
        cluster.declare(view("a", "good"))
        cluster.wait_for("a", "running")


def test_what_is_left_of_a_job_goes(cluster: Cluster) -> None:
    cluster.declare(view("a"), view("é/..", generation=1))
    with cluster.supervisor():
        cluster.wait_for("a", "running")
        cluster.wait_for("é/..", "running")
        strange = job_folder(cluster.folder, "é/..", 1)
        assert strange.is_dir()
        assert strange.parent.parent == cluster.folder / "jobs"
        cluster.declare(view("é/..", generation=2))
        wait_until(lambda: not strange.exists())
        assert job_folder(cluster.folder, "é/..", 2).is_dir()
        assert job_log(cluster.folder, "é/..").exists()
        cluster.progress.put(cluster.client, {"a": JobProgress("a", 0, 1, {})})
        cluster.drop("a", "é/..")
        wait_until(lambda: cluster.driver is None)
        wait_until(lambda: cluster.states.follow() == {} == cluster.progress.follow())
        wait_until(lambda: list((cluster.folder / "jobs").iterdir()) == [])


def test_an_engine_that_is_not_elected_ends_what_it_runs_and_writes_nothing(cluster: Cluster) -> None:
    cluster.declare(view("a"))
    with cluster.supervisor() as supervisor:
        running = cluster.wait_for("a", "running")
        supervisor.activate(False)
        wait_until(lambda: cluster.driver is None)
        assert cluster.state("a") == running
        supervisor.activate(True)
        wait_until(lambda: cluster.driver is not None)
        cluster.wait_for("a", "running")


def test_the_jobs_of_another_cluster_are_kept(cluster: Cluster) -> None:
    cluster.folder.mkdir()
    (cluster.folder / "cluster").write_text("another\n")
    (cluster.folder / "jobs" / "theirs").mkdir(parents=True)
    cluster.declare(view("a"))
    with cluster.supervisor():
        cluster.wait_for("a", "running")
    assert (cluster.folder / "jobs.another" / "theirs").is_dir()


def test_the_jobs_of_an_engine_that_cannot_work_say_why(cluster: Cluster) -> None:
    other = HeldFolder(cluster.folder)
    other.hold(None)
    cluster.declare(view("a"), view("b", desired=PAUSED))
    with cluster.supervisor() as supervisor:
        found = cluster.wait_for("a", "waiting")
        assert (found.error, found.tries) == (f"another engine uses the folder {cluster.folder}", 2)
        assert supervisor.hindrance == found.error
        assert (cluster.driver, cluster.state("b")) == (None, None)
        other.close()
        assert cluster.wait_for("a", "running").error is None


def test_a_pipeline_runs_in_a_process_of_its_own(cluster: Cluster, tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    ours.mkdir()
    (ours / "sleeps.py").write_text(SLEEPS)
    (ours / "ends.py").write_text("import os\nprint('it read', os.environ['BARNABAS_BOOTSTRAP'], flush=True)\n")
    (ours / "fails.py").write_text("raise ValueError('no such order')\n")
    (ours / "flows.py").write_text(FLOWS)
    mark = tmp_path / "mark"
    cluster.declare(
        pipeline("sleeps", "sleeps.py", str(mark)), pipeline("ends", str(ours / "ends.py")),
        pipeline("fails", "fails.py"), pipeline("flows", "flows.py"),
        pipeline("outside", "../engine"), pipeline("harmful", "ends.py", conf={"spark.jars": "/tmp/x.jar"}),
    )  # fmt: skip
    with cluster.supervisor(pipelines=ours) as supervisor:
        cluster.wait_for("sleeps", "running")
        cluster.wait_for("ends", "completed")
        assert job_log(cluster.folder, "ends").read_text() == f"it read {cluster.bootstrap}\n"
        assert "ValueError: no such order" in (cluster.wait_for("fails", "waiting").error or "")
        assert cluster.wait_for("flows", "waiting").error == "it cannot read orders"
        assert "is not in" in (cluster.wait_for("outside", "waiting").error or "")
        assert "cannot have the setting spark.jars" in (cluster.wait_for("harmful", "waiting").error or "")
        wait_until(mark.exists)
        wait_until(lambda: (found := cluster.progress.follow().get("sleeps")) and found.lag == 5)
        assert supervisor.spark is None
        first = supervisor.pipelines["sleeps"].child
        assert first is not None
        cluster.declare(pipeline("sleeps", "sleeps.py", str(mark), desired=PAUSED))
        cluster.wait_for("sleeps", "paused")
        cluster.declare(pipeline("sleeps", "sleeps.py", str(mark), restarts=1))
        assert cluster.wait_for("sleeps", "running").restarts == 1
        cluster.declare(pipeline("ends", str(ours / "ends.py"), restarts=1))
        wait_until(lambda: (found := cluster.state("ends")) and found.restarts == 1 and found.state == "completed")
        cluster.drop("sleeps", "fails", "flows", "outside", "harmful")
        wait_until(lambda: set(supervisor.pipelines) <= {"ends"})
        wait_until(lambda: not job_folder(cluster.folder, "sleeps").exists())


def test_no_pipeline_runs_without_a_folder_for_them(cluster: Cluster) -> None:
    cluster.declare(pipeline("p", sys.executable))
    with cluster.supervisor():
        assert "engine.pipelines.dir names no folder" in (cluster.wait_for("p", "waiting").error or "")


def test_processes_end_with_a_supervisor_that_is_killed_and_another_goes_on(cluster: Cluster, tmp_path: Path) -> None:
    from tests.engine.processes import supervising

    ours = tmp_path / "ours"
    ours.mkdir()
    (ours / "sleeps.py").write_text(SLEEPS)
    mark = tmp_path / "mark"
    cluster.declare(view("a"), pipeline("p", "sleeps.py", str(mark)))
    with supervising(cluster, ours) as process:
        cluster.wait_for("a", "running")
        cluster.wait_for("p", "running")
        wait_until(mark.exists)
        before = cluster.driver
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_until(lambda: cluster.driver is None)
    mark.unlink()
    cluster.states.change(cluster.client, lambda there: {k: msgspec.structs.replace(v, error="seen") for k, v in there.items()})
    with supervising(cluster, ours):
        wait_until(lambda: cluster.driver not in (None, before))
        wait_until(lambda: all(each.state == "running" and each.error is None for each in cluster.states.follow().values()))
        wait_until(mark.exists)
        assert set(cluster.states.records) == {"a", "p"}
