"""The part of `docs/performance.md` on topics as tables, from `bench/results/tables.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.storage.result import head_of, table_of

RESULTS = Path(__file__).resolve().parents[1] / "results" / "tables.json"
TIMES = frozenset({"rows/s", "records/s", "ms"})
NOTES = """
- Both sides read the same topic of one partition from the same broker, in turns. Records have a key and a value of 90 bytes in JSON, or the
  same five columns in Avro, without compression. The loop reads a tenth of the topic.
- The loop takes messages from confluent-kafka's consumer, decodes each value by `json` or the project's deserialiser, and makes an Arrow
  table of lists.
- *From the data folder* is without the broker's help, from the files of the running broker.
- The large topic has four partitions. *The first time* includes connecting, and for a key opening its index.
- *While the index is made* is the first reading with a condition on the key. It reads the whole topic.
"""


def render(page: dict[str, Any]) -> str:
    """The section."""
    text = f"\n## Topics as tables\n\n{head_of(page)}\n" + table_of(page, TIMES)
    times = [(each["title"], each["ratio"]) for each in page["results"] if each["ratio"] is not None]
    lines = "".join(f"- {title}: {times_loop:.1f} times the loop.\n" for title, times_loop in times)
    return text + NOTES + lines
