"""The blocks of a page work when they are pasted, and print the output that the page shows."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

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
