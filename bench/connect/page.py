"""The part of `docs/performance.md` on connectors, from `bench/results/connect.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.storage.result import Result, head_of, table_of

RESULTS = Path(__file__).resolve().parents[1] / "results" / "connect.json"
TIMES = frozenset({"lines/s", "s"})
NOTES = """
- Both workers use the same broker, barnabas, one after the other, with `StringConverter` and defaults besides. Kafka Connect runs with
  `exactly.once.source.support=enabled`, since our sources always write exactly once, and with 2 GB heap at most, as its script has it.
- The memory of barnabas has the services, the runner, its fork server and the tasks. Spark does not run.
"""


def render(page: dict[str, Any]) -> str:
    """The section."""
    text = f"\n## Connectors\n\n{head_of(page)}\n" + table_of(page, TIMES)
    compared = [result for result in (Result(**each) for each in page["results"]) if result.ratio is not None]
    return text + NOTES + "".join(f"- {each.title}: {each.ratio:.1f} times the rate of Kafka Connect.\n" for each in compared)
