"""kafkajs, by the program in `js/`."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.conftest import Server

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


def test_every_scenario(js_program: Path, server: Server, unique: Callable[[str], str]) -> None:
    command = ["node", "interop.js", server.bootstrap, unique("kafkajs")]
    done = subprocess.run(command, cwd=js_program, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok ") >= 7
