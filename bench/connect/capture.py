"""`python -m bench run capture`: the changes that pgbench makes, by our capture of PostgreSQL and by Debezium, on a broker of ours."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from tests.connect.plugins.servers import PostgresServer
from tools.kafka import KafkaUnavailable

from bench import report
from bench.connect.capturing import CHANGES, CLIENTS, MANY, Measurement, Size
from bench.connect.systems import Debezium, Ours, Worker
from bench.front import parser_of, tell
from bench.peers.peer import PeerUnavailable
from bench.servers import Barnabas
from bench.storage.result import Result, measured, ratio

THEIRS, TUNED = "Debezium", "Debezium, tuned"
FULL, QUICK = Size(100_000, 30, 4_000), Size(20_000, 10, 1_000)
JSON = {
    f"{part}.converter{key}": value
    for part in ("key", "value")
    for key, value in {"": "org.apache.kafka.connect.json.JsonConverter", ".schemas.enable": "false"}.items()
}
TUNING = {
    "max.batch.size": "20480", "max.queue.size": "81920", "poll.interval.ms": "50", "producer.override.linger.ms": "5",
    "producer.override.batch.size": "1000000", "producer.override.compression.type": "lz4",
}  # fmt: skip


@dataclass(frozen=True)
class Contender:
    """A capture that is measured."""

    name: str
    worker: type[Worker]
    config: Mapping[str, str]


CONTENDERS = (Contender(Ours.name, Ours, {}), Contender(THEIRS, Debezium, {}), Contender(TUNED, Debezium, TUNING))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("bench.connect.capture", __doc__)
    parser.add_argument("--only-many", action="store_true", help="only transactions with many changes")
    options = parser.parse_args(arguments)
    absent: dict[str, str] = {}
    size = QUICK if options.quick else FULL
    command = report.command_of("bench.connect.capture", arguments)
    page = measured(lambda: measure(options.repeat, size, absent, only_many=options.only_many), command, quick=options.quick)
    return tell(page, options.json, absent=absent)


def measure(repeat: int, size: Size, absent: dict[str, str], *, only_many: bool) -> list[Result]:
    """All results; `absent` gets the reason for a capture that could not be measured."""
    results = _results(size)
    if only_many:
        results = {case: result for case, result in results.items() if case.startswith("many")}
    for _ in range(repeat):
        for each in CONTENDERS:
            if each.name in absent:
                continue
            try:
                with (
                    Barnabas() as broker,
                    closing(PostgresServer()) as database,
                    each.worker("{}:{}".format(*broker.address)) as worker,
                ):
                    measurement = Measurement({**JSON, **each.config}, worker, database, size)
                    for case, value in measurement.figures(only_many=only_many).items():
                        results[case].figures.setdefault(each.name, []).append(value)
            except (PeerUnavailable, KafkaUnavailable) as error:
                absent[each.name] = str(error)
                print(f"{each.name}: not measured: {error}", file=sys.stderr, flush=True)
    for result in results.values():
        if THEIRS in result.figures and result.target:
            result.ratio = ratio(result, Ours.name, THEIRS)
        result.met = _is_met(result)
    return list(results.values())


def _is_met(result: Result) -> bool | None:
    if result.ratio is None:
        return None
    return result.ratio >= 1.5 if result.unit == "rows/s" else result.ratio <= 0.5


def _results(size: Size) -> dict[str, Result]:
    load = f"pgbench -c {CLIENTS} for {size.load_s} s"
    many = f"pgbench -c {CLIENTS}, {size.many:,} transactions of {MANY:,} changes"
    rate, delay = ">= 1.5 times Debezium", "at most half of Debezium"
    return {
        "backlog": Result("backlog", f"{size.backlog * CHANGES:,} changes of a stopped connector, from the first record to the last",
                          "rows/s", {}, rate),
        "sustained": Result("sustained", f"{load}, from its start to the last record", "rows/s", {}, rate),
        "p50": Result("p50", f"{load}: from the commit to the consumer, p50", "ms", {}, delay),
        "p99": Result("p99", f"{load}: from the commit to the consumer, p99", "ms", {}, delay),
        "many": Result("many", f"{many}, from its start to the last record", "rows/s", {}, rate),
        "many-p50": Result("many-p50", f"{many}: from the commit to the consumer, p50", "ms", {}, delay),
        "many-p99": Result("many-p99", f"{many}: from the commit to the consumer, p99", "ms", {}, delay),
        "cpu": Result("cpu", "processor time of a million changes of the backlog, the start of the task included", "s", {}),
        "memory": Result("memory", "peak of resident memory of all processes while the backlog is read", "MB", {}),
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
