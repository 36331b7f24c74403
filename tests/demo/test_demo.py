"""The commands as a user types them, over two days of flights.

They run as processes of their own: Spark has one session for each process, and it is the command's to open and close.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Producer

from barnabas.testing.children import Child
from demo.topics import RESULTS

ROOT = Path(__file__).parents[2]
MARK = "BARNABAS_DEMO_TEST"
pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


class Demo:
    """Starts `python -m demo` and knows every process that came of it."""

    def __init__(self) -> None:
        self._mark = uuid.uuid4().hex
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
        self._environment = {**os.environ, MARK: self._mark, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "demo", *arguments]
        return Child[str](command, env=self._environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, *arguments: str) -> tuple[int, str]:
        """The exit code and what was printed."""
        with self.start(*arguments) as process:
            output = process.communicate(timeout=200)[0]
        return process.returncode, output

    def run_until(self, words: str, number: signal.Signals, *arguments: str) -> tuple[int, str]:
        """Send the signal when the words are printed; the exit code and what was printed."""
        printed = []
        with self.start(*arguments) as process:
            assert process.stdout is not None
            for line in process.stdout:
                printed.append(line)
                if words in line:
                    process.send_signal(number)
                    break
            printed.append(process.communicate(timeout=60)[0])
        return process.returncode, "".join(printed)

    def left_over(self) -> list[int]:
        """Processes that carry the mark in their environment."""
        wanted = f"{MARK}={self._mark}".encode()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
            except OSError:
                continue  # the process has ended or belongs to another user
        return found


@pytest.fixture
def demo() -> Demo:
    return Demo()


def equal_windows(output: str) -> tuple[str, str]:
    found = re.search(r"([\d,]+) of ([\d,]+) windows are equal", output)
    assert found, output
    return found[1], found[2]


def test_the_whole_demo(demo: Demo, tmp_path: Path) -> None:
    code, output = demo.run("run", "--days", "2", "--days-per-second", "0", "--work", str(tmp_path))
    assert code == 0, output
    equal, expected = equal_windows(output)
    assert equal == expected == "127"
    assert output.index("the driver is killed") < output.index("another driver goes on")
    assert (tmp_path / "delays.png").stat().st_size > 10_000
    assert "airlines with 1,639 flights are equal to pandas" in output
    assert demo.left_over() == []


def test_the_steps_one_by_one(demo: Demo, bootstrap: str, tmp_path: Path) -> None:
    """Published before the pipeline starts; a pipeline stopped in the middle; one that goes on from its checkpoint to the end."""
    to_broker, two_days, pipeline = ("--bootstrap-server", bootstrap), ("--days", "2"), ("pipeline", "--work", str(tmp_path))
    assert demo.run("publish", *to_broker, *two_days, "--days-per-second", "0")[0] == 0
    code, output = demo.run_until("micro-batches", signal.SIGTERM, *pipeline, *to_broker)
    assert code == 0, output
    code, output = demo.run(*pipeline, *to_broker, "--available-now")
    assert code == 0, output
    code, output = demo.run("verify", *to_broker, *two_days)
    assert code == 0, output
    assert equal_windows(output) == ("127", "127")
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(RESULTS, key="AA", value=json.dumps({"carrier": "AA", "window_start": "2013-01-01T09:00:00Z", "flights": 0}))
    assert producer.flush(10) == 0
    assert demo.run("verify", *to_broker, *two_days)[0] == 1
    assert demo.left_over() == []


def test_an_interrupted_run_leaves_nothing_behind(demo: Demo, tmp_path: Path) -> None:
    arguments = ("run", "--days", "30", "--days-per-second", "0.5", "--work", str(tmp_path))
    code, output = demo.run_until("the year begins", signal.SIGINT, *arguments)
    assert code == 130, output
    assert output.endswith("\nstopped\n"), output
    assert demo.left_over() == []


def test_a_broker_that_is_not_there_is_one_line(demo: Demo) -> None:
    code, output = demo.run("verify", "--bootstrap-server", "127.0.0.1:1")
    assert code == 1
    assert "Error: no answer from 127.0.0.1:1" in output
    assert "Traceback" not in output
