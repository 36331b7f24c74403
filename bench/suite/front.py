"""`python -m bench run|render|guard|list`: the common command of all benches.

It runs the cases of the suite. The other benches have their own results; it starts them by name too.
"""

from __future__ import annotations

import argparse
import importlib
import json
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from compileall import compile_dir
from itertools import chain
from pathlib import Path

import barnabas
from barnabas.testing.children import Child
from bench import pair
from bench.peers import OURS, PEERS
from bench.report import PAGE
from bench.spark.page import write_blocks
from bench.suite import guard, page, results
from bench.suite.case import Case
from bench.suite.compression import COMPRESSION
from bench.suite.connections import CONNECTIONS
from bench.suite.groups import GROUPS
from bench.suite.growth import GROWTH
from bench.suite.idle import IDLE
from bench.suite.kreps import KREPS
from bench.suite.linkedin import LINKEDIN
from bench.suite.measure import FAILED, FAILURES, Options
from bench.suite.openmessaging import OPENMESSAGING
from bench.suite.start import START

CASES: Mapping[str, Case] = {
    case.name: case for case in (LINKEDIN, START, IDLE, KREPS, OPENMESSAGING, CONNECTIONS, GROUPS, COMPRESSION, GROWTH)
}
FULL = Options()
QUICK = Options(rounds=2, messages=200_000, seconds=0.5, stored_mb=200, large_mb=400, connections=(1_000,))
GUARDED = ("linkedin-2011",)
GUARD = Options(rounds=3, messages=500_000, seconds=1.0)
PAIR_RESULTS = results.FOLDER / "bench.json"


Run = Callable[[int, bool], int]  # repetitions, and whether a short look is enough


def _pair(rounds: int, quick: bool) -> int:
    return pair.main(["--repeat", str(rounds), "--json", str(PAIR_RESULTS)])


def _of_module(name: str, *given: str) -> Run:
    def run(count: int, quick: bool) -> int:
        code = importlib.import_module(name).main([*given, "--repeat", str(count)])
        return int(code or 0)

    return run


def _of_service(name: str) -> Run:
    """A bench with short measurements, whose results are not kept."""

    def run(count: int, quick: bool) -> int:
        kept = results.FOLDER / f"{name.rpartition('.')[2]}.json"
        words = ["--quick"] if quick else ["--json", str(kept)]
        module = f"bench.{name}" if "." in name else f"bench.{name}.__main__"
        return int(importlib.import_module(module).main([*words, "--repeat", str(count)]))

    return run


def _spark(rounds: int, quick: bool) -> int:
    scripts = [Path(__file__).resolve().parents[1] / "spark" / name for name in ("compare.py", "sink.py")]
    codes = [_finished([sys.executable, str(script), "--rounds", str(rounds), "--keep"]) for script in scripts]
    return int(any(codes))


def _finished(command: Sequence[str]) -> int:
    """Run a command; returns its exit code. After an interruption, the command may still stop its child processes."""
    with Child[bytes](command) as process:
        try:
            return process.wait()
        except BaseException:
            process.terminate()
            raise


OTHERS: Mapping[str, tuple[str, Run]] = {
    "kafka": ("barnabas and Apache Kafka alone, case by case", _pair),
    "transactions": ("transactions of 1, 10 and 1,000 records", _of_module("bench.transactions")),
    "tls": ("producing and consuming over TLS", _of_module("bench.tls")),
    "cluster": (
        "three brokers beside three of Kafka, three replicas",
        _of_module("bench.cluster.__main__", "--json", str(results.FOLDER / "cluster.json")),
    ),
    "storage": ("compaction, cold reads, syncing", _of_service("storage")),
    "quota": ("quotas", _of_module("bench.quota")),
    "registry": ("the schema registry, beside Karapace", _of_service("registry")),
    "tables": ("topics as tables, beside a loop over confluent-kafka", _of_service("tables")),
    "sql": ("SQL over the Postgres protocol and over HTTP", _of_service("sql")),
    "views": ("views that Spark keeps, beside Spark alone", _of_service("views")),
    "nexmark": ("the queries of Nexmark as views, beside Spark alone", _of_service("nexmark")),
    "connect": ("connectors, beside Kafka Connect", _of_service("connect")),
    "sinks": ("every other sink and source of Connect, beside Debezium's and Iceberg's", _of_service("connect.sinks")),
    "capture": ("change capture of PostgreSQL, beside Debezium", _of_service("connect.capture")),
    "mirror": ("copies in another cluster, beside MirrorMaker 2", _of_service("mirror")),
    "incremental": ("steps of the flow that keeps a view", _of_service("incremental")),
    "spark": ("rows into and out of Spark", _spark),
}


def main(arguments: Sequence[str]) -> int:
    """Run a command line; returns exit code 2 for unknown words, 1 if a case could not be measured."""
    options = _parse(arguments)
    if options.verb == "list":
        for case in CASES.values():
            print(f"{case.name:<16} {case.title}")
        for name, (text, _) in OTHERS.items():
            print(f"{name:<16} {text}")
        return 0
    if options.verb == "render":
        write_page()
        return 0
    if options.verb == "guard":
        _guard()
        return 0
    return _run(options)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="the cases")
    verbs.add_parser(
        "render", help="measure nothing: write docs/performance.md, its charts and tables of docs/spark.md from bench/results"
    )
    verbs.add_parser("guard", help="name what became slower than the recorded results say")
    run = verbs.add_parser("run", help="measure")
    run.add_argument(
        "cases",
        nargs="*",
        metavar="CASE",
        help=f"only these; without, {', '.join(CASES)}, and except with --quick, --json or --peers {', '.join(OTHERS)}",
    )
    run.add_argument("--peers", nargs="+", metavar="PEER", default=list(PEERS), help=f"of {', '.join(PEERS)} (default: all)")
    run.add_argument("--rounds", type=_positive, default=FULL.rounds, help="repetitions (default %(default)s)")
    run.add_argument(
        "--messages", type=_positive, default=FULL.messages, help="that end a load (default %(default)s; LinkedIn: 10000000)"
    )
    run.add_argument("--seconds", type=float, default=FULL.seconds, help="that end a load (default %(default)s)")
    run.add_argument("--quick", action="store_true", help="short measurements, for a look rather than for a page")
    run.add_argument(
        "--json", metavar="FOLDER", type=Path, help="write <case>.json there (default: bench/results, unless --quick)"
    )
    run.add_argument(
        "--measures", nargs="+", metavar="MEASURE", default=[], help="only these of one case; its other results stay as they are"
    )
    run.add_argument("--page", action="store_true", help="write docs/performance.md as well")
    options = parser.parse_args(arguments)
    if options.verb == "run":
        for word, known in ((options.cases, [*CASES, *OTHERS]), (options.peers, PEERS)):
            unknown = [each for each in word if each not in known]
            if unknown:
                parser.error(f"there is no {unknown[0]}; there are {', '.join(known)}")
        if options.measures:
            _check_measures(parser, options)
    return options


def _amount(chosen: argparse.Namespace) -> Options:
    return QUICK if chosen.quick else Options(chosen.rounds, chosen.messages, chosen.seconds)


def _check_measures(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if len(options.cases) != 1 or options.cases[0] not in CASES:
        parser.error(f"--measures is for one case of {', '.join(CASES)}")
    if set(options.peers) | {OURS} != set(PEERS):
        parser.error("--measures is for all systems: results of some would take the place of those of all")
    known = [each.name for each in CASES[options.cases[0]].measures(FULL)]
    unknown = [each for each in options.measures if each not in known]
    if unknown:
        parser.error(f"{options.cases[0]} has no measure {unknown[0]}; it has {', '.join(known)}")
    before = results.read(options.cases[0], options.json or results.FOLDER)
    if before is None:
        parser.error(f"there are no results of {options.cases[0]} yet: measure all of it")
    if not options.quick and before["options"] != results.told(_amount(options)):
        parser.error(
            f"the results of {options.cases[0]} were measured with {before['options']}: give the same, or measure all of it"
        )


def _positive(word: str) -> int:
    value = int(word)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{word} is not a positive number")
    return value


def _run(chosen: argparse.Namespace) -> int:
    _allow_many_files()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # runs the cleanup of everything that was started
    options = _amount(chosen)
    folder = chosen.json or (None if chosen.quick else results.FOLDER)
    # as in an installed package; otherwise the first start must compile the source
    compile_dir(Path(barnabas.__file__).parent, quiet=1)
    makers = {key: make for key, make in PEERS.items() if key in chosen.peers or key == OURS}
    began, code = time.monotonic(), 0
    is_part = chosen.quick or chosen.json or len(makers) < len(PEERS)  # the other benchmarks do not know these options
    for name in chosen.cases or ([*CASES] if is_part else [*CASES, *OTHERS]):
        if name in OTHERS:
            code = max(code, _run_other(name, options.rounds, quick=chosen.quick))
            continue
        _say(f"\n== {name}")
        command = (
            f"python -m bench run {name} --rounds {options.rounds} --messages {options.messages} --seconds {options.seconds:g}"
        )
        outcome = CASES[name].run(makers, options, _say, chosen.measures)
        result = results.describe(
            name, text=CASES[name].text, command=command, options=options, peers=outcome.peers, measured=outcome.measured
        )
        if any(FAILED in reason for each in outcome.measured for reason in chain(each.dashes.values(), each.ends.values())):
            code = 1
        before = results.read(name, folder) if folder is not None and chosen.measures else None
        if before is not None:
            result = results.merged(before, result)
        if folder is not None:
            _say(f"-> {results.write(result, folder).name}")
    _say(f"\n{time.monotonic() - began:.0f} s")
    if chosen.page:
        write_page()
    return code


def _run_other(name: str, rounds: int, *, quick: bool) -> int:
    """Run another bench; returns its exit code. After a failure, the other cases are still measured."""
    try:
        return OTHERS[name][1](rounds, quick)
    except (*FAILURES, RuntimeError, AssertionError):
        traceback.print_exc()
        return 1


def _guard() -> None:
    """Print the report of the guard; its result never changes the exit code."""
    makers = {OURS: PEERS[OURS]}
    changes = []
    for name in GUARDED:

        def measure(name: str = name) -> results.Result:
            outcome = CASES[name].run(makers, GUARD, lambda line: None)
            return results.describe(
                name, text="", command="python -m bench guard", options=GUARD, peers=outcome.peers, measured=outcome.measured
            )

        changes += guard.guard(name, results.read(name), measure, _say)
    guard.report(changes, _say)


def write_page() -> None:
    """Write docs/performance.md (first the comparisons with only Apache Kafka, then the suite), and the tables of
    docs/spark.md."""
    text = pair.render_page(json.loads(PAIR_RESULTS.read_text()))
    found = [(case, result) for case in CASES.values() if (result := results.read(case.name)) is not None]
    PAGE.write_text(text + page.render(found))
    write_blocks()


def _allow_many_files() -> None:
    """Raise the limit of descriptors to the system's maximum; the started systems inherit it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _say(line: str) -> None:
    print(line, flush=True)
