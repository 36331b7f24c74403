"""`python -m bench.scale`: figures that grow with brokers, partitions and groups, as text and as JSON; `--render` writes docs/scale.md.

Each size is measured in a process of its own, so that its memory is measured separately.
"""

from __future__ import annotations

import argparse
import datetime
import json
import multiprocessing
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from barnabas.signals import die_with_parent
from bench import report
from bench.scale.groups import measure_groups
from bench.scale.idle import measure_idle_fetch
from bench.scale.page import write_page
from bench.scale.size import measure

RESULTS = Path(__file__).resolve().parent.parent / "results" / "scale.json"
SIZES = ((3, 1_000, 200), (10, 10_000, 200), (50, 50_000, 200), (100, 100_000, 200), (200, 200_000, 200), (200, 50_000, 1))
QUICK_SIZES = SIZES[:2]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes only, for a look")
    numbers = range(1, len(SIZES) + 1)
    parser.add_argument("--size", type=int, action="append", choices=numbers, help="only this one of the sizes; repeatable")
    parser.add_argument(
        "--json", metavar="FILE", help=f"write the results here, for a page {RESULTS.name} beside the other results"
    )
    parser.add_argument("--render", action="store_true", help="measure nothing: write the tables of docs/scale.md")
    options = parser.parse_args(arguments)
    if options.render:
        write_page(json.loads(RESULTS.read_text()))
        return 0
    chosen = [SIZES[number - 1] for number in options.size] if options.size else QUICK_SIZES if options.quick else SIZES
    found: dict[str, Any] = {"sizes": []}
    for size in chosen:
        with multiprocessing.get_context("spawn").Pool(1, die_with_parent) as alone:
            found["sizes"].append(alone.apply(measure, size))
        print(json.dumps(found["sizes"][-1]), flush=True)
        _keep(options.json, found)
    if not options.size:
        found |= {"groups": measure_groups(), "idle_fetch_s": measure_idle_fetch()}
        print(json.dumps({name: found[name] for name in ("groups", "idle_fetch_s")}), flush=True)
        _keep(options.json, found)
    return 0


def _keep(path: str | None, found: dict[str, Any]) -> None:
    """Write the measured sections; the others stay unchanged."""
    if path is None:
        return
    before: dict[str, Any] = json.loads(Path(path).read_text()) if Path(path).exists() else {"sizes": []}
    keys = "brokers", "partitions", "per_topic"
    sizes = {tuple(size[key] for key in keys): size for size in [*before["sizes"], *found["sizes"]]}
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    ordered = [sizes[size] for size in SIZES if size in sizes]
    page = {**before, **found, "date": today, "machine": report.describe_machine(), "sizes": ordered}
    Path(path).write_text(json.dumps(page, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
