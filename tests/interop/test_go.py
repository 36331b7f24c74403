"""franz-go and sarama, which also speaks as clients of Kafka 0.8 to 0.11 do (`dropped`), by the program in `go/`."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.conftest import Server

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


@pytest.mark.parametrize("client", ["franz", "sarama", "dropped"])
def test_every_scenario(client: str, go_program: Path, server: Server, unique: Callable[[str], str]) -> None:
    command = [str(go_program), client, server.bootstrap, unique(client)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok ") >= 10
