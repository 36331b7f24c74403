"""The part of `docs/performance.md` on views, from `bench/results/views.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.storage.result import Result, head_of, table_of

RESULTS = Path(__file__).resolve().parents[1] / "results" / "views.json"
TIMES = frozenset({"rows/s", "queries/s", "ms", "s", "% of a core"})
NOTES = """
- Broker, SQL service and engine are processes of their own, and Spark runs with `--master local[2]`. The load shares the machine with
  them.
- The small view counts and sums JSON by 1,000 keys, of a topic of two partitions. The time of a record begins when it is due, and ends
  when a `read_committed` consumer of the view's topic has a row that counts it. *A SQL session* asks for the sum of the counts, waits 5 ms
  and asks again.
- Rates of a backlog are from `CREATE MATERIALIZED VIEW` until the statement returns: then the view has all rows. Spark ran already.
- *Spark alone* counts and sums the same JSON of the same topic in update mode, with the source of barnabas, RocksDB, the same
  micro-batches, and a `foreachBatch` that drops the rows. It keeps nothing that can be read. Its session, and a first query, are not
  counted.
- A row by its key is a prepared statement of the Postgres protocol, with the result in binary.
- *Follows again* is the time from the start of the next engine until the view has the records that came meanwhile.
- Memory is the proportional set size: of a page that several processes share, each counts its part. The JVM has Spark's default heap, at
  most 1 GB.
- The ten views filter, count, aggregate, keep distinct rows, rank, join and unite, all over one topic. The time of a record ends when
  its view's transaction is committed.
"""


def render(page: dict[str, Any]) -> str:
    """The section."""
    text = f"\n## Views\n\n{head_of(page)}\n" + table_of(page, TIMES)
    ratios = [f"- {each.title}: {each.ratio:.2f} times the rate of Spark alone." for each in _compared(page)]
    return text + NOTES + "".join(f"{line}\n" for line in ratios)


def _compared(page: dict[str, Any]) -> list[Result]:
    return [result for result in (Result(**each) for each in page["results"]) if result.ratio is not None]
