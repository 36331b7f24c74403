"""Tools that reflect a schema see the same tables here and in PostgreSQL: SQLAlchemy, Alembic's autogenerate, Django's inspectdb."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import pytest

from barnabas.client.config import ClientConfig
from barnabas.sql.engine import SqlEngine
from barnabas.testing import Broker
from tests.connect.plugins.servers import PostgresServer, binaries_of_postgres
from tests.interop.environments import SOURCES, environment
from tests.sql.postgres.running import running

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
Seen = Mapping[str, Any]


def told(url: str) -> Seen:
    """The answer of the tools about a database, in which they make the schema first."""
    command = [str(environment("reflection")), str(SOURCES / "reflected.py"), url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return {**json.loads(done.stdout), "psql": shown(url)}


def shown(url: str) -> str:
    """The tables as psql shows them."""
    binaries = binaries_of_postgres()
    assert binaries is not None
    commands = [
        part
        for name in ("children", "by_parent", "+ pairs", "numbered")
        for part in ("-c", f"\\d{name if name[0] == '+' else f' {name}'}")
    ]
    psql = [str(binaries / "psql"), "-X", "-d", url.replace("+psycopg", ""), *commands]
    return subprocess.run(psql, capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.fixture(scope="module")
def theirs() -> Iterator[Seen]:
    with closing(PostgresServer()) as server:
        yield told(f"postgresql+psycopg://postgres@127.0.0.1:{server.port}/postgres")


@pytest.fixture(scope="module")
def ours() -> Iterator[Seen]:
    with Broker() as broker:
        engine = SqlEngine(ClientConfig.from_options({"bootstrap.servers": broker.bootstrap_servers}))
        with running(engine=engine) as found:
            yield told(f"postgresql+psycopg://anna@127.0.0.1:{found.port}/barnabas")


@pytest.mark.parametrize("when", ["made", "migrated"])
def test_sqlalchemy_reflects_the_same_tables(ours: Seen, theirs: Seen, when: str) -> None:
    assert theirs[when].keys() == {"children", "numbered", "pairs", "parents"}
    assert ours[when] == theirs[when]


def test_psql_shows_the_same_tables(ours: Seen, theirs: Seen) -> None:
    assert '"children_parent_id_fkey" FOREIGN KEY (parent_id) REFERENCES parents(id) ON DELETE CASCADE' in theirs["psql"]
    assert ours["psql"] == theirs["psql"]


def test_autogenerate_of_alembic_finds_no_changes(ours: Seen, theirs: Seen) -> None:
    assert theirs["changes"] == []
    assert ours["changes"] == []


def test_inspectdb_of_django_writes_the_same_models(ours: Seen, theirs: Seen) -> None:
    assert "models.ForeignKey('Parents'" in theirs["models"] or "models.ForeignKey(Parents" in theirs["models"]
    assert ours["models"] == theirs["models"]
