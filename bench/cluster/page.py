"""The part of `docs/performance.md` on clusters, from the results of `python -m bench.cluster`."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from bench.figures import spread as spread_of
from bench.report import OURS, PEAKS, THEIRS, Result, by_command, peaks, spread, table, titled, verdict
from bench.storage.result import Result as Labelled

CPU_TARGET = 2.0  # target with acks=all: barnabas takes this many times less CPU
NOTES = """
These measurements differ from those of one broker (`python -m bench.cluster`):

- Every partition has three replicas. A *producer* is one connection to each broker and writes to one partition there.
- *Bulk* are batches of 16 kB, the `batch.size` of Kafka's producer, with ten in flight on a connection. One record a request has 64 in
  flight.
- Large batches go to memory of the machine that was used just before (`bench/memory.py`), as for one broker, as long as that lasts. The
  host gives further memory page by page ([why that is slow](internals/hot-path.md#what-bounds-it)), and the faster cluster reaches it
  first.
- A cluster warms up until it gets no faster. Kafka's brokers take minutes of load until their code is compiled.
- CPU and memory are of all processes of a cluster: ours with its ZooKeeper, Kafka's with its controllers. *Peak MB* adds up the highest
  memory in RAM of each process.
- *End to end* is the time from the planned moment of sending until a consumer has the message. The producer keeps up to five requests in
  flight on a connection and batches what is due meanwhile, as Kafka's does. Each repetition starts one cluster, loads it until its median
  does not improve, measures, stops it and starts the other: three idle brokers of Kafka take a tenth of a core.
- Other work on the machine (above) slows Kafka more: its brokers need more CPU for a request, and its code does not warm up. Ratios are
  then larger than on an idle machine. Check this before you quote them.
- *Failover* is the time from the signal until every partition has a leader that answers, with the default session timeouts of both.
"""


def render(page: dict[str, Any]) -> str:
    short = " in short measurements (`--quick`)" if page["quick"] else ""
    text = f"\n## Three brokers beside three of Kafka\n\nMeasured on {page['date']}{short}. A figure without a range was measured once."
    text += by_command(page)
    cases: list[Result] = page["cases"]
    shares = [run["others_cpu"] for case in cases for runs in case["runs"].values() for run in runs if "others_cpu" in run]
    if shares:
        text += f" Other work took {statistics.median(shares):.0%} of the machine's CPU meanwhile (median)."
    head = ["", OURS, THEIRS, "ratio", "target"]
    text += "\n\n" + table(head, [_row(case) for case in cases if case["unit"] == "records/s"])
    text += "\n" + table(head, [row for case in cases if case["name"].startswith("end-to-end") for row in _latencies(case)])
    text += "\nCPU seconds of the cluster per million records, and its memory:\n\n"
    text += table([*head, *PEAKS], [_cpu(case) for case in cases if "cpu_s_per_million" in case["runs"][OURS][0]])
    many = [case for case in cases if case["name"].startswith("many-")]
    if many:
        text += "\n1,000 partitions with three replicas each:\n\n" + table(head, [_row(case) for case in many])
    return text + _resync([Labelled(**each) for each in page["resync"]]) + NOTES + _measured_otherwise(page, cases)


def _measured_otherwise(page: dict[str, Any], cases: Sequence[Result]) -> str:
    """A table of the cases that were measured with another command, on another day or machine, or in quick mode; empty if there
    are none."""
    titles: dict[tuple[str, str, str], list[str]] = {}
    for case in cases:
        way = case.get("measured", page)
        if any(way[key] != page[key] for key in ("command", "date", "quick", "machine")):
            date = way["date"] + (", in short measurements" if way["quick"] else "")
            titles.setdefault((f"`{way['command']}`", date, way["machine"]["processor"]), []).append(case["title"])
    rows = [["; ".join(each), *how] for how, each in titles.items()]
    lines = "".join("| " + " | ".join(row) + " |\n" for row in rows)
    return f"\nMeasured separately:\n\n| cases | by | on | machine |\n| --- | --- | --- | --- |\n{lines}" if rows else ""


def _row(case: Result) -> list[str]:
    figure = case["figure"]
    return [titled(case), spread(case, OURS, figure), spread(case, THEIRS, figure), f"{case['ratio']:.2f}x", verdict(case)]


def _latencies(case: Result) -> list[list[str]]:
    rows = []
    for figure, name in (("p50_ms", "median"), ("p99_ms", "p99")):
        ratio = _ratio(case, figure)
        row = [f"{case['title']}, {name} (ms)", spread(case, OURS, figure), spread(case, THEIRS, figure), f"{ratio:.2f}x"]
        rows.append([*row, ">= 2x: " + ("yes" if ratio >= case["target"] else "**no**")])
    return rows


def _cpu(case: Result) -> list[str]:
    figure = "cpu_s_per_million"
    ratio = _ratio(case, figure)
    row = [case["title"], spread(case, OURS, figure), spread(case, THEIRS, figure), f"{ratio:.2f}x"]
    judged = "better" if ratio >= 1 else "**worse**"
    if case["unit"] == "records/s" and "acks=all" in case["title"]:
        judged = f">= {CPU_TARGET:g}x: " + ("yes" if ratio >= CPU_TARGET else "**no**")
    return [*row, judged, *peaks(case)]


def _ratio(case: Result, figure: str) -> float:
    pairs = zip(case["runs"][OURS], case["runs"][THEIRS], strict=True)
    return float(statistics.median(theirs[figure] / ours[figure] for ours, theirs in pairs))


def _resync(results: list[Labelled]) -> str:
    if not results:
        return ""
    rows = [
        [f"{result.title} ({result.unit})" if not number else "", label, spread_of(values)]
        for result in results
        for number, (label, values) in enumerate(result.figures.items())
    ]
    return "\nResync: a third replica of a topic of 600 MB is made, a third of it on each broker:\n\n" + table(["", "", ""], rows)
