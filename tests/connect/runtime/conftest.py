"""Tasks of connectors on a broker, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.testing import Broker
from tests.connect.runtime.tasks import Tasks


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def tasks(broker: Broker, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Tasks]:
    """Starts tasks, and ends them after the test."""
    made = Tasks(broker, tmp_path, request.node.name)
    yield made
    made.close()
