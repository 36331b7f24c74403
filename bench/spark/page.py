"""The results of the benches of Spark as JSON, and their blocks in `docs/spark.md`, so that each figure has only one source.

A bench has tables (one for each server), a table has ways, and a way has the repetitions of each system.
"""

from __future__ import annotations

import datetime
import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.figures import number, spread
from bench.report import by_command, describe_machine, table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "spark.md"
FOLDER = Path(__file__).resolve().parents[1] / "results"
SOURCE, SINK = "bench/spark/compare.py", "bench/spark/sink.py"
RESULTS = {SOURCE: FOLDER / "spark-source.json", SINK: FOLDER / "spark-sink.json"}
CONNECTOR = "Spark's connector"
NOTHING = "Python that does nothing"  # the best result that Spark allows a source or sink in Python
Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Way:
    """The result of one way of reading or writing.

    Fields:
        target: the wanted ratio of the first system's rate to that of Spark's connector.
        runs: the repetitions of each system: "rows_per_s", "cpu_s_per_million" rows, and "peak_mb" of all processes of Spark.
    """

    name: str
    target: float | None
    runs: dict[str, list[Figures]]


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    ways: list[Way]


def keep(bench: str, command: str, repetitions: int, others_cpu: float, tables: Sequence[Table]) -> None:
    result = {
        "command": command,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": describe_machine(),
        "repetitions": repetitions,
        "others_cpu": others_cpu,
        "tables": [asdict(each) for each in tables],
    }
    RESULTS[bench].write_text(json.dumps(result, indent=1) + "\n")


def write_blocks(page: Path = PAGE) -> None:
    """Write the stored results into the page."""
    for bench, path in RESULTS.items():
        if path.exists():
            write_block(bench, block(json.loads(path.read_text())), page)


def block(result: dict[str, Any]) -> str:
    """The date, the machine and the method, and the tables."""
    machine = result["machine"]
    text = f"Measured {result['repetitions']} times on {result['date']}: {machine['processor']}, {machine['cores']} cores, "
    text += f"{machine['memory']}, {machine['kernel']}, Python {machine['python']}, Java {machine['java']}.{by_command(result)} "
    text += f"Other work took {result['others_cpu']:.0%} of the machine's CPU meanwhile.\n"
    text += "*Peak MB* is the highest memory of all processes of Spark together. A shared page is divided among its processes.\n"
    for each in result["tables"]:
        text += "\n" + rendered(Table(each["title"], [Way(**way) for way in each["ways"]]))
    return text


def rendered(of: Table) -> str:
    """The rates; the ratios to Spark's connector, of the first system and of the maximum in Python; and below them CPU and
    memory."""
    systems = list(of.ways[0].runs)
    rates = [
        [way.name, *(spread([run["rows_per_s"] for run in way.runs[each]]) for each in systems), *_judged(way)] for way in of.ways
    ]
    text = table([f"{of.title}: rows/s", *systems, "times", "at most", "less CPU", "to reach"], rates)
    costs = [
        [way.name, *(f"{_median(way, each, 'cpu_s_per_million')} / {_median(way, each, 'peak_mb')}" for each in systems), ""]
        for way in of.ways
    ]
    return text + "\n" + table(["CPU s per million rows / peak MB", *systems, ""], costs)


def times(way: Way, system: str | None = None) -> tuple[float, float] | None:
    """The ratio of a system's rate to that of Spark's connector, and how many times less CPU it uses: medians of the ratios of
    pairs. By default the first system. None if one was not measured."""
    runs, theirs = way.runs.get(next(iter(way.runs)) if system is None else system, []), way.runs.get(CONNECTOR, [])
    pairs = list(zip(runs, theirs, strict=True)) if runs and theirs and runs is not theirs else []
    if not pairs:
        return None
    faster = statistics.median(mine["rows_per_s"] / other["rows_per_s"] for mine, other in pairs)
    return faster, statistics.median(other["cpu_s_per_million"] / mine["cpu_s_per_million"] for mine, other in pairs)


def _judged(way: Way) -> list[str]:
    found, most = times(way), times(way, NOTHING)
    if found is None:
        return ["", "", "", ""]
    faster, less_cpu = found
    reached = "" if way.target is None else f">= {way.target:g}x: " + ("yes" if faster >= way.target else "**no**")
    return [f"{faster:.2f}x", "" if most is None else f"{most[0]:.2f}x", f"{less_cpu:.2f}x", reached]


def _median(way: Way, system: str, figure: str) -> str:
    return number(statistics.median(run[figure] for run in way.runs[system]))


def write_block(name: str, text: str, page: Path) -> None:
    """Replace the text between the marks of `name`."""
    begin, end = f"<!-- begin of {name} -->\n", f"<!-- end of {name} -->\n"
    before, found, rest = page.read_text().partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise SystemExit(f"{page} has no marks of {name}")
    page.write_text(before + begin + text + end + after)
