"""The files of `logic/` pass over the Postgres port, with an engine of views."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from barnabas.client.config import ClientConfig
from barnabas.sql.engine import SqlEngine
from barnabas.testing import Broker
from tests.sql import logictest
from tests.sql.postgres.running import Running, running
from tests.sql.views.fake_engine import FakeEngine

FILES = sorted(Path(__file__).with_name("logic").glob("*.slt"))


@pytest.fixture(scope="module")
def server(broker: Broker, running_views: FakeEngine) -> Iterator[Running]:
    engine = SqlEngine(ClientConfig.from_options({"bootstrap.servers": broker.bootstrap_servers}))
    with running(engine=engine) as found:
        yield found


@pytest.fixture(scope="module")
def running_views(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeEngine]:
    with FakeEngine(broker.bootstrap_servers, tmp_path_factory.mktemp("engine")) as engine:
        yield engine


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_passes(server: Running, path: Path) -> None:
    def connect() -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(server.dsn, autocommit=True)

    with connect() as connection:
        outcome = logictest.run(connection, path, connect=connect)
    assert outcome.failures == []
    assert outcome.passed > 0
