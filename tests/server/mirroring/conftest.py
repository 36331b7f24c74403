"""The clusters that most tests of links have; a module with other brokers has fixtures of its own under the same names."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.testing import Broker
from barnabas.testing.zookeeper import ZooKeeper
from tests.server.cluster.processes import three_brokers


@pytest.fixture
def source() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def target() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def three() -> Iterator[list[Broker]]:
    """A cluster of three brokers whose topics have three replicas."""
    settings: dict[str, str | int | bool] = {"default.replication.factor": 3, "min.insync.replicas": 2}
    with ZooKeeper(longest_session_ms=60_000) as server, three_brokers(settings, server) as brokers:
        yield brokers
