"""The part of `docs/performance.md` on sinks and sources, from `bench/results/sinks.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.connect.systems import Ours
from bench.figures import spread
from bench.storage.result import MOST_OTHERS, Result, head_of, ratio

RESULTS = Path(__file__).resolve().parents[1] / "results" / "sinks.json"
COPY = "psql \\copy"
COPIED = "postgresql-insert"
NOTES = f"""
- The rows of a sink are written in one transaction, and the clock starts when it ends. It stops when the connector has committed its
  offsets behind them. Sinks read committed records.
- The rows of a source appear at once, and the clock stops when they are in the topic.
- The connector runs before, and has moved one row. So no start is measured.
- A row has five columns and about 100 bytes as JSON. Records have schemas where a counterpart wants them: in the cases of SQL sinks
  into PostgreSQL and MariaDB.
- Processor time and memory are those of the worker with all its processes, without the broker and the database. Memory is the peak
  meanwhile. The workers of Java have 2 GB of heap at most.
- *Debezium's sink* and *Iceberg's sink* run in Kafka Connect 4.3.1. The first has `batch.size=3000`, polls of so many records, and
  another pool of connections than its own, which Maven Central lacks. Both commit offsets every 250 ms. Both sinks of Iceberg
  commit every second.
- *{COPY}* copies the same rows from a file of CSV into the same table.
- PostgreSQL runs with `fsync=off`, MariaDB with `innodb_flush_log_at_trx_commit=2`. HTTP and S3 have a small server in Python.
"""


def render(page: dict[str, Any]) -> str:
    """The section."""
    results = {each["case"]: Result(**each) for each in page["results"]}
    text = f"\n## Sinks and sources\n\n{head_of(page)}\n\n| | | rows/s | CPU of a million rows (s) | memory (MB) |\n"
    text += "| --- | --- | ---: | ---: | ---: |\n"
    for case in dict.fromkeys(name.rpartition(".")[0] for name in results):
        rate = results[f"{case}.rate"]
        for row, label in enumerate(rate.figures):
            cells = [_cell(results.get(f"{case}.{name}"), label) for name in ("rate", "cpu", "memory")]
            text += f"| {'' if row else rate.title} | {label} | {' | '.join(cells)} |\n"
    return text + NOTES + ("" if page["others_cpu"] > MOST_OTHERS else _compared(results))


def _cell(result: Result | None, label: str) -> str:
    return spread(result.figures[label]) if result is not None and label in result.figures else ""


def _compared(results: dict[str, Result]) -> str:
    text = ""
    for name, result in results.items():
        others = [
            label for label in result.figures if label != Ours.name and name.endswith(".rate") and Ours.name in result.figures
        ]
        for label in others:
            found = ratio(result, Ours.name, label)
            text += f"- {result.title}: {found:.2f} times the rate of {label}.\n"
    return text
