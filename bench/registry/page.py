"""The part of `docs/performance.md` on the schema registry, from `bench/results/registry.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.storage.result import MOST_OTHERS, head_of, table_of

RESULTS = Path(__file__).resolve().parents[1] / "results" / "registry.json"
TIMES = frozenset({"requests/s", "ms", "s"})
NOTES = """
- Registries run one after the other as processes of their own, on the same broker and each on a topic of its own.
- Each schema is an Avro record of ten fields under a subject of its own. A known schema is registered again under the same subject.
- {reader} sends the GETs, a client in Python the other requests; both share the machine with the registry and the broker.
- *No registry* is a server that answers every request at once with the same bytes. It shows the most that the load itself reaches.
- *Of CPU time* divides the requests over 8 connections by the user and system time of the registry's process. So other work on the
  machine changes it less than it changes requests/s.
- At a fixed rate, a delay counts from the moment at which the request was planned.
- *CPU until ready* is that of the registry alone.
- *Ready* is the time from the start of the process until a read and a write are answered.
"""
EARLIER = """
These figures come from an earlier run on a machine of this kind, with another client. Confluent's registry cannot be installed on this
machine, so it is not part of `python -m bench run registry`.

| | Confluent 8.3.1 | Karapace 6.2.0 |
| --- | ---: | ---: |
| registrations/s | 106 | 157 |
| registrations of known schemas/s | 801 | 205 |
| GET by id/s, 1 and 8 connections | 1,253 and 2,029 | 309 and 325 |
| ready (s) | 7 to 9 | 3.2 |
| memory (MB) | 283 to 448 | 142 |
"""


def render(page: dict[str, Any]) -> str:
    """The section."""
    busy = page["others_cpu"] > MOST_OTHERS
    text = "\n## Schema registry\n\n" + head_of(page).removesuffix(".") + (", but not what a request takes." if busy else ".")
    text += "".join(f"\n{name} was not measured: {reason}." for name, reason in page["absent"].items())
    text += "\n" + table_of(page, TIMES)
    reader = page["reader"]
    return text + NOTES.format(reader=reader[0].upper() + reader[1:] if " " in reader else f"`{reader}`") + EARLIER
