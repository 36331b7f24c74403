"""A broker for the tests of Connect, with an engine that only says that it works."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.testing import Broker
from tests.connect.fake_engine import FakeEngine


@pytest.fixture(scope="module")
def broker_alone() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def engine(broker_alone: Broker) -> Iterator[FakeEngine]:
    engine = FakeEngine(broker_alone.bootstrap_servers)
    yield engine
    engine.close()
