"""A process that is killed in the middle of a step leaves the last step that it committed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.incremental.whole import WholeFlow
from tests.incremental import killed
from tests.incremental.flows import lines, opened, stepped


def killed_at(path: Path, word: str, steps: int) -> int:
    """Kill a process that has begun a part of a step; gives the step's number."""
    command = [sys.executable, "-m", "tests.incremental.killed", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        seen = 0
        for line in process.stdout:
            part, number = line.split()
            seen += part == word
            if seen == steps:
                process.kill()
                return int(number)
    raise AssertionError("the process ended by itself")


@pytest.mark.timeout(120)
def test_killed_again_and_again(tmp_path: Path) -> None:
    path, whole = tmp_path / "state", WholeFlow(killed.plan())
    for word, steps in (("step", 1), ("commit", 1), ("step", 3), ("commit", 2)):
        number = killed_at(path, word, steps)
        flow = opened(killed.plan(), path)
        assert flow.position >= number - 1
        while whole.position < flow.position:
            stepped(whole, killed.inputs(whole.position + 1))
        assert lines(flow.result()) == lines(whole.result())
        assert [each.name for each in tmp_path.iterdir()] in (["state"], ["state", "state.wal"], ["state.wal", "state"])
        flow.close()
    whole.close()
