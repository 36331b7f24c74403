"""`python -m bench run views`: the delay of a view, its rate over a backlog, reads of it while it changes, its restart, its memory, and ten
views beside each other."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.testing.children import Child
from bench import report
from bench.front import parser_of, tell
from bench.latency import percentile
from bench.peers.process import cpu_of
from bench.servers import Barnabas, create_topic
from bench.sql import load
from bench.sql.systems import SqlServer
from bench.storage.result import Result, judge, measured, ratio
from bench.tables.topics import COLUMNS as LARGE_COLUMNS
from bench.tables.topics import batches, fill, send
from bench.views import feed, lateness
from bench.views.feed import Feed
from bench.views.systems import Engine, shared_mb

RATE, CONNECTIONS = 1_000, 8
OURS, PLAIN = "a view of barnabas", "Spark alone"
CONSUMER, SESSION = "a consumer of its topic", "a SQL session"
FOLLOWS, SPARK, REST = "the view follows again", "of it the start of Spark", "of it all else"
SQL, BROKER = "SQL", "broker"
NEWS = 1_000  # records that come while the engine is down
BACKLOG_KEYS = 100_000
COUNTED = "SELECT k, count(*) AS n, sum(x) AS s FROM stream GROUP BY k"
BY_ID = "SELECT id, count(*) AS n, sum(price) AS total FROM {} GROUP BY id"
KINDS = (
    "SELECT k, x, x * 2 AS doubled FROM stream WHERE k % 10 = 0",
    "SELECT k, count(*) AS n, sum(x) AS s FROM stream GROUP BY k",
    "SELECT k % 7 AS part, min(x) AS least, max(x) AS most, avg(x) AS middle FROM stream GROUP BY 1",
    "SELECT count(*) AS n, max(x) AS most FROM stream",
    "SELECT DISTINCT k FROM stream",
    "SELECT k, count(DISTINCT x % 5) AS kinds FROM stream GROUP BY k",
    "SELECT x - x % 5000 AS part, count(*) AS n FROM stream GROUP BY 1 HAVING count(*) > 10",
    "SELECT * FROM (SELECT k, x, row_number() OVER (PARTITION BY k % 10 ORDER BY x DESC) AS place FROM stream) WHERE place <= 3",
    "SELECT a.k, a.n, b.most FROM (SELECT k, count(*) AS n FROM stream GROUP BY k) AS a"
    " JOIN (SELECT k, max(x) AS most FROM stream WHERE x % 2 = 0 GROUP BY k) AS b ON a.k = b.k",
    "SELECT k, 'low' AS side, count(*) AS n FROM stream WHERE k < 500 GROUP BY k"
    " UNION ALL SELECT k, 'high' AS side, count(*) AS n FROM stream WHERE k >= 500 GROUP BY k",
)


class Amounts(NamedTuple):
    """The amounts: rows of the backlog; rows and keys of the large view; queries timed one by one; seconds of a measurement, of a load, and
    of the idle jobs; seconds before the first measurement."""

    backlog: int
    large: int
    large_keys: int
    timed: int
    seconds: float
    load_s: float
    idle_s: float
    warm_s: float


FULL = Amounts(1_000_000, 5_000_000, 1_000_000, 5_000, 20.0, 5.0, 15.0, 10.0)
QUICK = Amounts(1_000_000, 500_000, 500_000, 1_000, 5.0, 2.0, 15.0, 5.0)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("bench.views", __doc__)
    options = parser.parse_args(arguments)
    amounts = QUICK if options.quick else FULL
    command = report.command_of("bench.views", arguments)
    page = measured(lambda: measure(options.repeat, amounts), command, quick=options.quick)
    return tell(page, options.json)


def measure(repeat: int, amounts: Amounts) -> list[Result]:
    """All results."""
    results = _results(amounts)
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="barnabas-bench-engine-")))
        run = Run(running.enter_context(Barnabas()), folder, amounts, results)
        running.callback(run.close)
        run.small_view(repeat)
        run.backlog(repeat)
        run.large()
        run.restart()
        run.ten()
    for result in results.values():
        judge(result, next(iter(result.figures), ""))
    return list(results.values())


def _results(amounts: Amounts) -> dict[str, Result]:
    state = f"a view of {amounts.large_keys:,} rows"
    found = [
        Result("p50", f"from a record to its row, {RATE:,} records/s, p50", "ms", {}, "< 300"),
        Result("p99", "the same, p99", "ms", {}, "< 600"),
        Result("backlog", f"{amounts.backlog:,} records into {BACKLOG_KEYS:,} keys, count and sum", "rows/s", {}, ">= 150,000"),
        Result("key", f"one row by its key, while the view takes {RATE:,} records/s, p50", "ms", {}, "< 2"),
        Result("keys", f"the same, over {CONNECTIONS} connections", "queries/s", {}, ">= 5,000"),
        Result("large", f"{amounts.large:,} records into {amounts.large_keys:,} keys, count and sum", "rows/s", {}),
        Result("restart", f"after the engine was killed, {state}", "s", {}),
        Result("serve", f"SQL starts, and answers one row of {state}", "s", {}),
        Result("memory", "memory, with one view of 1,000 rows", "MB", {}),
        Result("memory-large", f"memory, with {state} beside it", "MB", {}),
        Result("ten-p50", f"ten views of one topic, {RATE:,} records/s, p50", "ms", {}),
        Result("ten-p99", "the same, p99", "ms", {}),
        Result("ten-cpu", "the same, CPU", "% of a core", {}),
        Result("idle", "CPU of ten idle views", "% of a core", {}, "< 5"),
    ]
    return {each.case: each for each in found}


class Run:
    """The servers, and the measurements in their order."""

    def __init__(self, broker: Barnabas, folder: Path, amounts: Amounts, results: dict[str, Result]) -> None:
        self._broker, self._folder, self._amounts, self._results = broker, folder, amounts, results
        self._bootstrap = "{}:{}".format(*broker.address)
        self._sql = SqlServer(self._bootstrap).__enter__()
        self._engine = Engine(self._bootstrap, folder / "engine").__enter__()
        self._client = self._sql.connect()
        self._topics = (f"stream-{number}" for number in itertools.count())
        self._new_stream()

    def close(self) -> None:
        """End the servers except for the broker."""
        self._client.close()
        self._engine.__exit__()
        self._sql.__exit__()

    def _execute(self, statement: str) -> list[tuple[Any, ...]]:
        cursor = self._client.execute(statement)
        return cursor.fetchall() if cursor.description else []

    def _add(self, case: str, label: str, value: float) -> None:
        self._results[case].figures.setdefault(label, []).append(value)

    def _seconds(self, statement: str) -> float:
        began = time.perf_counter()
        self._execute(statement)
        return time.perf_counter() - began

    def _feed(self) -> Feed:
        return Feed(self._bootstrap, self._topic, RATE)

    def _new_stream(self) -> None:
        """An empty topic, whose offsets tell when its records were due, and the table that reads it."""
        self._topic = next(self._topics)
        create_topic(self._broker, self._topic, feed.PARTITIONS)
        self._execute(f"CREATE TABLE stream ({feed.COLUMNS}) APPEND ONLY WITH (topic = '{self._topic}', format = 'json')")

    def small_view(self, repeat: int) -> None:
        """A view of 1,000 rows: its delay, and reads of it."""
        self._execute(f"CREATE MATERIALIZED VIEW counted AS {COUNTED}")
        with self._feed() as records:
            self._warm(records, ["counted"])
            for _ in range(repeat):
                delays = lateness.of_consumer(self._bootstrap, "counted", records, self._amounts.seconds)
                self._late(CONSUMER, delays)
                self._late(SESSION, lateness.of_session(self._client, "counted", records, self._amounts.seconds))
                self._by_key()
            self._memory("memory")
        self._execute("DROP MATERIALIZED VIEW counted")

    def _warm(self, records: Feed, views: Sequence[str]) -> None:
        """Let views take several micro-batches, until they have all but the newest records."""
        time.sleep(self._amounts.warm_s)
        due = int((time.time() - records.began_s) * records.rate)
        lateness.wait_for_ends(self._bootstrap, views, due)

    def _late(self, label: str, delays: list[float]) -> None:
        self._add("p50", label, percentile(delays, 50.0))
        self._add("p99", label, percentile(delays, 99.0))

    def _by_key(self) -> None:
        connect = load.postgres_open("SELECT * FROM counted WHERE k = $1")
        requests = itertools.cycle([load.postgres_request(str(number * 7_919 % feed.KEYS)) for number in range(feed.KEYS)])
        load.rate(self._sql.postgres, connect, requests, load.postgres_whole, 1, self._amounts.load_s / 4)
        with connect(self._sql.postgres) as line:
            delays = load.delays_ms(line, requests, load.postgres_whole, self._amounts.timed)
        self._add("key", OURS, percentile(delays, 50.0))
        per_s = load.rate(self._sql.postgres, connect, requests, load.postgres_whole, CONNECTIONS, self._amounts.load_s)
        self._add("keys", OURS, per_s)

    def _memory(self, case: str) -> None:
        for label, value in self._engine.memory_mb().items():
            self._add(case, label, value)
        self._add(case, SQL, sum(map(shared_mb, self._sql.pids)))
        self._add(case, BROKER, shared_mb(self._broker.pid))

    def _fill(self, topic: str, rows: int, keys: int) -> None:
        fill(self._broker, topic, rows, partitions=feed.PARTITIONS, keys=keys)
        self._execute(f"CREATE TABLE {topic} ({LARGE_COLUMNS}) APPEND ONLY WITH (topic = '{topic}', format = 'json')")

    def backlog(self, repeat: int) -> None:
        """Records that are there before the view, beside Spark that reads the same."""
        rows = self._amounts.backlog
        self._fill("backlog", rows, BACKLOG_KEYS)
        self._execute(f"CREATE MATERIALIZED VIEW first AS {COUNTED}")  # keeps Spark, and the workers, ready
        for _ in range(repeat):
            self._add("backlog", OURS, rows / self._seconds("CREATE MATERIALIZED VIEW many AS " + BY_ID.format("backlog")))
            self._expect("SELECT count(*), sum(n) FROM many", (min(BACKLOG_KEYS, rows), rows))
            self._execute("DROP MATERIALIZED VIEW many")
        command = [sys.executable, "-m", "bench.views.plain", self._bootstrap, "backlog", str(rows), str(repeat)]
        self._results["backlog"].figures[PLAIN] = _numbers(command)
        self._results["backlog"].ratio = ratio(self._results["backlog"], OURS, PLAIN)

    def _expect(self, query: str, wanted: tuple[int, ...]) -> None:
        rows = self._execute(query)
        assert rows == [wanted], rows

    def large(self) -> None:
        """A view of many rows."""
        rows, keys = self._amounts.large, self._amounts.large_keys
        self._fill("large", rows, keys)
        self._add("large", OURS, rows / self._seconds("CREATE MATERIALIZED VIEW whole AS " + BY_ID.format("large")))
        self._expect("SELECT count(*), sum(n) FROM whole", (keys, rows))
        self._memory("memory-large")

    def restart(self) -> None:
        """The engine is killed, and another one goes on; then a SQL service starts anew."""
        self._engine.kill()
        send(self._broker, "large", (batch for batch, _ in batches(NEWS, NEWS)), feed.PARTITIONS)
        self._engine = Engine(self._bootstrap, self._folder / "engine")
        records = self._amounts.large + NEWS
        seconds = lateness.wait_for_ends(self._bootstrap, ["whole"], records, self._engine.__enter__)
        for label, value in ((FOLLOWS, seconds), (SPARK, self._engine.spark_s), (REST, seconds - self._engine.spark_s)):
            self._add("restart", label, value)
        self._expect("SELECT count(*), sum(n) FROM whole", (self._amounts.large_keys, records))
        began = time.perf_counter()
        with SqlServer(self._bootstrap) as server, server.connect() as client:
            assert len(client.execute("SELECT * FROM whole WHERE id = 1000000007").fetchall()) == 1
            self._add("serve", "one row by its key", time.perf_counter() - began)
        self._execute("DROP MATERIALIZED VIEW whole")

    def ten(self) -> None:
        """Ten views of different kinds, while records come and while none comes."""
        self._execute("DROP MATERIALIZED VIEW first")
        self._execute("DROP TABLE stream")
        self._new_stream()
        names = [f"kind_{number}" for number in range(len(KINDS))]
        for name, query in zip(names, KINDS, strict=True):
            self._execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        with self._feed() as records:
            self._warm(records, names)
            spent, began = self._cpu_s(), time.perf_counter()
            delays = lateness.of_jobs(self._bootstrap, len(KINDS), records, self._amounts.seconds)
            share = (self._cpu_s() - spent) / (time.perf_counter() - began)
        self._ten_late(delays)
        self._add("ten-cpu", "engine with Spark, SQL and broker", 100 * share)
        self._idle()

    def _ten_late(self, delays: Mapping[str, list[float]]) -> None:
        for case, percent in (("ten-p50", 50.0), ("ten-p99", 99.0)):
            found = sorted(percentile(each, percent) for each in delays.values())
            self._add(case, "the slowest", found[-1])
            self._add(case, "the fastest", found[0])

    def _cpu_s(self) -> float:
        return cpu_of([*self._engine.pids, *self._sql.pids, self._broker.pid])

    def _idle(self) -> None:
        self._execute("REFRESH MATERIALIZED VIEW kind_0")
        time.sleep(self._amounts.warm_s)
        spent = cpu_of(self._engine.pids)
        time.sleep(self._amounts.idle_s)
        self._add("idle", "engine with Spark", 100 * (cpu_of(self._engine.pids) - spent) / self._amounts.idle_s)


def _numbers(command: Sequence[str]) -> list[float]:
    """The numbers that a process prints."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(feed.ROOT), str(feed.ROOT / "src")))}
    with Child[str](command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment) as process:
        told, _ = process.communicate()
    assert process.returncode == 0, f"{command[2]} ended with {process.returncode}"
    return [float(line) for line in told.split()]


if __name__ == "__main__":
    sys.exit(main())
