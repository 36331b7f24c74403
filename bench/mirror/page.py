"""The part of `docs/performance.md` on mirror links, from `bench/results/mirror.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.storage.result import MOST_OTHERS, Result, head_of, table_of

RESULTS = Path(__file__).resolve().parents[1] / "results" / "mirror.json"
TIMES = frozenset({"records/s", "s", "ms", "% of the line"})
NOTES = """
- Source and target are one broker of barnabas each, on this machine. Batches of the source have 16 kB. [The guide](guides/mirroring.md)
  explains links.
- MirrorMaker 2 is `connect-mirror-maker` of Apache Kafka 4.3.0 in a process of its own, with four tasks, `IdentityReplicationPolicy`,
  fetches of 4 MB a partition, `batch.size=524288`, `linger.ms=5` and 2 GB heap at most. It begins with a new JVM; a link begins in a
  running broker.
- *Lag* counts from the moment when a batch is due to be written to the source until a consumer of the target has it.
- *Peak memory* of barnabas is the highest memory of the target while it copies, minus that of a broker of the same age without data.
  *Afterwards* it is what remains.
- *The line* is a pair of TUN devices between two network namespaces: a program keeps packets of 9 kB until the line is free and half of the
  round trip is over. So TCP is real at both ends. The source has `socket.send.buffer.bytes=-1`. It counts from the first record on, and
  only bytes of records count.
"""


def render(page: dict[str, Any]) -> str:
    """The section."""
    text = f"\n## Mirror links\n\n{head_of(page)}\n" + table_of(page, TIMES) + NOTES
    is_busy = page["others_cpu"] > MOST_OTHERS  # then rates of different moments are not compared
    compared = [] if is_busy else [result for result in (Result(**each) for each in page["results"]) if result.ratio is not None]
    absent = [f"- {name}: not measured: {reason}\n" for name, reason in page["absent"].items()]
    return text + "".join(absent) + "".join(f"- {each.title}: {each.ratio:.0f} times MirrorMaker 2.\n" for each in compared)
