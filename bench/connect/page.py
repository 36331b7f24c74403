"""The parts of `docs/performance.md` on connectors, from `bench/results/connect.json` and `capture.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.storage.result import MOST_OTHERS, Result, head_of, table_of

RESULTS = Path(__file__).resolve().parents[1] / "results" / "connect.json"
CAPTURE_RESULTS = RESULTS.with_name("capture.json")
TIMES = frozenset({"lines/s", "s"})
NOTES = """
- Both workers use the same broker, barnabas, one after the other, with `StringConverter` and defaults besides. Kafka Connect runs with
  `exactly.once.source.support=enabled`, since our sources always write exactly once, and with 2 GB heap at most, as its script has it.
- The memory of barnabas has the services, the runner, its fork server and the tasks. Spark does not run.
"""
CAPTURE_TIMES = frozenset({"rows/s", "ms"})
CAPTURE_NOTES = """
- Each capture has the same settings, a broker of barnabas and a PostgreSQL of its own, one after the other, on the same two cores
  as pgbench. A transaction of pgbench has four changes; one with many changes updates 100 accounts by one statement, and inserts 20 rows.
  Records are JSON without schemas. A consumer of committed records counts them.
- Debezium is 3.6.1 in Kafka Connect 4.3.1, with `exactly.once.source.support=enabled`, since our sources always write exactly once.
- *Debezium, tuned* has `max.batch.size=20480`, `max.queue.size=81920`, `poll.interval.ms=50`, and a producer with
  `linger.ms=5`, batches of 1 MB and lz4.
- Where pgbench is the slowest part, the sustained rates are its rates. The backlog shows the rates of the captures.
"""


def render(page: dict[str, Any]) -> str:
    """The section."""
    text = f"\n## Connectors\n\n{head_of(page)}\n" + table_of(page, TIMES)
    compared = [result for result in (Result(**each) for each in page["results"]) if result.ratio is not None]
    return text + NOTES + "".join(f"- {each.title}: {each.ratio:.1f} times the rate of Kafka Connect.\n" for each in compared)


def render_capture(page: dict[str, Any]) -> str:
    """The section on change capture."""
    text = f"\n## Change capture\n\n{head_of(page)}\n" + table_of(page, CAPTURE_TIMES)
    is_busy = page["others_cpu"] > MOST_OTHERS  # then times of different moments are not compared
    compared = [] if is_busy else [result for result in (Result(**each) for each in page["results"]) if result.ratio is not None]
    return (
        text + CAPTURE_NOTES + "".join(f"- {each.title}: {each.ratio:.2f} times the figure of Debezium.\n" for each in compared)
    )
