"""Databases for the tests of connectors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.connect.plugins.servers import MariadbServer, PostgresServer


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with closing(PostgresServer()) as server:
        yield server


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariadbServer]:
    with closing(MariadbServer()) as server:
        yield server
