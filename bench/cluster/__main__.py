"""`python -m bench.cluster`: three brokers of barnabas and three of Apache Kafka, in turns; `python -m bench render` writes the
page."""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench import memory, report
from bench.cluster.cases import CASES, FULL, MANY, MANY_CASES, QUICK, ClusterCase, Figures, Lengths
from bench.cluster.many import measure_many
from bench.cluster.resync import measure_resync
from bench.cluster.servers import Cluster, Ours, Theirs
from bench.meter import Meter
from bench.storage.result import Result, lines_of

RESYNC = "resync"
MAX_WARM_UPS = 40
SETTLED = 1.1  # a cluster that is this many times as fast as before has not finished its warm-up
LOADS_SETTLED = 4  # warm-up ends after this many loads in a row without progress: a JVM may need 30 s between two steps
SETTLE_S = 2.0  # between two measurements, so that background work of the previous one can finish


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.cluster", description=__doc__)
    names = [*(case.name for case in CASES), MANY, RESYNC]
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"only these: {', '.join(names)}")
    parser.add_argument("--repeat", type=int, default=5, help="repetitions of each case and cluster (default 5)")
    parser.add_argument("--quick", action="store_true", help="short measurements, for a look rather than for a page")
    parser.add_argument("--alone", action="store_true", help="only ours, without Apache Kafka beside it")
    parser.add_argument("--json", metavar="FILE", help="write the results here; cases that were not measured keep what is there")
    options = parser.parse_args(arguments)
    command = report.command_of("bench.cluster", arguments)
    unknown = [name for name in options.cases if name not in names]
    if unknown:
        parser.error(f"there is no case {unknown[0]}; there are {', '.join(names)}")
    cases = [case for case in CASES if not options.cases or case.name in options.cases]
    wants_many = not options.alone and (not options.cases or MANY in options.cases)
    loads, latencies = ([case for case in cases if case.is_latency is wanted] for wanted in (False, True))
    for found in (_each(loads, options), _one_at_a_time(latencies, options), _many(options.repeat) if wants_many else ()):
        for results in found:
            for result in results:
                print(report.line_of(result), flush=True)
            if options.json:  # saved after each case, because all cases take half an hour
                _keep(Path(options.json), results, command, quick=options.quick)
    if not options.alone and (not options.cases or RESYNC in options.cases):
        resync = measure_resync(options.repeat)
        for each in resync:
            print("\n".join(lines_of(each)), flush=True)
        if options.json:
            _keep(Path(options.json), [], command, quick=options.quick, resync=resync)
    return 0


def _many(repeat: int) -> Iterator[list[report.Result]]:
    runs: dict[str, list[Figures]] = {Ours.name: [], Theirs.name: []}
    for repetition in range(repeat):
        for make in (Ours, Theirs) if repetition % 2 == 0 else (Theirs, Ours):
            runs[make.name].append(measure_many(make))
    yield [report.describe_case(case, runs) for case in MANY_CASES]


def _each(cases: Sequence[ClusterCase], options: argparse.Namespace) -> Iterator[list[report.Result]]:
    lengths = QUICK if options.quick else FULL
    if not cases:
        return
    with Ours() as ours:
        if options.alone:
            for case in cases:
                _show(case, _take_turns(case, [ours], lengths, options.repeat))
            return
        with Theirs() as theirs:
            for case in cases:
                yield [report.describe_case(case, _take_turns(case, (ours, theirs), lengths, options.repeat))]


def _one_at_a_time(cases: Sequence[ClusterCase], options: argparse.Namespace) -> Iterator[list[report.Result]]:
    """Every repetition starts, warms up, measures and stops one cluster and then the other. Three idle brokers use up to a
    tenth of a core. This is most of the CPU that a busy cluster leaves, and the latency percentiles would show it."""
    lengths = QUICK if options.quick else FULL
    runs: dict[str, dict[str, list[Figures]]] = {case.name: {Ours.name: [], Theirs.name: []} for case in cases}
    makers = (Ours,) if options.alone else (Ours, Theirs)
    for repetition in range(options.repeat if cases else 0):
        for make in makers if repetition % 2 == 0 else reversed(makers):
            with make() as cluster:
                for case in cases:
                    _warm_up(case, cluster, lengths)
                    time.sleep(SETTLE_S)
                    runs[case.name][cluster.name].append(_measure(case, cluster, lengths))
    for case in cases:
        if options.alone:
            _show(case, runs[case.name])
        else:
            yield [report.describe_case(case, runs[case.name])]


def _show(case: ClusterCase, runs: dict[str, list[Figures]]) -> None:
    """Print measurements of barnabas alone, without a ratio."""
    print(case.title, *runs[Ours.name], sep="\n    ", flush=True)


def _take_turns(case: ClusterCase, clusters: Sequence[Cluster], lengths: Lengths, repeat: int) -> dict[str, list[Figures]]:
    """Measure both clusters in every repetition; the order changes each time."""
    runs: dict[str, list[Figures]] = {cluster.name: [] for cluster in clusters}
    for cluster in clusters:
        _warm_up(case, cluster, lengths)
    for repetition in range(repeat):
        for cluster in clusters if repetition % 2 == 0 else reversed(clusters):
            time.sleep(SETTLE_S)
            if case.fresh_mb:
                memory.use(case.fresh_mb)
            runs[cluster.name].append(_measure(case, cluster, lengths))
    return runs


def _warm_up(case: ClusterCase, cluster: Cluster, lengths: Lengths) -> None:
    """Load a cluster until it gets no faster: three JVMs on few cores compile hot code for minutes, not all at the same time.

    If latency is measured, the first load without an improvement ends the warm-up, because such a load takes about as long as
    four others.
    """
    best: float | None = None
    settled = 0
    for _ in range(MAX_WARM_UPS):
        figure = case.run(cluster, case.warm_up_seconds(lengths))[case.figure]
        if best is None or (figure > best * SETTLED if case.higher_is_better else figure * SETTLED < best):
            best, settled = figure, 0
            continue
        settled += 1
        if case.is_latency or settled == LOADS_SETTLED:
            return


def _measure(case: ClusterCase, cluster: Cluster, lengths: Lengths) -> Figures:
    """The figures of one repetition, with the maximum memory of the cluster, and the CPU that neither the clusters nor the
    client used."""
    with Meter(cluster.pids) as meter:
        figures = case.run(cluster, case.seconds(lengths))
    return {**meter.figures, **figures}


def _keep(
    path: Path, results: Sequence[report.Result], command: str, *, quick: bool, resync: Sequence[Result] | None = None
) -> None:
    """Write the results to the file. Each case has its own date, machine and command, since other cases may be from another
    day."""
    before: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"cases": [], "resync": []}
    way = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": command,
        "quick": quick,
        "machine": report.describe_machine(),
    }
    measured = {result["name"]: {**result, "measured": way} for result in results}
    names = [case.name for case in CASES] + [case.name for case in MANY_CASES]
    order = {name: place for place, name in enumerate(names)}
    others = [each for each in before["cases"] if each["name"] not in measured]
    # applies to cases without values of their own
    of_page = {key: before[key] for key in way} if others and resync is None else way
    page = {
        **of_page,
        "resync": before["resync"] if resync is None else [each.as_json() for each in resync],
        "cases": sorted([*others, *measured.values()], key=lambda each: order.get(each["name"], len(order))),
    }
    path.write_text(json.dumps(page, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
