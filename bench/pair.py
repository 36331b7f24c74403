"""Measures barnabas and Apache Kafka in turns: both figures and their ratio, as text and as JSON. This is `python -m bench`
without a verb."""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from barnabas.protocol.records.scan import compiled
from bench import report
from bench.cases import CASES, FULL, QUICK, Case, Figures, Lengths, idle_memory_mb
from bench.cluster.page import render as render_cluster
from bench.connect.page import CAPTURE_RESULTS, render_capture
from bench.connect.page import RESULTS as CONNECT_RESULTS
from bench.connect.page import render as render_connect
from bench.connect.sinks_page import RESULTS as SINKS_RESULTS
from bench.connect.sinks_page import render as render_sinks
from bench.meter import Meter
from bench.mirror.page import RESULTS as MIRROR_RESULTS
from bench.mirror.page import render as render_mirror
from bench.nexmark.page import RESULTS as NEXMARK_RESULTS
from bench.nexmark.page import render as render_nexmark
from bench.quota import RESULTS as QUOTA_RESULTS
from bench.quota import render as render_quota
from bench.registry.page import RESULTS as REGISTRY_RESULTS
from bench.registry.page import render as render_registry
from bench.servers import Barnabas, Kafka, Server, resident_mb
from bench.sql.page import RESULTS as SQL_RESULTS
from bench.sql.page import render as render_sql
from bench.standstill import alone, standing_still
from bench.storage.result import render as render_storage
from bench.tables.page import RESULTS as TABLES_RESULTS
from bench.tables.page import render as render_tables
from bench.tls import RESULTS as TLS_RESULTS
from bench.tls import render as render_tls
from bench.transactions import RESULTS as TRANSACTIONS_RESULTS
from bench.transactions import render as render_transactions
from bench.views.page import RESULTS as VIEWS_RESULTS
from bench.views.page import render as render_views

STORAGE_RESULTS = Path(__file__).resolve().parent / "results" / "storage.json"  # written by `python -m bench.storage`
CLUSTER_RESULTS = STORAGE_RESULTS.with_name("cluster.json")  # written by `python -m bench.cluster`
PARTS = (
    (CLUSTER_RESULTS, render_cluster),
    (TRANSACTIONS_RESULTS, render_transactions),
    (TLS_RESULTS, render_tls),
    (STORAGE_RESULTS, render_storage),
    (QUOTA_RESULTS, render_quota),
    (REGISTRY_RESULTS, render_registry),
    (TABLES_RESULTS, render_tables),
    (SQL_RESULTS, render_sql),
    (VIEWS_RESULTS, render_views),
    (NEXMARK_RESULTS, render_nexmark),
    (CONNECT_RESULTS, render_connect),
    (SINKS_RESULTS, render_sinks),
    (CAPTURE_RESULTS, render_capture),
    (MIRROR_RESULTS, render_mirror),
)  # the page shows only the parts that have results
IDLE, LOADED = "idle-memory", "loaded-memory"
PROCESS_CASES = {
    IDLE: ("resident memory, idle", "MB", 60.0),
    LOADED: ("resident memory, after all the load", "MB", None),
}
Runs = dict[str, list[Figures]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the named cases. The exit code says whether everything could be measured; missed targets do not change it."""
    options = _parse(arguments)
    wanted = options.case or [case.name for case in CASES] + list(PROCESS_CASES)
    results = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": report.command_of("bench", arguments),
        "quick": options.quick,
        "repetitions": options.repeat,
        "machine": report.describe_machine(),
        "cases": [],
    }
    if compiled is None:
        print("no machine code for the check of records (tools/build_hook.py): plain Python is measured", file=sys.stderr)
    print(f"{'':<60} {report.OURS:>30} {report.THEIRS:>30}   ratio")
    if IDLE in wanted:
        _measure_idle(options.repeat, results)
    cases = [case for case in CASES if case.name in wanted]
    if cases:
        _measure_cases(cases, QUICK if options.quick else FULL, options.repeat, results, with_memory=LOADED in wanted)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1) + "\n")
    return 0


def render_page(results: dict[str, Any]) -> str:
    """The page with these results, and with the results of the other benches if there are any."""
    text = report.render(results)
    for path, render in PARTS:
        text += render(json.loads(path.read_text())) if path.exists() else ""
    return text + report.SPARK


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    names = [case.name for case in CASES] + list(PROCESS_CASES)
    parser.add_argument("--case", action="append", choices=names, help="only this case; may be given again")
    parser.add_argument("--repeat", type=int, default=5, help="repetitions of each case and server (default 5)")
    parser.add_argument("--quick", action="store_true", help="short measurements, for a look rather than for a page")
    parser.add_argument("--json", metavar="FILE", help="write the results here")
    return parser.parse_args(arguments)


def _measure_idle(repeat: int, results: dict[str, Any]) -> None:
    makers: tuple[Callable[[], Server], ...] = (Barnabas, Kafka)
    idle: Runs = {report.OURS: [], report.THEIRS: []}
    for _ in range(repeat):
        for name, make in zip(idle, makers, strict=True):
            idle[name].append({"MB": idle_memory_mb(make)})
    _keep(results, _process_case(IDLE), idle)


def _measure_cases(cases: Sequence[Case], lengths: Lengths, repeat: int, results: dict[str, Any], *, with_memory: bool) -> None:
    with Barnabas() as ours, Kafka() as theirs:
        servers: tuple[Server, Server] = (ours, theirs)
        for case in cases:
            _keep(results, case, _take_turns(case, servers, lengths, repeat))
        if with_memory:
            _keep(results, _process_case(LOADED), {server.name: [{"MB": resident_mb(server.pid)}] for server in servers})


def _take_turns(case: Case, servers: Sequence[Server], lengths: Lengths, repeat: int) -> Runs:
    """In every repetition, measure each server while the other one is stopped; the order changes each time."""
    runs: Runs = {server.name: [] for server in servers}
    for server in servers:
        case.warm_up(server, lengths)
    with ExitStack() as stack:
        loop = None if case.bare is None else stack.enter_context(case.bare())
        for repetition in range(repeat):
            for server in servers if repetition % 2 == 0 else reversed(servers):
                with alone(server, servers):
                    runs[server.name].append(_measure(case, server, lengths))
            if loop is not None and case.measure_bare is not None:
                with standing_still([server.pid for server in servers]):
                    runs.setdefault(loop.name, []).append(case.measure_bare(loop, lengths))
    case.clean_up(servers)
    return runs


def _measure(case: Case, server: Server, lengths: Lengths) -> Figures:
    """The figures of one repetition, with the maximum memory of the server, and the CPU that neither a server nor the client
    used."""
    with Meter([server.pid]) as meter:
        figures = case.measure(server, lengths)
    return {**meter.figures, **figures}


def _process_case(name: str) -> Case:
    title, unit, limit = PROCESS_CASES[name]
    return Case(name, title, unit, unit, False, None, limit)


def _keep(results: dict[str, Any], case: Case, runs: Runs) -> None:
    described = report.describe_case(case, runs)
    results["cases"].append(described)
    print(report.line_of(described), flush=True)
