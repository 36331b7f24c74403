"""`python -m bench.storage`: the costs of storage under load, as text and as JSON; `python -m bench render` writes the page."""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench import report
from bench.storage import cold, compaction, partitions, syncing
from bench.storage.result import Result, lines_of

Measure = Callable[..., list[Result]]
CASES: dict[str, Measure] = {
    "compaction": compaction.measure,
    "partitions": partitions.measure,
    "cold": cold.measure,
    "syncing": syncing.measure,
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.storage", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"only these: {', '.join(CASES)}")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions of what is compared (default 3)")
    parser.add_argument("--quick", action="store_true", help="short measurements, for a look rather than for a page")
    parser.add_argument("--json", metavar="FILE", help="write the results here; cases that were not measured keep what is there")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.cases if name not in CASES]
    if unknown:
        parser.error(f"there is no case {unknown[0]}; there are {', '.join(CASES)}")
    results: list[Result] = []
    for name in options.cases or CASES:
        found = CASES[name](options.repeat, quick=options.quick)
        for result in found:
            print("\n".join(lines_of(result)), flush=True)
        results += found
    if options.json:
        _keep(Path(options.json), results, report.command_of("bench.storage", arguments), quick=options.quick)
    return 0


def _keep(path: Path, results: Sequence[Result], command: str, *, quick: bool) -> None:
    known = json.loads(path.read_text())["results"] if path.exists() else []
    measured = {result.case for result in results}
    page = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": command,
        "quick": quick,
        "machine": report.describe_machine(),
        "results": [each for each in known if each["case"] not in measured] + [result.as_json() for result in results],
    }
    path.write_text(json.dumps(page, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
