"""Views kept by Spark: typed in psql, as users do."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas.testing import Broker
from tests.sql.test_service import started

pytest.importorskip("pyspark")
pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(600),
    pytest.mark.skipif(shutil.which("psql") is None, reason="psql is missing"),
]

FIRST = """
CREATE TABLE sales (shop text, amount bigint);
INSERT INTO sales VALUES ('Rome', 5), ('Oslo', 7), ('Rome', 1);
CREATE MATERIALIZED VIEW totals AS SELECT shop, count(*) AS n, sum(amount)::bigint AS amount FROM sales GROUP BY shop;
SELECT * FROM totals ORDER BY shop;
"""
SECOND = """
INSERT INTO sales VALUES ('Oslo', 10), (NULL, 1);
FLUSH;
SELECT * FROM totals ORDER BY shop NULLS FIRST;
CREATE MATERIALIZED VIEW large AS SELECT shop FROM totals WHERE amount > 10;
INSERT INTO sales VALUES ('Rome', 100);
SELECT * FROM large ORDER BY shop;
ALTER MATERIALIZED VIEW totals AS SELECT shop, count(*) AS n, max(amount) AS amount FROM sales GROUP BY shop;
REFRESH MATERIALIZED VIEW large;
SELECT * FROM large ORDER BY shop;
SELECT name, state, error FROM barnabas.views ORDER BY name;
DROP TABLE sales CASCADE;
SELECT count(*) FROM barnabas.jobs;
"""


@contextmanager
def working_engine(broker: Broker, folder: Path) -> Iterator[None]:
    command = [
        sys.executable,
        "-m",
        "barnabas.cli",
        "engine",
        "start",
        "--listener",
        "http://127.0.0.1:0",
        "--master",
        "local[2]",
    ]
    command += ["--data-dir", str(folder), "-b", broker.bootstrap_servers]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def typed(port: int, text: str) -> list[str]:
    """The rows that psql shows."""
    command = ["psql", "-h", "127.0.0.1", "-p", str(port), "-U", "me", "-d", "barnabas", "-Atq", "-v", "ON_ERROR_STOP=1"]
    ended = subprocess.run(command, input=text, capture_output=True, text=True, timeout=400, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def test_views_in_psql(broker: Broker, tmp_path: Path) -> None:
    with started(broker) as (_, _, port):
        with working_engine(broker, tmp_path / "engine"):
            assert typed(port, FIRST) == ["Oslo|1|7", "Rome|2|6"]
        with working_engine(broker, tmp_path / "engine"):  # it goes on from its folder
            assert typed(port, SECOND) == [
                "|1|1", "Oslo|2|17", "Rome|2|6", "Oslo", "Rome", "Rome", "large|running|", "totals|running|", "0",
            ]  # fmt: skip
