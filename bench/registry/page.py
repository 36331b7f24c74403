"""The part of `docs/performance.md` on the schema registry, from `bench/results/registry.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.figures import spread
from bench.report import by_command
from bench.storage.result import Result, judged

RESULTS = Path(__file__).resolve().parents[1] / "results" / "registry.json"
MOST_OTHERS = 0.25  # share of the machine's CPU; with more other work, figures are not compared with a target
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
    short = ", in short measurements" if page["quick"] else ""
    text = f"\n## Schema registry\n\nThese figures are from {page['date']}{short}.{by_command(page)}\n"
    text += f"Other work took {page['others_cpu']:.0%} of the machine's CPU meanwhile."
    busy = page["others_cpu"] > MOST_OTHERS
    text += " That is too much to judge times and rates, but not what a request takes." if busy else ""
    text += "".join(f"\n{name} was not measured: {reason}." for name, reason in page["absent"].items())
    text += "\n\n| | | | target |\n| --- | --- | ---: | --- |\n"
    for result in (Result(**each) for each in page["results"]):
        for row, (label, values) in enumerate(result.figures.items()):
            title = f"{result.title} ({result.unit})" if not row else ""
            target = result.target if busy and result.unit in TIMES else judged(result, "**")
            text += f"| {title} | {label} | {spread(values)} | {'' if row else target} |\n"
    reader = page["reader"]
    return text + NOTES.format(reader=reader[0].upper() + reader[1:] if " " in reader else f"`{reader}`") + EARLIER
