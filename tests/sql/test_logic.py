"""The files of `logic/` pass over the Postgres port, with both of its protocols."""

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

FILES = sorted(Path(__file__).with_name("logic").glob("*.slt"))


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with Broker() as broker:
        engine = SqlEngine(ClientConfig.from_options({"bootstrap.servers": broker.bootstrap_servers}))
        with running(engine=engine) as found:
            yield found


@pytest.mark.parametrize("extended", [False, True], ids=["simple", "extended"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_passes(server: Running, path: Path, extended: bool) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        outcome = logictest.run(connection, path, extended=extended)
    assert outcome.failures == []
    assert outcome.passed > 0
