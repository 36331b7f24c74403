"""A broker of one's own for each test of an engine, since the topics of jobs belong to a whole cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.testing import Broker
from tests.engine.cluster import Cluster


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def cluster(broker: Broker, tmp_path: Path) -> Iterator[Cluster]:
    """The broker without jobs."""
    made = Cluster(broker, tmp_path / "engine")
    yield made
    made.close()
