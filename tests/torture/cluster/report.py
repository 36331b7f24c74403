"""The results of rounds: tables for people, and the file that the documentation quotes.

`python -m tests.torture.cluster.report` writes that file as the table of `docs/internals/cluster.md`.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median

from rich.table import Table

from tests.torture.cluster.rounds import Plan, Round

RESULTS = Path(__file__).resolve().parents[3] / "bench" / "results" / "failover.json"
Done = Mapping[str, Sequence[Round]]  # rounds by name of the cluster


def times_of(rounds: Sequence[Round]) -> dict[str, list[float]]:
    """Seconds without a writable leader, by kind and in all."""
    found: dict[str, list[float]] = {}
    for each in rounds:
        found.setdefault(each.kind, []).append(each.unwritable_s)
    return {**found, "all": [each.unwritable_s for each in rounds]}


def table_of(done: Done) -> Table:
    table = Table("kind of round", title="seconds without a writable leader: median / worst (rounds)")
    for name in done:
        table.add_column(name, justify="right")
    times = {name: times_of(rounds) for name, rounds in done.items()}
    for kind in dict.fromkeys(kind for each in times.values() for kind in each):
        table.add_row(kind, *(_cell(each.get(kind, [])) for each in times.values()))
    return table


def _cell(times: Sequence[float]) -> str:
    return f"{median(times):.2f} / {max(times):.2f} ({len(times)})" if times else "-"


def markdown_of(done: Done) -> str:
    times = {name: times_of(rounds) for name, rounds in done.items()}
    kinds = dict.fromkeys(kind for each in times.values() for kind in each)
    rows = [f"| `{kind}` | {' | '.join(_cell(each.get(kind, [])) for each in times.values())} |" for kind in kinds]
    return "\n".join([f"| kind of round | {' | '.join(times)} |", f"|---|{'---:|' * len(times)}", *rows])


def load(path: Path = RESULTS) -> Done:
    clusters = json.loads(path.read_text())["clusters"]
    return {name: [Round(**each) for each in rounds] for name, rounds in clusters.items()}


def save(done: Done, plan: Plan, path: Path = RESULTS) -> None:
    results = {
        "date": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "seed": plan.seed,
        "hold_s": plan.hold_s,
        "clusters": {name: [asdict(each) for each in rounds] for name, rounds in done.items()},
    }
    path.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    print(markdown_of(load()))
