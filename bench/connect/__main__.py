"""`python -m bench run connect`: lines of a file into a topic and out of it, by our Connect and by Kafka Connect, on a broker of ours."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import LATEST, NewTopic
from bench import report
from bench.connect.systems import WORKERS, Ours, Worker
from bench.front import parser_of, tell
from bench.peers.peer import PeerUnavailable
from bench.peers.process import cpu_by_pid, cpu_since, proportional_mb
from bench.servers import Barnabas
from bench.storage.result import Result, judge, measured, ratio

LINE_BYTES = 100
FULL, QUICK = 1_000_000, 200_000
POLL_S = 0.01
WITHIN_S = 600.0
THEIRS = "Kafka Connect"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("bench.connect", __doc__)
    options = parser.parse_args(arguments)
    absent: dict[str, str] = {}
    command = report.command_of("bench.connect", arguments)
    lines = QUICK if options.quick else FULL
    page = measured(lambda: measure(options.repeat, lines, absent), command, quick=options.quick)
    return tell(page, options.json, absent=absent)


def measure(repeat: int, lines: int, absent: dict[str, str]) -> list[Result]:
    """All results; `absent` gets the reason for a worker that could not be measured."""
    results = _results(lines)
    with Barnabas() as broker, tempfile.TemporaryDirectory() as folder:
        bootstrap = "{}:{}".format(*broker.address)
        source = Path(folder) / "lines.txt"
        with source.open("w") as file:
            file.writelines(f"{number:0{LINE_BYTES - 1}d}\n" for number in range(lines))
        for number in range(repeat):
            for make in WORKERS:
                if make.name in absent:
                    continue
                try:
                    with make(bootstrap) as worker:
                        _one(worker, f"{number}-{make.__name__}".lower(), bootstrap, source, lines, results)
                except PeerUnavailable as error:
                    absent[make.name] = str(error)
                    print(f"{make.name}: not measured: {error}", file=sys.stderr, flush=True)
    for result in results.values():
        if THEIRS in result.figures and result.unit == "lines/s":
            result.ratio = ratio(result, Ours.name, THEIRS)
        judge(result, Ours.name)
    return list(results.values())


def _one(worker: Worker, name: str, bootstrap: str, source: Path, lines: int, results: dict[str, Result]) -> None:
    topic, target = f"lines-{name}", source.with_name(f"out-{name}.txt")

    def add(case: str, value: float) -> None:
        results[case].figures.setdefault(worker.name, []).append(value)

    add("ready", worker.ready_after_s)
    with BlockingClient.to(bootstrap) as client:
        client.create_topics([NewTopic(topic, 1)])

        def end() -> int:
            return client.list_offsets({(topic, 0): LATEST})[topic, 0].offset

        before = cpu_by_pid(worker.pids)
        began = time.perf_counter()
        worker.connect(
            f"in-{name}", {"connector.class": "FileStreamSource", "file": str(source), "topic": topic, "batch.size": "2000"}
        )
        _wait(lambda: end() > 0)
        first = time.perf_counter()
        _wait(lambda: end() >= lines)
        done = time.perf_counter()
    add("first", first - began)
    add("source", lines / (done - first))
    add("cpu", cpu_since(before, worker.pids) / lines * 1_000_000)
    worker.connect(f"out-{name}", {"connector.class": "FileStreamSink", "file": str(target), "topics": topic})
    size = source.stat().st_size
    _wait(lambda: target.exists() and target.stat().st_size > 0)
    first, there = time.perf_counter(), target.stat().st_size
    _wait(lambda: target.stat().st_size >= size)
    add("sink", (size - there) / LINE_BYTES / (time.perf_counter() - first) if there < size else float(lines))
    add("memory", proportional_mb(worker.pids))
    for each in ("in", "out"):
        worker.call("DELETE", f"/connectors/{each}-{name}")
    target.unlink()


def _wait(holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + WITHIN_S
    while not holds():
        if time.monotonic() > deadline_s:
            raise PeerUnavailable("it did not come about in time")
        time.sleep(POLL_S)


def _results(lines: int) -> dict[str, Result]:
    many = f"{lines:,} lines of {LINE_BYTES} B"
    return {
        "ready": Result("ready", "REST interface ready after the start of the process", "s", {}, "< 1"),
        "first": Result("first", "first record after the connector was created", "s", {}, "< 10"),
        "source": Result("source", f"FileStreamSource, {many}, from the first record to the last", "lines/s", {}, ">= 300,000"),
        "sink": Result("sink", f"FileStreamSink, {many}, from the first record to the last", "lines/s", {}, ">= 300,000"),
        "cpu": Result("cpu", "CPU of a million lines by the source, starts included", "s", {}),
        "memory": Result("memory", "memory of all processes afterwards, shared pages once", "MB", {}),
    }


if __name__ == "__main__":
    sys.exit(main())
