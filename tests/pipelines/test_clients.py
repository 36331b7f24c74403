"""Clients of worker processes, and what Spark's own daemon is taught by the first of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ASK = """
import gc, sys
from barnabas.client.config import ClientConfig
from barnabas.pipelines.clients import borrowed_client

def worker(connection, authenticated):
    return 0

spark, workers = worker, []
frozen, kept = [gc.get_freeze_count()], []
for _ in range(2):
    with borrowed_client(ClientConfig.from_options({"bootstrap.servers": "127.0.0.1:1"})) as client:
        kept += [[] for _ in range(1_000)]
    frozen.append(gc.get_freeze_count())
    workers.append(worker)
print(frozen[1] > frozen[0] + 1_000, frozen[2] <= frozen[1], workers[0] is not spark, workers[1] is workers[0])
"""


@pytest.mark.parametrize(
    ("module", "expected"), [("pyspark.daemon", "True True True True"), ("something.else", "False True False True")]
)
def test_a_worker_of_sparks_daemon_spares_the_collector_and_hands_over_at_once(
    tmp_path: Path, module: str, expected: str
) -> None:
    package, name = module.split(".")
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").touch()
    (tmp_path / package / f"{name}.py").write_text(ASK)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    told = subprocess.run(
        [sys.executable, "-m", module], env=environment, cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    assert told.strip() == expected


KEEP = """
import sys
from barnabas.client.config import ClientConfig
from barnabas.pipelines.clients import borrowed_client

with borrowed_client(ClientConfig.from_options({"bootstrap.servers": sys.argv[1]})) as client:
    client.topics()
"""


def test_what_is_kept_is_closed_when_the_process_ends(kafka_server: str) -> None:
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", KEEP, kafka_server]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert ended.stderr == ""
