"""The result of a case, as a line on a terminal and as a part of `docs/performance.md`."""

from __future__ import annotations

import datetime
import os
import statistics
import time
from collections.abc import Callable, Container, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from bench import report
from bench.figures import spread
from bench.report import by_command
from bench.servers import busy_seconds

TITLE = "\n## Storage at work\n"
MOST_OTHERS = 0.25  # share of the machine's CPU; with more other work, figures are not compared with a target
NOTES = """
`python -m bench.storage` takes pairs in turns if it compares two things.

- *while compacting*: the cleaner was at work from the beginning to the end of the measurement.
- **reading from the disk**: files are written back and dropped from the page cache before they are read.
- *one fsync for each request*: a loop that writes the same batch to one of eight files and syncs it, again and again: the rate of a
  server that syncs for every request.
"""


@dataclass
class Result:
    """The figures by label, one for each repetition, and their target."""

    case: str
    title: str
    unit: str
    figures: dict[str, list[float]]
    target: str = ""
    met: bool | None = None
    remark: str = ""
    ratio: float | None = field(default=None)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def ratio(result: Result, label: str, base: str) -> float:
    """The median of the ratios of the pairs."""
    pairs = zip(result.figures[label], result.figures[base], strict=True)
    return statistics.median(mine / other for mine, other in pairs)


def lines_of(result: Result) -> list[str]:
    """The lines of a result for a terminal."""
    lines = [f"{result.title} ({result.unit})"]
    lines += [f"    {label:<44} {spread(values)}" for label, values in result.figures.items()]
    if result.ratio is not None:
        lines.append(f"    ratio {result.ratio:.2f}x{_after_comma(judged(result, ''))}")
    if result.remark:
        lines.append(f"    {result.remark}")
    return lines


def render(page: dict[str, Any]) -> str:
    """The part of `docs/performance.md`, from the results of `python -m bench.storage`."""
    results = page["results"]
    short = ", in short measurements" if page["quick"] else ""
    text = f"{TITLE}\nMeasured on {page['date']}{short}.{by_command(page)}\n"
    text += "\n| | | | ratio | target |\n| --- | --- | ---: | ---: | --- |\n"
    for result in (Result(**each) for each in results):
        for row, (label, values) in enumerate(result.figures.items()):
            title = f"{result.title} ({result.unit})" if not row else ""
            last = row == len(result.figures) - 1
            shown = f"{result.ratio:.2f}x" if last and result.ratio is not None else ""
            text += f"| {title} | {label} | {spread(values)} | {shown} | {judged(result, '**') if last else ''} |\n"
    remarks = [f"- {result['title']}: {result['remark']}" for result in results if result["remark"]]
    return text + NOTES + ("\n" + "\n".join(remarks) + "\n" if remarks else "")


def judged(result: Result, mark: str) -> str:
    """The target of the figure and whether it is met; a missed target is between two of `mark`. Empty without a target."""
    if not result.target:
        return ""
    return result.target + ("" if result.met is None else (": yes" if result.met else f": {mark}no{mark}"))


def _after_comma(text: str) -> str:
    return f", {text}" if text else ""


def judge(result: Result, label: str) -> None:
    """Set whether the median of a label meets the target, such as `>= 1,000` or `< 2`."""
    figures = sorted(result.figures.get(label) or [])
    if not result.target or not figures:
        return
    sign, _, number = result.target.partition(" ")
    middle, wanted = figures[len(figures) // 2], float(number.replace(",", ""))
    result.met = middle >= wanted if sign == ">=" else middle < wanted


def measured(measure: Callable[[], Sequence[Result]], command: str, *, quick: bool) -> dict[str, Any]:
    """Measure, and return all that a section of the page shows."""
    began = time.perf_counter(), busy_seconds(), sum(os.times()[:4])
    results = measure()
    others = busy_seconds() - began[1] - (sum(os.times()[:4]) - began[2])
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": command,
        "quick": quick,
        "machine": report.describe_machine(),
        "others_cpu": max(others, 0.0) / (time.perf_counter() - began[0]) / (os.cpu_count() or 1),
        "results": [result.as_json() for result in results],
    }


def head_of(page: dict[str, Any]) -> str:
    """When and how the figures were measured, and how much other work there was."""
    short = ", in short measurements" if page["quick"] else ""
    text = f"These figures are from {page['date']}{short}.{by_command(page)}\n"
    text += f"Other work took {page['others_cpu']:.0%} of the machine's CPU meanwhile."
    return text + (" That is too much to judge times and rates." if page["others_cpu"] > MOST_OTHERS else "")


def table_of(page: dict[str, Any], times: Container[str]) -> str:
    """The figures as a table.

    Args:
        times: units of figures that other work on the machine changes; on a busy machine they are not compared with a target.
    """
    busy = page["others_cpu"] > MOST_OTHERS
    text = "\n| | | | target |\n| --- | --- | ---: | --- |\n"
    for result in (Result(**each) for each in page["results"]):
        for row, (label, values) in enumerate(result.figures.items()):
            title = f"{result.title} ({result.unit})" if not row else ""
            target = result.target if busy and result.unit in times else judged(result, "**")
            text += f"| {title} | {label} | {spread(values)} | {'' if row else target} |\n"
    return text
