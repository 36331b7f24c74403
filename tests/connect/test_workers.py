"""Several engines share the tasks of connectors: each runs some, and those of a dead one run elsewhere. Each task is a process."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.engine.jobs import State
from barnabas.testing import Broker
from tests.connect.cluster_of_workers import Workers, descendants, runner_of, tasks_of
from tests.connect.sample_plugins import installed
from tests.waiting import wait_until

COUNTING, DYING = "tests.Counting", "tests.Dying"


@pytest.fixture
def workers(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    monkeypatch.setenv("PYTHONPATH", installed(tmp_path / "installed"))
    made = Workers(broker, tmp_path)
    yield made
    made.close()


def count(workers: Workers, *names: str) -> list[str]:
    """Sources that count, each into its topic."""
    made = []
    for name in names:
        workers.create_topic(name)
        made += workers.declare(name, "source", COUNTING, {"topic": name})
    return made


def grows(workers: Workers, topic: str) -> None:
    """Wait until a topic has more records, and check that each number is there once."""
    before = len(workers.values(topic))
    wait_until(lambda: len(workers.values(topic)) > before, f"{topic} does not grow", within_s=30)
    found = workers.values(topic)
    assert found == [b'{"n":%d}' % number for number in range(len(found))]


def test_tasks_are_shared_and_those_of_a_dead_engine_run_elsewhere(workers: Workers) -> None:
    names = count(workers, "shared-0", "shared-1", "shared-2", "shared-3")
    workers.start("a")
    workers.waits_for(4)
    workers.start("b")
    workers.waits_for(2, 2)
    workers.start("c")
    workers.waits_for(2, 1, 1)
    state = workers.state(names[0])
    assert state is not None
    assert state.worker_id in {each.url.removeprefix("http://") for each in workers.engines.values()}
    left = descendants(workers.engines["a"].pid)
    workers.kill("a")
    workers.waits_for(2, 2)
    wait_until(lambda: not [pid for pid in left if Path(f"/proc/{pid}").exists()], "processes stay behind")
    workers.stop("b")
    workers.waits_for(4)
    for each in ("shared-0", "shared-1", "shared-2", "shared-3"):
        grows(workers, each)


def test_a_runner_that_is_killed_starts_again_with_its_tasks(workers: Workers) -> None:
    (name,) = count(workers, "killed")
    engine = workers.start("a")
    workers.until(name, State.RUNNING)
    runner = runner_of(engine.pid)
    assert runner is not None
    os.kill(runner, signal.SIGKILL)
    wait_until(lambda: runner_of(engine.pid) not in (None, runner))
    workers.until(name, State.RUNNING)
    grows(workers, "killed")


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("exit", "the process of the task ended with exit code 7"),
        ("kill", "the process of the task ended with signal 9"),
        ("segfault", "the process of the task ended with signal 11"),
    ],
)
def test_a_task_that_crashes_takes_no_other_along(workers: Workers, tmp_path: Path, how: str, error: str) -> None:
    (good,) = count(workers, f"beside-{how}")
    (bad,) = workers.declare("bad", "source", DYING, {"how": how, "file": str(tmp_path / "now"), "topic": "never"})
    engine = workers.start("a")
    workers.until(bad, State.RUNNING)
    before = workers.until(good, State.RUNNING)
    (tmp_path / "now").touch()
    workers.until(bad, State.WAITING, error)
    grows(workers, f"beside-{how}")
    assert workers.state(good) == before
    (tmp_path / "now").unlink()
    workers.until(bad, State.STARTING, error)
    assert len(tasks_of(engine.pid)) == 2


@pytest.mark.parametrize("how", ["loop", "hold"])
def test_a_task_that_does_not_end_is_killed(workers: Workers, tmp_path: Path, how: str) -> None:
    (good,) = count(workers, f"beside-{how}")
    (bad,) = workers.declare("bad", "source", DYING, {"how": how, "file": str(tmp_path / "now"), "topic": "never"})
    engine = workers.start("a")
    workers.until(bad, State.RUNNING)
    workers.until(good, State.RUNNING)
    (tmp_path / "now").touch()
    grows(workers, f"beside-{how}")
    workers.jobs.put(workers.client, {bad: None})
    wait_until(lambda: len(tasks_of(engine.pid)) == 1, "the process stays", within_s=40)
    grows(workers, f"beside-{how}")
    state = workers.state(good)
    assert state is not None
    assert state.state is State.RUNNING
