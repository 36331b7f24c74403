"""A task in a process, as the runner sees it: its end in one line, and a start that is cancelled."""

from __future__ import annotations

import multiprocessing
import threading
from pathlib import Path

import pytest

from barnabas.engine.jobs import ConnectorWork, Job, encode
from barnabas.engine.runner.task_main import Start
from barnabas.engine.runner.task_process import TaskFailed, TaskProcess, ended
from tests.connect.sample_plugins import installed
from tests.waiting import wait_until


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (0, "the process of the task ended with exit code 0"),
        (7, "the process of the task ended with exit code 7"),
        (-9, "the process of the task ended with signal 9"),
        (255, "the process of the task ended with the fork server of the runner"),
    ],
)
def test_an_end_has_a_reason_in_one_line(code: int, reason: str) -> None:
    assert ended(code) == reason


def task(folder: Path, plugin: str) -> TaskProcess:
    work = ConnectorWork("c", 0, 1, "sink", plugin, {"name": "c", "topics": "t"})
    start = Start(encode(Job("connect-c-0", work)), {"bootstrap.servers": "127.0.0.1:1"}, str(folder), {})
    return TaskProcess(multiprocessing.get_context("spawn"), start, dict)  # type: ignore[arg-type]  # no server stays behind


def test_a_task_that_cannot_start_says_why(tmp_path: Path) -> None:
    made = task(tmp_path, "no.such.Class")
    with pytest.raises(TaskFailed, match=r"^Class no\.such\.Class could not be found\.$"):
        made.start()
    made.stop()
    assert "event=job-not-started" in (tmp_path / "jobs" / "connect-c-0" / "log").read_text()


def test_a_start_that_lasts_is_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path / "installed")
    monkeypatch.syspath_prepend(tmp_path / "installed")  # multiprocessing hands the path on
    made, raised = task(tmp_path, "tests.Hanging"), list[BaseException]()

    def start() -> None:
        try:
            made.start()
        except TaskFailed as error:
            raised.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    log = tmp_path / "jobs" / "connect-c-0" / "log"
    wait_until(lambda: log.exists() and "event=hangs" in log.read_text(), "the task did not begin", within_s=25)
    made.cancel()
    thread.join()
    made.stop()
    assert [str(each) for each in raised] == ["the task was stopped while it started"]
    pid = made.pid
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the process stays")
