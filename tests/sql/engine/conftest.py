from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.sql.engine import SqlEngine
from barnabas.testing import Broker
from tests.sql.engine.asking import Asking, asking, engine_of


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def engine(broker: Broker) -> Iterator[SqlEngine]:
    engine = engine_of(broker)
    yield engine
    engine.close()


@pytest.fixture
def ask(engine: SqlEngine) -> Iterator[Asking]:
    made = asking(engine)
    yield made
    made.session.close()
