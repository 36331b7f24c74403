"""Databases for the tests of connectors, and tasks on a broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from barnabas.testing import Broker
from tests.connect.plugins.servers import MariadbServer, PostgresServer
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


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with closing(PostgresServer()) as server:
        yield server


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariadbServer]:
    with closing(MariadbServer()) as server:
        yield server
