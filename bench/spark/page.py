"""What the benches write into `docs/spark.md`: each its block between two marks, so that a figure stands in one place."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Sequence
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "spark.md"


def measured(rounds: int) -> str:
    """When and where, in a line."""
    times = "once" if rounds == 1 else f"{rounds} times"
    busy = os.getloadavg()[2] / (os.cpu_count() or 1)
    today = datetime.datetime.now(datetime.UTC).date()
    system = f"Linux {'.'.join(platform.release().split('.')[:2])}, Python {platform.python_version()}"
    return f"Measured {times} on {today} with {os.cpu_count()} cores, {system}; the machine's load before was {busy:.1f} for each core."


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ["---", *["---:"] * (len(head) - 1)], *rows)]


def write_block(name: str, lines: Sequence[str], page: Path = PAGE) -> None:
    """Replace what stands between the marks of `name`."""
    begin, end = f"<!-- begin of {name} -->\n", f"<!-- end of {name} -->\n"
    before, found, rest = page.read_text().partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise SystemExit(f"{page} has no marks of {name}")
    page.write_text(before + begin + "\n".join(lines) + "\n" + end + after)
