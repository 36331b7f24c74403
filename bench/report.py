"""Results as JSON and as tables: the case, both servers, the ratio of each pair, and whether the target is met.

A ratio says how many times better barnabas is. So a ratio above 1 is always a win, also for figures of which less is better. A
ratio belongs to a pair: the two measurements of one repetition are close in time, so other work on the machine disturbs both.
The result is the median of the ratios.
"""

from __future__ import annotations

import os
import platform
import shlex
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from tools.kafka import VERSION

from barnabas.protocol.records.scan import compiled
from bench import figures
from bench.bare import Bare

Result = dict[str, Any]
PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
OURS, THEIRS, BARE = "barnabas", f"Apache Kafka {VERSION}", Bare.name
SHARE_OF_SENDFILE = 0.8  # target: consuming reaches this share of bare sendfile
CPU_TARGET = 2.0  # target: a record takes this many times less CPU
CPU_TARGETS = {"large-100": 3.0, "large-1k": 3.0}

INTRODUCTION = f"""# Performance

This page shows what barnabas reaches beside {THEIRS} and other systems: throughput, latency, CPU, memory, and how they change as load
grows. `python -m bench render` writes it from the numbers in `bench/results/`. To use these figures, see [performance: what to set
when](guides/performance.md).

| you look for | go to |
|---|---|
| one broker beside Kafka | [throughput](#throughput), [latency](#latency), [the machine's limits](#beside-what-the-machine-allows) |
| CPU and memory | [CPU for a record](#cpu-seconds-of-the-server-per-million-records-and-its-memory), [memory](#start-and-memory) |
| three brokers beside Kafka | [cluster](#three-brokers-beside-three-of-kafka) |
| transactions, TLS, quotas | [transactions](#transactions), [TLS](#tls), [quotas](#quotas) |
| schema registry | [schema registry](#schema-registry) |
| topics as tables, SQL | [tables](#topics-as-tables), [SQL](#sql) |
| copies in another cluster | [mirror links](#mirror-links) |
| storage, Spark | [storage and compaction](#storage-at-work), [Spark](spark.md#speed) |
| RabbitMQ, ActiveMQ, NATS, Redis | [beside other systems](#beside-other-systems) |

`python -m bench run kafka` measures one broker beside {THEIRS}, in one run with the same client:

- **Kafka** is one KRaft node, 1 GB heap, its defaults except `broker.session.timeout.ms`, which would end while the process is stopped.
- **Both servers** have fresh data folders and run all the time. They take turns, case by case and repetition by repetition. A signal
  stops the other one, so it stays warm and uses no CPU.
- **The client** keeps a window of prepared requests in flight on plain sockets, checks the error code and the order of every answer, and
  asks for the end offsets afterwards. It shares the machine with the server.
- **Figures** are the median of the repetitions, with the smallest and the largest. A ratio is the median of the ratios of the pairs. It
  says how many times better barnabas is.
"""
NOTES = """
## Reading them

- *One record a request* pipelines requests of one 100-byte record. Kafka handles one request of a connection at a time, so a second one
  in flight helps it little. With eight connections it uses all cores, and it gets faster while its code warms up. A barnabas broker uses
  one core. So with many busy connections, compare CPU per record rather than throughput: more brokers use more cores. barnabas writes and
  answers requests of one connection together if they arrive together and are alike.
- *Large batches* mostly measure how the kernel copies bytes. The rest is the check of CRCs and records.
- *Latency* is open-loop: requests are sent on a fixed schedule over eight connections. Their time counts from the planned moment.
- *CPU* is user and system time of the server's process during the case. *Peak MB* is its highest memory in RAM.
- Neither server syncs to disk for each request (the default of both).
"""
SPARK = """
## Spark

[spark.md](spark.md#speed) shows the data source and the sink beside Spark's own connector, with targets and limits.
`python -m bench run spark` measures them.
"""
MEMORY = "Start and memory"
PEAKS = (f"peak MB, {OURS}", f"peak MB, {THEIRS}")
READY_NOTE = "The time until a broker is ready is measured [beside other systems](#start).\n\n"
BARE_NOTE = """*Bare system calls* are a loop that writes requests from sockets to files, and one that sends a file, in the same turns with
the same client. They check nothing: no CRC, no records, no offsets.
"""


def command_of(module: str, arguments: Sequence[str] | None) -> str:
    """The command of the run, without the file for the results, since that is a path on this machine."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if "--json" in words:
        at = words.index("--json")
        del words[at : at + 2]
    return shlex.join(["python", "-m", module, *words])


def by_command(results: Result) -> str:
    """A sentence with the command of the results, if they have one."""
    return f" Measured by `{results['command']}`." if "command" in results else ""


def describe_machine() -> dict[str, str]:
    """The machine without its name: processor, cores, memory, and the relevant versions."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr.splitlines()
    return {
        "processor": model,
        "cores": str(os.cpu_count()),
        "memory": f"{memory:.0f} GiB",
        "kernel": "Linux " + ".".join(platform.release().split("-")[0].split(".")[:2]),
        "python": platform.python_version() + (" without machine code" if compiled is None else ""),
        "java": java[0].split('"')[1] if java and '"' in java[0] else "unknown",
    }


def ratio_of(case: Result) -> list[float]:
    """The ratio of each pair of repetitions."""
    figure = case["figure"]
    pairs = zip(case["runs"][OURS], case["runs"][THEIRS], strict=True)
    return [
        ours[figure] / theirs[figure] if case["higher_is_better"] else theirs[figure] / ours[figure] for ours, theirs in pairs
    ]


class Describable(Protocol):
    """The interface of a case's description, such as `bench.cases.Case`."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def figure(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def higher_is_better(self) -> bool: ...
    @property
    def target(self) -> float | None: ...
    @property
    def limit(self) -> float | None: ...


def describe_case(case: Describable, runs: dict[str, list[dict[str, float]]]) -> Result:
    result: Result = {
        "name": case.name,
        "title": case.title,
        "figure": case.figure,
        "unit": case.unit,
        "higher_is_better": case.higher_is_better,
        "target": case.target,
        "limit": case.limit,
        "runs": runs,
    }
    result["ratios"] = ratio_of(result)
    result["ratio"] = statistics.median(result["ratios"])
    return result


def verdict(case: Result) -> str:
    """Whether the case reaches its ratio and stays within its limit."""
    texts = []
    if case["target"] is not None:
        texts.append(f">= {case['target']:g}x: " + ("yes" if case["ratio"] >= case["target"] else "**no**"))
    if case["limit"] is not None:
        ours = statistics.median(run[case["figure"]] for run in case["runs"][OURS])
        texts.append(f"< {case['limit']:g} {case['unit']}: " + ("yes" if ours < case["limit"] else "**no**"))
    if not texts:
        texts.append("better" if case["ratio"] >= 1 else "**worse**")
    return ", ".join(texts)


def line_of(case: Result) -> str:
    """One case as a line of a terminal."""
    ours, theirs = (spread(case, name, case["figure"]) for name in (OURS, THEIRS))
    return f"{case['title']:<60} {ours:>30} {theirs:>30}  {case['ratio']:6.2f}x  {verdict(case).replace('**', '')}"


def spread(case: Result, server: str, figure: str) -> str:
    return figures.spread([run[figure] for run in case["runs"][server]])


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] + ["---:"] * (len(head) - 2) + ["---"], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def render(results: Result) -> str:
    """The page `docs/performance.md`."""
    machine = results["machine"]
    text = (
        INTRODUCTION + f"\nMachine: {machine['processor']}, {machine['cores']} cores, {machine['memory']}, {machine['kernel']}; "
    )
    text += f"Python {machine['python']}, Java {machine['java']}; {results['repetitions']} repetitions, {results['date']}"
    text += ", in short measurements (`--quick`).\n" if results["quick"] else ".\n"
    text += by_command(results).lstrip() + "\n" if "command" in results else ""
    shares = [
        run["others_cpu"] for case in results["cases"] for runs in case["runs"].values() for run in runs if "others_cpu" in run
    ]
    if shares:
        text += f"Other work took {statistics.median(shares):.0%} of the machine's CPU while measuring (median).\n"
    by_unit = [
        ("Throughput", [c for c in results["cases"] if c["unit"] == "records/s"]),
        (MEMORY, [c for c in results["cases"] if c["unit"] == "MB"]),
    ]
    for title, cases in by_unit:
        if cases:
            rows = [
                [titled(c), spread(c, OURS, c["figure"]), spread(c, THEIRS, c["figure"]), f"{c['ratio']:.2f}x", verdict(c)]
                for c in cases
            ]
            text += f"\n## {title}\n\n{READY_NOTE if title == MEMORY else ''}" + table(
                ["", OURS, THEIRS, "ratio", "target"], rows
            )
    text += _latency_table([c for c in results["cases"] if "p99_ms" in c["runs"][OURS][0]])
    text += _cpu_table([c for c in results["cases"] if "cpu_s_per_million" in c["runs"][OURS][0]])
    text += _bare_table([c for c in results["cases"] if BARE in c["runs"]])
    return text + NOTES


def peaks(case: Result) -> list[str]:
    """The maximum memory of each server in a repetition, if it was recorded."""
    runs = case["runs"]
    return [spread(case, server, "peak_mb") if "peak_mb" in runs[server][0] else "-" for server in (OURS, THEIRS)]


def titled(case: Result) -> str:
    return f"{case['title']} ({case['unit']})"


def _latency_table(cases: list[Result]) -> str:
    rows = []
    for case in cases:
        for figure, name in (("p50_ms", "p50"), ("p99_ms", "p99"), ("p99.9_ms", "p99.9"), ("max_ms", "worst")):
            ratio = statistics.median(
                theirs[figure] / ours[figure] for ours, theirs in zip(case["runs"][OURS], case["runs"][THEIRS], strict=True)
            )
            row = [f"{case['title']}, {name} (ms)", spread(case, OURS, figure), spread(case, THEIRS, figure), f"{ratio:.2f}x"]
            rows.append([*row, "better" if ratio >= 1 else "**worse**"])
    return "\n## Latency\n\n" + table(["", OURS, THEIRS, "ratio", ""], rows) if rows else ""


def _cpu_table(cases: list[Result]) -> str:
    rows = []
    for case in cases:
        figure = "cpu_s_per_million"
        ratio = statistics.median(
            theirs[figure] / max(ours[figure], 1e-9)
            for ours, theirs in zip(case["runs"][OURS], case["runs"][THEIRS], strict=True)
        )
        row = [case["title"], spread(case, OURS, figure), spread(case, THEIRS, figure), f"{ratio:.2f}x"]
        target = CPU_TARGETS.get(case["name"], CPU_TARGET)
        rows.append([*row, f">= {target:g}x: " + ("yes" if ratio >= target else "**no**"), *peaks(case)])
    head = ["", OURS, THEIRS, "ratio", "target", *PEAKS]
    return "\n## CPU seconds of the server per million records, and its memory\n\n" + table(head, rows) if rows else ""


def _bare_table(cases: list[Result]) -> str:
    """A table of the machine's limit and the share of it that each server reaches. For CPU, a number above 1 means that many
    times the CPU of the bare loop."""
    rows = []
    for case in cases:
        for figure, unit in (("records_per_s", "records/s"), ("cpu_s_per_million", "CPU s per million")):
            bare = statistics.median(run[figure] for run in case["runs"][BARE])
            times = [statistics.median(run[figure] for run in case["runs"][name]) / bare for name in (OURS, THEIRS)]
            judged = ""
            if case["name"].startswith("consume") and figure == "records_per_s":
                judged = f">= {SHARE_OF_SENDFILE:g}: " + ("yes" if times[0] >= SHARE_OF_SENDFILE else "**no**")
            rows.append([f"{case['title']} ({unit})", spread(case, BARE, figure), *(f"{value:.2f}" for value in times), judged])
    head = ["", "bare system calls", f"{OURS}, times that", f"{THEIRS}, times that", "target"]
    return f"\n## Beside what the machine allows\n\n{BARE_NOTE}\n" + table(head, rows) if rows else ""
