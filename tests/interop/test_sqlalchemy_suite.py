"""SQLAlchemy's own suite for dialects, against the Postgres port. `KNOWN` has what it finds, each with the reason.

The classes that reflect many tables in all combinations take most of its time, and `tests/interop/test_reflection.py` compares what they
look at with PostgreSQL.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from barnabas.client.config import ClientConfig
from barnabas.sql.engine import SqlEngine
from barnabas.testing import Broker
from tests.interop.environments import SOURCES
from tests.sql.postgres.running import running

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1200)]

CONFTEST = """
import pytest
import sqlalchemy.dialects.postgresql.provision as provision
pytest.register_assert_rewrite("sqlalchemy.testing.assertions")
provision._extensions = []  # citext and hstore are not there
from sqlalchemy.testing.plugin.pytestplugin import *
"""
SETTINGS = "[sqla_testing]\nrequirement_cls=requirements_of_suite:Requirements\nprofile_file=profiles.txt\n"
LEFT_OUT = "not ComponentReflection and not Bizarro"
KNOWN = {
    "QuotedNameArgumentTest::test_get_table_options": "PostgreSQL fails it too: the test is for dialects without options of tables",
    "TrueDivTest::test_truediv_divisor": "numeric without sizes has nine digits behind the point",
}
LEAST = 700  # tests that pass


def test_the_suite_for_dialects(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_suite.py").write_text("from sqlalchemy.testing.suite import *\n")
    (tmp_path / "setup.cfg").write_text(SETTINGS)
    shutil.copy(SOURCES / "sqlalchemy_suite" / "requirements_of_suite.py", tmp_path)
    with Broker() as broker:
        engine = SqlEngine(ClientConfig.from_options({"bootstrap.servers": broker.bootstrap_servers}))
        with running(engine=engine) as found:
            with psycopg.connect(found.dsn, autocommit=True) as connection:
                for schema in ("test_schema", "test_schema_2"):
                    connection.execute(f"CREATE SCHEMA {schema}")
            url = f"postgresql+psycopg://anna@127.0.0.1:{found.port}/barnabas"
            command = [
                sys.executable, "-m", "pytest", "-q", "-rfE", "--tb=line", "-c", "setup.cfg", "--rootdir", ".", "-p", "no:randomly",
                "-p", "no:xdist", "-p", "no:cacheprovider", "--dburi", url, "-k", LEFT_OUT, "test_suite.py",
            ]  # fmt: skip
            done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=1100, check=False)
    failed = re.findall(r"^(?:FAILED|ERROR) test_suite\.py::(\w+?)(?:_postgresql\S*?)?::(\w+)", done.stdout, re.MULTILINE)
    assert {f"{group}::{name}" for group, name in failed} == KNOWN.keys(), done.stdout[-8000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= LEAST
