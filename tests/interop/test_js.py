"""kafkajs and kafka-node, by the programs in `js/`."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.conftest import Server

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


@pytest.mark.parametrize(("program", "scenarios"), [("interop.js", 7), ("kafka-node.js", 6)])
def test_every_scenario(program: str, scenarios: int, js_program: Path, server: Server, unique: Callable[[str], str]) -> None:
    command = ["node", program, server.bootstrap, unique("js")]
    done = subprocess.run(command, cwd=js_program, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok ") >= scenarios
