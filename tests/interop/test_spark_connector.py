"""Spark's own `kafka` connector, with the PySpark it belongs to."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from bench.spark.compare import connector_jars, connector_python

from tests.interop.conftest import Server
from tests.interop.spark_connector import ROWS

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]


def test_batches_and_streams(server: Server, unique: Callable[[str], str], tmp_path: Path) -> None:
    program = Path(__file__).with_name("spark_connector.py")
    command = [str(connector_python()), str(program), server.bootstrap, unique("topic"), str(tmp_path), str(connector_jars())]
    environment = {**os.environ, "PYTHONPATH": ""}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {"batch": ROWS, "by time": ROWS, "stream": ROWS}
