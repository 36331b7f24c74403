"""The result of a case, as a line on a terminal and as a part of `docs/performance.md`."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.figures import spread
from bench.report import by_command

TITLE = "\n## Storage at work\n"
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
