"""`python -m bench run mirror`: records from one broker to another, by a mirror link and by MirrorMaker 2."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from barnabas.client.blocking import BlockingClient
from bench import memory, report
from bench.front import parser_of, tell
from bench.mirror.line import Line
from bench.mirror.load import RECORDS_PER_BATCH, VALUE_BYTES, Ends, fill, lags_ms, percentile, wait
from bench.mirror.systems import COPIERS, Copier, MirrorMaker, Ours
from bench.peers.peer import PeerUnavailable
from bench.peers.process import cpu_of, forget_peak, peak_mb, proportional_mb
from bench.servers import Barnabas, create_topic
from bench.storage.result import Result, judge, measured, ratio
from bench.wire import record_batch

OURS, THEIRS = Ours.name, MirrorMaker.name
PARTITIONS = 4
RATE = 20_000  # records/s while the lag is measured
SETTLE_S = 2.0
LINE_BYTES_PER_S, ROUND_TRIP_S = 50e6, 0.05
LINE_PARTITIONS = (1, 8)
LINE_TITLE = f"a line of {LINE_BYTES_PER_S * 8 / 1e6:.0f} Mbit/s with a round trip of {ROUND_TRIP_S * 1000:.0f} ms"
NO_LIMIT = {"socket.send.buffer.bytes": "-1"}  # the default of 100 kB lets one connection carry 3 MB/s over this distance


@dataclass(frozen=True, slots=True)
class Amounts:
    """How much is measured. MirrorMaker gets fewer records: its rate does not depend on their number."""

    records: Mapping[str, int]  # by copier
    lag_s: float
    idle_s: float
    partitions: int = 1_000  # of the topic with many
    batches: int = 5  # in each of them
    line_s: float = 10.0  # that a copy over the line would take at least


FULL = Amounts({OURS: 4_000_000, THEIRS: 1_000_000}, lag_s=20.0, idle_s=15.0)
QUICK = Amounts({OURS: 1_000_000, THEIRS: 200_000}, lag_s=5.0, idle_s=5.0, line_s=4.0)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("bench.mirror", __doc__)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS), help="only these parts")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # a network namespace must be removed
    absent: dict[str, str] = {}
    command = report.command_of("bench.mirror", arguments)
    amounts = QUICK if options.quick else FULL
    page = measured(lambda: measure(options.repeat, amounts, absent, options.only), command, quick=options.quick)
    return tell(page, options.json, absent=absent)


def measure(repeat: int, amounts: Amounts, absent: dict[str, str], parts: Sequence[str]) -> list[Result]:
    """All results of some parts; `absent` gets the reason for a copier that could not be measured."""
    results = results_of(amounts)
    for _ in range(repeat):
        for part in parts:
            PARTS[part](amounts, results, absent)
    return [each for each in finished(results) if each.figures]


def copying(amounts: Amounts, results: dict[str, Result], absent: dict[str, str]) -> None:
    """A full topic, and then records at a fixed rate."""
    for make in COPIERS:
        if make.name in absent or make.name not in amounts.records:
            continue
        memory.use(memory.MOST)
        try:
            with Barnabas() as source, Barnabas() as target, Barnabas() as beside:
                _copy(make, source, target, beside, amounts, results)
        except PeerUnavailable as error:
            absent[make.name] = str(error)
            print(f"{make.name}: not measured: {error}", file=sys.stderr, flush=True)


def _copy(
    make: type[Copier],
    source: Barnabas,
    target: Barnabas,
    beside: Barnabas,
    amounts: Amounts,
    results: dict[str, Result],
) -> None:
    topic = "bench-copied"
    name = make.name
    create_topic(source, topic, PARTITIONS)
    records = fill(source, topic, PARTITIONS, amounts.records[name])
    ends = Ends(target, topic, PARTITIONS)
    brokers = [source.pid, target.pid]
    time.sleep(SETTLE_S)

    def add(case: str, value: float, label: str = name) -> None:
        results[case].figures.setdefault(label, []).append(value)

    forget_peak([target.pid])
    before, began = cpu_of(brokers), time.perf_counter()
    with ExitStack() as stack:
        stack.callback(ends.close)
        copier = stack.enter_context(make(source, target))
        found: list[int] = []
        first = wait(lambda: bool(found) or _note(found, ends()))
        done = wait(lambda: ends() >= records)
        alone = cpu_of(copier.pids)
        add("first", first - began)
        add("rate", (records - found[0]) / (done - first) if done > first else records / (done - began))
        add("cpu", (cpu_of(brokers) - before + alone) / records * 1e6)
        if copier.pids:
            add("cpu", alone / records * 1e6, f"{name}, its process alone")
            add("memory", peak_mb(copier.pids))
        else:
            add("memory", peak_mb([target.pid]) - peak_mb([beside.pid]))
            time.sleep(SETTLE_S)
            add("memory", proportional_mb([target.pid]) - proportional_mb([beside.pid]), f"{name}, afterwards")
        lags = lags_ms(source, target, topic, PARTITIONS, RATE, amounts.lag_s)
        add("lag50", percentile(lags, 50))
        add("lag99", percentile(lags, 99))


def _note(found: list[int], value: int) -> bool:
    if value:
        found.append(value)
    return bool(found)


def many(amounts: Amounts, results: dict[str, Result], absent: dict[str, str]) -> None:
    """Many partitions: the time to copy all, and the CPU of both brokers while nothing is written."""
    topic, partitions = "bench-many", amounts.partitions
    with Barnabas() as source, Barnabas() as target, Barnabas() as beside:
        create_topic(source, topic, partitions)
        create_topic(beside, topic, partitions)
        records = _fill_each(source, topic, partitions, amounts.batches)
        time.sleep(SETTLE_S)
        ends = Ends(target, topic, partitions)
        before, began = cpu_of([source.pid, target.pid]), time.perf_counter()
        with ExitStack() as stack:
            stack.callback(ends.close)
            stack.enter_context(Ours(source, target))
            done = wait(lambda: ends() >= records)
            results["many"].figures.setdefault(OURS, []).append(done - began)
            results["many_cpu"].figures.setdefault(OURS, []).append(cpu_of([source.pid, target.pid]) - before)
            time.sleep(SETTLE_S)
            brokers = {"source": source, "target": target, "a broker without a link beside": beside}
            spent = {label: cpu_of([each.pid]) for label, each in brokers.items()}
            time.sleep(amounts.idle_s)
            for label, each in brokers.items():
                share = (cpu_of([each.pid]) - spent[label]) / amounts.idle_s * 100
                results["idle"].figures.setdefault(label, []).append(share)


def _fill_each(server: Barnabas, topic: str, partitions: int, batches: int) -> int:
    """Write some batches to each partition; returns the number of records."""
    batch = record_batch(RECORDS_PER_BATCH, VALUE_BYTES)
    with BlockingClient.to(server.bootstrap) as client:
        for index in range(partitions):
            for _ in range(batches):
                client.produce(topic, index, batch, acks=1)
    return partitions * batches * RECORDS_PER_BATCH


def line(amounts: Amounts, results: dict[str, Result], absent: dict[str, str]) -> None:
    """A topic over a long line; the share of its rate that records reach."""
    for make in COPIERS:
        for partitions in LINE_PARTITIONS:
            if make.name in absent or make.name not in amounts.records:
                continue
            try:
                with Line() as way, Barnabas(way.far, way.inside, NO_LIMIT) as source, Barnabas() as target:
                    share = _over(way, make, source, target, partitions, amounts)
            except PeerUnavailable as error:
                absent[f"{make.name} over a line, {partitions} partitions"] = str(error)
                print(f"{make.name} over a line: not measured: {error}", file=sys.stderr, flush=True)
                continue
            results[f"line{partitions}"].figures.setdefault(make.name, []).append(share)


def _over(way: Line, make: type[Copier], source: Barnabas, target: Barnabas, partitions: int, amounts: Amounts) -> float:
    """The share of the line's rate in percent, from the first record on, for at most twice the time that the line needs."""
    topic = "bench-far"
    create_topic(source, topic, partitions)
    record_bytes = len(record_batch(RECORDS_PER_BATCH, VALUE_BYTES)) / RECORDS_PER_BATCH
    records = fill(source, topic, partitions, int(LINE_BYTES_PER_S * amounts.line_s / record_bytes))
    ends = Ends(target, topic, partitions)
    with ExitStack() as stack:
        stack.callback(ends.close)
        way.set(ROUND_TRIP_S, LINE_BYTES_PER_S)
        stack.callback(way.set, 0.0, 0.0)
        stack.enter_context(make(source, target))
        found: list[int] = []
        began = wait(lambda: bool(found) or _note(found, ends()))
        ended = wait(lambda: ends() >= records or time.perf_counter() > began + 2 * amounts.line_s)
        return (ends() - found[0]) * record_bytes / (ended - began) / LINE_BYTES_PER_S * 100


def results_of(amounts: Amounts) -> dict[str, Result]:
    """Results without figures."""
    many_records = amounts.partitions * amounts.batches * RECORDS_PER_BATCH
    what = f"records of {VALUE_BYTES} B in {PARTITIONS} partitions"
    return {
        "rate": Result("rate", f"{what}, once copying runs", "records/s", {}, ">= 500,000"),
        "first": Result("first", "first record readable after the start of the link or the process", "s", {}, "< 1"),
        "cpu": Result("cpu", "CPU a million records, of both brokers and the copier", "s", {}),
        "memory": Result("memory", "peak memory: of the target above an idle broker; of MirrorMaker's process", "MB", {}, "< 20"),
        "lag50": Result("lag50", f"lag at {RATE:,} records/s, p50", "ms", {}),
        "lag99": Result("lag99", f"lag at {RATE:,} records/s, p99", "ms", {}, "< 100"),
        "many": Result(
            "many", f"{many_records:,} records in {amounts.partitions:,} partitions, from the start of the link", "s", {}
        ),
        "many_cpu": Result("many_cpu", "the same, CPU of both brokers", "s", {}),
        **{
            f"line{count}": Result(
                f"line{count}", f"{LINE_TITLE}, {count} partition{'s' * (count > 1)}", "% of the line", {}, ">= 80"
            )
            for count in LINE_PARTITIONS
        },
        "idle": Result("idle", f"idle with {amounts.partitions:,} partitions", "% of a core", {}),
    }


def finished(results: dict[str, Result]) -> list[Result]:
    """The results with their ratios and verdicts."""
    for result in results.values():
        if result.case == "rate" and {OURS, THEIRS} <= result.figures.keys():
            result.ratio = ratio(result, OURS, THEIRS)
        judge(result, OURS)
    return list(results.values())


PARTS: dict[str, Callable[[Amounts, dict[str, Result], dict[str, str]], None]] = {
    "copying": copying,
    "many": many,
    "line": line,
}

if __name__ == "__main__":
    sys.exit(main())
