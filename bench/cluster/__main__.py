"""`python -m bench.cluster`: three brokers of ours and three of Apache Kafka in turns; `python -m bench --render` puts it on the page."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench import report
from bench.cluster.cases import CASES, FULL, MANY, MANY_CASES, QUICK, ClusterCase, Figures, Lengths
from bench.cluster.many import measure_many
from bench.cluster.servers import Cluster, Ours, Theirs, cpu_of
from bench.servers import busy_seconds, cpu_seconds

SETTLE_S = 2.0  # between two measurements, for what the one before left to do


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.cluster", description=__doc__)
    names = [*(case.name for case in CASES), MANY]
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"only these: {', '.join(names)}")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions of each case and cluster (default 3)")
    parser.add_argument("--quick", action="store_true", help="short measurements, for a look rather than for a page")
    parser.add_argument("--alone", action="store_true", help="only ours, without Apache Kafka beside it")
    parser.add_argument("--json", metavar="FILE", help="write the results here; cases that were not measured keep what is there")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.cases if name not in names]
    if unknown:
        parser.error(f"there is no case {unknown[0]}; there are {', '.join(names)}")
    cases = [case for case in CASES if not options.cases or case.name in options.cases]
    lengths = QUICK if options.quick else FULL
    results = [] if (options.cases and MANY not in options.cases) or options.alone else _many(options.repeat)
    if cases:
        results += _each(cases, lengths, options)
    if options.json and not options.alone:
        _keep(Path(options.json), results, quick=options.quick, repeat=options.repeat)
    return 0


def _many(repeat: int) -> list[report.Result]:
    runs: dict[str, list[Figures]] = {Ours.name: [], Theirs.name: []}
    makers: tuple[Callable[[], Cluster], ...] = (Ours, Theirs)
    for repetition in range(repeat):
        for name, make in list(zip(runs, makers, strict=True))[:: 1 if repetition % 2 == 0 else -1]:
            runs[name].append(measure_many(make))
    results = [report.describe_case(case, runs) for case in MANY_CASES]
    for result in results:
        print(report.line_of(result), flush=True)
    return results


def _each(cases: Sequence[ClusterCase], lengths: Lengths, options: argparse.Namespace) -> list[report.Result]:
    with Ours() as ours:
        if options.alone:
            for case in cases:
                runs = _take_turns(case, [ours], lengths, options.repeat)
                print(case.title, *runs[ours.name], sep="\n    ", flush=True)
            return []
        with Theirs() as theirs:
            return [_compare(case, (ours, theirs), lengths, options.repeat) for case in cases]


def _compare(case: ClusterCase, clusters: Sequence[Cluster], lengths: Lengths, repeat: int) -> report.Result:
    described = report.describe_case(case, _take_turns(case, clusters, lengths, repeat))
    print(report.line_of(described), flush=True)
    return described


def _take_turns(case: ClusterCase, clusters: Sequence[Cluster], lengths: Lengths, repeat: int) -> dict[str, list[Figures]]:
    """Every repetition measures both, and the one that began last time comes second."""
    runs: dict[str, list[Figures]] = {cluster.name: [] for cluster in clusters}
    for cluster in clusters:
        case.run(cluster, lengths.warm_up_s)
    for repetition in range(repeat):
        for cluster in clusters if repetition % 2 == 0 else reversed(clusters):
            time.sleep(SETTLE_S)
            runs[cluster.name].append(_measure(case, cluster, lengths))
    return runs


def _measure(case: ClusterCase, cluster: Cluster, lengths: Lengths) -> Figures:
    """With the share of the machine's CPU that went to neither the cluster nor the client meanwhile."""
    began, busy, own = time.monotonic(), busy_seconds(), cpu_of(cluster) + cpu_seconds(os.getpid())
    figures = case.run(cluster, case.seconds(lengths))
    own = cpu_of(cluster) + cpu_seconds(os.getpid()) - own
    others = busy_seconds() - busy - own
    return {**figures, "others_cpu": max(others, 0.0) / (time.monotonic() - began) / (os.cpu_count() or 1)}


def _keep(path: Path, results: Sequence[report.Result], *, quick: bool, repeat: int) -> None:
    known: list[dict[str, Any]] = json.loads(path.read_text())["cases"] if path.exists() else []
    measured = {result["name"]: result for result in results}
    order = {case.name: place for place, case in enumerate((*CASES, *MANY_CASES))}
    kept = [each for each in known if each["name"] not in measured] + list(measured.values())
    page = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "quick": quick,
        "repetitions": repeat,
        "machine": report.describe_machine(),
        "cases": sorted(kept, key=lambda each: order.get(each["name"], len(order))),
    }
    path.write_text(json.dumps(page, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
