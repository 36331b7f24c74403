"""The part of `docs/performance.md` on Nexmark, from `bench/results/nexmark.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.storage.result import head_of, table_of

RESULTS = Path(__file__).resolve().parents[1] / "results" / "nexmark.json"
NOTES = """
- The events are those of the generator of Nexmark, in three topics of two partitions each, as JSON. The rate counts the records of the
  topics that a query reads, from `CREATE MATERIALIZED VIEW` until the statement returns. Spark ran already.
- Each view is compared with its query, which DuckDB runs over the topics: no row is missing, and none is too many.
- *Spark alone* runs the same query as a stream over the same topics, with the source of barnabas and the same micro-batches, and drops its
  rows. It keeps nothing that can be read, and writes nothing. Queries without that line are those that Spark refuses on streams.
"""


def render(page: dict[str, Any]) -> str:
    """The section."""
    return f"\n## Nexmark\n\n{head_of(page)}\n" + table_of(page, frozenset({"rows/s"})) + NOTES
