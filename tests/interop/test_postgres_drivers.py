"""pgjdbc and node-postgres against the Postgres listener, by the programs in `java/` and `js/`."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.kafka import java

from barnabas.client.config import ClientConfig
from barnabas.sql.engine import SqlEngine
from barnabas.testing import Broker
from tests.sql.postgres.running import Running, running

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
PROGRAM = Path(__file__).parent / "java" / "Postgres.java"


@pytest.fixture(scope="module")
def postgres() -> Iterator[Running]:
    with Broker() as broker:
        engine = SqlEngine(ClientConfig.from_options({"bootstrap.servers": broker.bootstrap_servers}))
        with running(engine=engine) as found:
            yield found


def test_pgjdbc(postgres: Running) -> None:
    command = java(str(PROGRAM), str(postgres.port), "by_jdbc", jvm=("-Xmx256m",), jars="pgjdbc")
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok ") == 8


def test_node_postgres(postgres: Running, js_program: Path) -> None:
    command = ["node", "postgres.js", str(postgres.port), "by_node"]
    done = subprocess.run(command, cwd=js_program, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok ") == 9
