"""The sink's protocol on Apache Kafka, which has no two-phase commit: the same tests as on our broker, with transactions that time out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools.kafka import KafkaNode

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]


def test_the_driver_is_killed_at_each_step_on_apache_kafka() -> None:
    with KafkaNode(heap="512m") as node:
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "tests/pipelines/exactly_once/test_executor.py",
        ]
        environment = {**os.environ, "BARNABAS_TEST_BOOTSTRAP": node.bootstrap}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
