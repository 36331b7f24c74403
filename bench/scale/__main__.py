"""`python -m bench.scale`: what grows with brokers, partitions and groups, as text and as JSON; `--render` writes docs/scale.md.

Each size is measured in a process of its own, so that its memory is its own.
"""

from __future__ import annotations

import argparse
import datetime
import json
import multiprocessing
import sys
from collections.abc import Sequence
from pathlib import Path

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
    parser.add_argument(
        "--json", metavar="FILE", help=f"write the results here, for a page {RESULTS.name} beside the other results"
    )
    parser.add_argument("--render", action="store_true", help="measure nothing: write the tables of docs/scale.md")
    options = parser.parse_args(arguments)
    if options.render:
        write_page(json.loads(RESULTS.read_text()))
        return 0
    sizes = []
    for size in QUICK_SIZES if options.quick else SIZES:
        with multiprocessing.get_context("spawn").Pool(1) as alone:
            sizes.append(alone.apply(measure, size))
        print(json.dumps(sizes[-1]), flush=True)
    results = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": report.describe_machine(),
        "sizes": sizes,
        "groups": measure_groups(),
        "idle_fetch_s": measure_idle_fetch(),
    }
    print(json.dumps({name: results[name] for name in ("groups", "idle_fetch_s")}), flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
