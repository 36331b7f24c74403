"""Several engines share the tasks of connectors: each runs some, and those of a dead one run elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.testing import Broker
from tests.connect.cluster_of_workers import Workers
from tests.connect.workers import FILE_SOURCE


@pytest.fixture
def workers(broker: Broker, tmp_path: Path) -> Iterator[Workers]:
    made = Workers(broker, tmp_path)
    yield made
    made.close()


def test_tasks_are_shared_and_those_of_a_dead_engine_run_elsewhere(workers: Workers, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a\n")
    config = {"file": str(tmp_path / "in.txt"), "topic": "shared"}
    for number in range(4):
        workers.declare(f"shared-{number}", "source", FILE_SOURCE, config)
    workers.start("a")
    workers.waits_for(4)
    workers.start("b")
    workers.waits_for(2, 2)
    workers.start("c")
    workers.waits_for(2, 1, 1)
    workers.kill("a")
    workers.waits_for(2, 2)
    workers.engines.pop("b").close()
    workers.waits_for(4)
