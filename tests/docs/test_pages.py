"""The blocks of a page work when they are pasted, and print the output that the page shows."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.connect.plugins.servers import MariadbServer, PostgresServer, binaries_of_postgres
from tests.docs.pasted import ROOT, Pasted

pytest.importorskip("pyspark")

PAGES = [
    "README.md",
    "docs/getting-started.md",
    "docs/guides/connect.md",
    "docs/guides/databases.md",
    "docs/guides/connect-files.md",
    "docs/guides/connect-http.md",
    "docs/guides/connect-lakes.md",
    "docs/guides/connect-spark.md",
    "docs/guides/connect-dlt.md",
    "docs/guides/functions.md",
    "docs/guides/jobs.md",
    "docs/guides/failover.md",
    "docs/guides/mirroring.md",
    "docs/guides/moving-from-kafka.md",
    "docs/guides/old-clients.md",
    "docs/guides/python-clients.md",
    "docs/guides/schemas-in-python.md",
    "docs/guides/sql.md",
    "docs/guides/streams.md",
    "docs/guides/tables.md",
    "docs/guides/table-formats.md",
    "docs/spark.md",
    "docs/tutorials/flights-in-sql.md",
    "docs/tutorials/views.md",
]


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_as_pasted(page: str, tmp_path: Path) -> None:
    if "psql " in (ROOT / page).read_text() and shutil.which("psql") is None:
        pytest.skip("psql is not installed")
    with Pasted(tmp_path) as reader:
        assert reader.run_page(ROOT / page) > 0, "it has something to paste"


@pytest.fixture
def postgres(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A server for `psql`."""
    if binaries_of_postgres() is None or shutil.which("psql") is None:
        pytest.skip("PostgreSQL is not installed")
    with closing(PostgresServer()) as server:
        given = {
            "PGHOST": "127.0.0.1",
            "PGPORT": str(server.port),
            "PGUSER": "postgres",
            "PGDATABASE": "postgres",
            "PGPASSWORD": "any",
        }
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        yield


@pytest.fixture
def mariadb(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A server for `mariadb`."""
    if shutil.which("mariadb-install-db") is None:
        pytest.skip("MariaDB is not installed")
    with closing(MariadbServer()) as server:
        for name, value in {"MYSQL_HOST": "127.0.0.1", "MYSQL_TCP_PORT": str(server.port), "MYSQL_PWD": ""}.items():
            monkeypatch.setenv(name, value)
        yield


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("page", "database"), [("postgresql", "postgres"), ("mariadb", "mariadb")])
def test_a_capture_runs_as_pasted(page: str, database: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue(database)
    with Pasted(tmp_path) as reader:
        assert reader.run_page(ROOT / f"docs/guides/capture-{page}.md") > 0
