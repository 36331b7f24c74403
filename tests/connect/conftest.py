"""A broker for the tests of Connect, tasks on it without Spark, and an engine that only says that it works."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.testing import Broker
from tests.connect.fake_engine import FakeEngine
from tests.connect.runtime.tasks import Tasks


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def engine(broker: Broker) -> Iterator[FakeEngine]:
    engine = FakeEngine(broker.bootstrap_servers)
    yield engine
    engine.close()


@pytest.fixture
def tasks(broker: Broker, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Tasks]:
    """Starts tasks, and ends them after the test."""
    made = Tasks(broker, tmp_path, request.node.name)
    yield made
    made.close()
