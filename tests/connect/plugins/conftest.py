"""Databases for the tests of connectors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.connect.plugins.servers import MariadbServer, PostgresServer
from tests.connect.plugins.targets import Target


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with closing(PostgresServer()) as server:
        yield server


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariadbServer]:
    with closing(MariadbServer()) as server:
        yield server


@pytest.fixture(params=["postgres", "sqlite", "duckdb", "mariadb"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Target:
    """A database of each kind."""
    match request.param:
        case "postgres":
            return Target(request.getfixturevalue("postgres").url, "postgres")
        case "mariadb":
            return Target(request.getfixturevalue("mariadb").url, "root")
    return Target(f"jdbc:{request.param}:{tmp_path / 'tables.db'}")
