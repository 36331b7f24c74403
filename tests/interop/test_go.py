"""franz-go and sarama, by the program in `go/`."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.conftest import Server

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
SOURCE = Path(__file__).parent / "go"


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    go = shutil.which("go")
    assert go is not None, "these tests need the Go tool chain (go.dev)"
    target = tmp_path_factory.mktemp("go") / "interop"
    subprocess.run([go, "build", "-o", str(target), "."], cwd=SOURCE, check=True)
    return target


@pytest.mark.parametrize("client", ["franz", "sarama"])
def test_every_scenario(client: str, program: Path, server: Server, unique: Callable[[str], str]) -> None:
    command = [str(program), client, server.bootstrap, unique(client)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok ") >= 10
