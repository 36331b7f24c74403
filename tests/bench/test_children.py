"""Child processes of benchmarks end with them, however they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import is_alive
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = {
    "broker": "from bench.servers import Barnabas\nwith Barnabas() as server: say(server.pid)",
    "peer": "from bench.peers.process import Process\npeer = Process('sleeps')\npeer.start(['sleep', '600'])\nsay(*peer.pids)",
    "loop": "from bench.interpreter import Interpreter\nwith Interpreter() as loop: say(loop.pid)",
    "script": "from bench.suite.front import _finished\n"
    "_finished([sys.executable, '-c', 'import os, time; print(os.getpid(), flush=True); time.sleep(600)'])",
}
PROGRAM = """
import sys

def say(*pids):
    print(*pids, flush=True)
    sys.stdin.read()

"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("what", BLOCKS)
def test_it_ends_with_a_benchmark_that_is_killed(tmp_path: Path, what: str, number: signal.Signals) -> None:
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    environment = {**os.environ, "PYTHONPATH": path, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM + BLOCKS[what]]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        pids = [int(word) for word in process.stdout.readline().split()]
        assert pids
        assert all(map(is_alive, pids))
        process.send_signal(number)
        process.wait()
        wait_until(lambda: not any(map(is_alive, pids)))
