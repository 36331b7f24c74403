"""A broker of one's own, since the topics of jobs belong to a whole cluster; and an engine that runs views without Spark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.sql.engine import SqlEngine
from barnabas.testing import Broker
from tests.sql.engine.asking import Asking, asking, engine_of
from tests.sql.views.fake_engine import FakeEngine


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def running(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeEngine]:
    """The engine of views."""
    with FakeEngine(broker.bootstrap_servers, tmp_path_factory.mktemp("engine")) as engine:
        yield engine


@pytest.fixture(scope="module")
def engine(broker: Broker) -> Iterator[SqlEngine]:
    engine = engine_of(broker)
    yield engine
    engine.close()


@pytest.fixture
def ask(engine: SqlEngine, running: FakeEngine) -> Iterator[Asking]:
    made = asking(engine)
    yield made
    made.session.close()
