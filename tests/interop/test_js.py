"""kafkajs, by the program in `js/`."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.conftest import Server

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
SOURCE = Path(__file__).parent / "js"


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with its packages, outside the checkout."""
    npm = shutil.which("npm")
    assert npm is not None, "these tests need Node.js and npm (Debian packages: nodejs npm)"
    target = tmp_path_factory.mktemp("js") / "program"
    shutil.copytree(SOURCE, target)
    subprocess.run([npm, "ci", "--silent", "--no-audit", "--no-fund"], cwd=target, check=True)
    return target


def test_every_scenario(folder: Path, server: Server, unique: Callable[[str], str]) -> None:
    command = ["node", "interop.js", server.bootstrap, unique("kafkajs")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok ") >= 7
