"""The part of `docs/performance.md` on SQL, from `bench/results/sql.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from bench.report import table
from bench.storage.result import head_of, table_of

RESULTS = Path(__file__).resolve().parents[1] / "results" / "sql.json"
TIMES = frozenset({"queries/s", "rows/s", "ms", "s"})
NOTES = """
- `barnabas sql start` is a process of its own beside a broker of barnabas. The load shares the machine with both.
- *Postgres* sends Bind, Execute and Sync of a prepared statement as bytes, and takes results in binary. *HTTP* sends the whole statement
  with its parameters over a connection that stays open. *psycopg 3* prepares the statement and makes Python values of the row.
- *Of CPU time* divides the queries by the user and system time of the SQL process, so that other work on the machine changes it less.
- Each connection has one statement on its way at a time. Every insert is a statement and a transaction of its own, and it is answered
  after `acks=all`.
- The counted topic has one partition, and its values are JSON. It has no primary key, so that each count reads the topic.
- Memory is that of the SQL process. DuckDB and Arrow are loaded after the ports accept connections.
"""


class Published(NamedTuple):
    """A figure of another system, and its source."""

    title: str
    value: str
    by: str


PUBLISHED = (
    Published(
        "RisingWave, point selects",
        "25,814 queries/s, mean 4.96 ms; a serving node of 8 cores",
        "docs.risingwave.com/get-started/rw-benchmarks-query",
    ),
    Published(
        "ksqlDB, pull queries by key over `/query`",
        "about 3,000 queries/s; the machine is not named",
        "github.com/confluentinc/ksql/issues/7509",
    ),
)


def render(page: dict[str, Any]) -> str:
    """The section."""
    text = f"\n## SQL\n\n{head_of(page)}\n" + table_of(page, TIMES) + NOTES
    text += (
        "\nOther systems were not measured here. Their makers publish these figures, of other machines and with other data:\n\n"
    )
    return text + table(["", "figure", "published by"], [list(each) for each in PUBLISHED])
