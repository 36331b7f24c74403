"""A SQL service loads pandas and numba only when it needs them."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOADED = """
import sys
{}
print(*(name for name in ("numba", "pandas") if name in sys.modules))
"""
VALUES = """
import datetime, duckdb, pyarrow as pa, pyarrow.dataset
pa.array([1, None, "x"][:2]), pa.scalar("x"), pa.array([datetime.datetime.now(datetime.UTC)]), pa.array([{"a": [1.5]}])
table = pa.table({"a": [1, 2]})
duckdb.connect().register("t", table).execute("SELECT sum(a) FROM t").fetchall()
"""


@pytest.mark.parametrize(
    ("code", "loaded"),
    [
        (VALUES, ["pandas"]),
        ("from barnabas.sql.without_pandas import keep_pandas_out\nkeep_pandas_out()" + VALUES, []),
        ("import pandas\nfrom barnabas.sql.without_pandas import keep_pandas_out\nkeep_pandas_out()", ["pandas"]),
        (
            "from barnabas.sql.without_pandas import keep_pandas_out\nkeep_pandas_out()\n"
            "import barnabas.sql.engine, barnabas.sql.postgres.server, barnabas.sql.http.formats",
            [],
        ),
        (
            "from barnabas.sql.without_pandas import keep_pandas_out\nkeep_pandas_out()\nimport pandas\npandas.Series([1])",
            ["pandas"],
        ),
    ],
)
def test_libraries_that_are_loaded(code: str, loaded: list[str]) -> None:
    found = subprocess.run([sys.executable, "-c", LOADED.format(code)], capture_output=True, text=True, check=True)
    assert sorted(set(found.stdout.split()) - ({"numba"} if loaded else set())) == loaded
