"""`python -m bench run capture`: the changes that pgbench makes, by our capture of PostgreSQL and by Debezium, on a broker of ours."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import NamedTuple

import psycopg
from tests.connect.plugins.servers import PostgresServer
from tools.kafka import KafkaUnavailable

from bench import report
from bench.connect.changes import Changes
from bench.connect.systems import Debezium, Ours, Worker
from bench.front import parser_of, tell
from bench.latency import percentile
from bench.peers.peer import PeerUnavailable
from bench.peers.process import cpu_of, forget_peak, peak_mb
from bench.servers import Barnabas
from bench.storage.result import Result, measured, ratio

SCALE, CLIENTS = 5, 4
CHANGES = 4  # of a transaction of pgbench
WITHIN_S = 600.0
THEIRS, TUNED = "Debezium", "Debezium, tuned"


class Size(NamedTuple):
    """How much is measured: transactions of the backlog, and seconds under load."""

    backlog: int
    load_s: int


FULL, QUICK = Size(100_000, 30), Size(20_000, 10)
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
    options = parser_of("bench.connect.capture", __doc__).parse_args(arguments)
    absent: dict[str, str] = {}
    size = QUICK if options.quick else FULL
    command = report.command_of("bench.connect.capture", arguments)
    page = measured(lambda: measure(options.repeat, size, absent), command, quick=options.quick)
    return tell(page, options.json, absent=absent)


def measure(repeat: int, size: Size, absent: dict[str, str]) -> list[Result]:
    """All results; `absent` gets the reason for a capture that could not be measured."""
    results = _results(size)
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
                    for case, value in _Measurement(each, worker, database, size).figures().items():
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


class _Measurement:
    """The figures of one capture."""

    def __init__(self, of: Contender, worker: Worker, database: PostgresServer, size: Size) -> None:
        self._of, self._worker, self._database, self._size = of, worker, database, size

    def figures(self) -> dict[str, float]:
        self._pgbench("-i", "-s", str(SCALE), "-q")
        self._worker.connect("capture", self._config())
        _wait(self._streams)
        changes = Changes(self._worker.bootstrap, "p.public.pgbench_.*")
        with closing(changes):
            self._pgbench("-c", str(CLIENTS), "-t", "250")
            changes.take(CLIENTS * 250 * CHANGES, WITHIN_S)
            return {**self._under_load(changes), **self._backlog(changes)}

    def _config(self) -> dict[str, str]:
        return {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector", "database.hostname": "127.0.0.1",
            "database.port": str(self._database.port), "database.user": "postgres", "database.password": "none",
            "database.dbname": "postgres", "topic.prefix": "p", "plugin.name": "pgoutput", "snapshot.mode": "no_data",
            "slot.name": "bench", "publication.name": "bench", "tasks.max": "1", **JSON, **self._of.config,
        }  # fmt: skip

    def _under_load(self, changes: Changes) -> dict[str, float]:
        """While pgbench works as fast as it can."""
        before, began = self._transactions(), time.perf_counter()
        load = self._started("-c", str(CLIENTS), "-T", str(self._size.load_s))
        delays_ms = changes.follow(lambda: load.poll() is None)
        load.wait()
        count = (self._transactions() - before) * CHANGES
        delays_ms += changes.take(count - len(delays_ms), WITHIN_S)
        took_s = time.perf_counter() - began
        delays_ms.sort()
        return {"sustained": count / took_s, "p50": percentile(delays_ms, 50), "p99": percentile(delays_ms, 99)}

    def _backlog(self, changes: Changes) -> dict[str, float]:
        """Stop the connector, make changes, and let it catch up."""
        self._worker.call("PUT", "/connectors/capture/stop")
        _wait(lambda: not self._streams())
        self._pgbench("-c", str(CLIENTS), "-t", str(self._size.backlog // CLIENTS))
        cpu = cpu_of(self._worker.pids)
        forget_peak(self._worker.pids)
        self._worker.call("PUT", "/connectors/capture/resume")
        changes.take(1, WITHIN_S)
        first = time.perf_counter()
        count = self._size.backlog * CHANGES
        changes.take(count - changes.taken, WITHIN_S)
        took_s = time.perf_counter() - first
        cpu = cpu_of(self._worker.pids) - cpu
        return {"backlog": count / took_s, "cpu": cpu / count * 1_000_000, "memory": peak_mb(self._worker.pids)}

    def _transactions(self) -> int:
        """How many pgbench has made so far."""
        return int(self._database.query("SELECT count(*) FROM pgbench_history")[0][0])

    def _streams(self) -> bool:
        with suppress(psycopg.Error):
            return self._database.query("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'") != []
        return False

    def _started(self, *options: str) -> subprocess.Popen[bytes]:
        path = shutil.which("pgbench")
        if path is None:
            raise PeerUnavailable("pgbench is not installed (Debian package: postgresql-contrib)")
        where = ("-h", "127.0.0.1", "-p", str(self._database.port), "-U", "postgres", "-n")
        return subprocess.Popen([path, *where, *options, "postgres"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _pgbench(self, *options: str) -> None:
        if self._started(*options).wait(WITHIN_S):
            raise PeerUnavailable(f"pgbench {' '.join(options)} failed")


def _wait(holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + WITHIN_S
    while not holds():
        if time.monotonic() > deadline_s:
            raise PeerUnavailable("it did not come about in time")
        time.sleep(0.05)


def _results(size: Size) -> dict[str, Result]:
    load = f"pgbench -c {CLIENTS} for {size.load_s} s"
    rate, delay = ">= 1.5 times Debezium", "at most half of Debezium"
    return {
        "backlog": Result("backlog", f"{size.backlog * CHANGES:,} changes of a stopped connector, from the first record to the last",
                          "rows/s", {}, rate),
        "sustained": Result("sustained", f"{load}, from its start to the last record", "rows/s", {}, rate),
        "p50": Result("p50", f"{load}: from the commit to the consumer, p50", "ms", {}, delay),
        "p99": Result("p99", f"{load}: from the commit to the consumer, p99", "ms", {}, delay),
        "cpu": Result("cpu", "processor time of a million changes of the backlog, the start of the task included", "s", {}),
        "memory": Result("memory", "peak of resident memory of all processes while the backlog is read", "MB", {}),
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
