"""`python -m bench run nexmark`: the queries of Nexmark as views, beside Spark alone; each view is proved to be its query."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from barnabas.testing.children import Child
from bench import report
from bench.front import parser_of, tell
from bench.nexmark import plain
from bench.nexmark.generator import events
from bench.nexmark.queries import TABLES, queries
from bench.servers import Barnabas, create_topic
from bench.sql.systems import SqlServer
from bench.storage.result import Result, judge, measured, ratio
from bench.views.feed import ROOT
from bench.views.systems import Engine

OURS, PLAIN = "a view of barnabas", "Spark alone"
EVENTS, QUICK_EVENTS = 1_000_000, 200_000
PARTITIONS = 2
MOST_WAITING = 100_000  # records of the producer


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("bench.nexmark", __doc__)
    parser.add_argument("--events", type=int, help=f"default {EVENTS:,}, with --quick {QUICK_EVENTS:,}")
    parser.add_argument("queries", nargs="*", metavar="QUERY", help=f"some of {', '.join(queries())}")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.queries if name not in queries()]
    if unknown:
        parser.error(f"there is no query {unknown[0]!r}")
    count = options.events or (QUICK_EVENTS if options.quick else EVENTS)
    command = report.command_of("bench.nexmark", arguments)
    page = measured(lambda: measure(options.queries or list(queries()), options.repeat, count), command, quick=options.quick)
    return tell(page, options.json)


def measure(names: Sequence[str], repeat: int, count: int) -> list[Result]:
    """The rates of the queries.

    Args:
        count: of events.

    Raises:
        AssertionError: a view was not its query.
    """
    results = {name: Result(name, _title(name), "rows/s", {}) for name in names}
    with ExitStack() as running:
        broker = running.enter_context(Barnabas())
        bootstrap = "{}:{}".format(*broker.address)
        rows = _fill(broker, bootstrap, count)
        sql = running.enter_context(SqlServer(bootstrap))
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="barnabas-bench-engine-")))
        running.enter_context(Engine(bootstrap, folder))
        with sql.connect() as client:
            for table, columns in TABLES.items():
                client.execute(f"CREATE TABLE {table} ({columns}) APPEND ONLY WITH (topic = '{table}', format = 'json')")
            client.execute("CREATE MATERIALIZED VIEW first AS SELECT count(*) FROM person")  # keeps Spark, and its workers, ready
            for name in names:
                for _ in range(repeat):
                    seconds = _view(client, name)
                    results[name].figures.setdefault(OURS, []).append(_read_by(name, rows) / seconds)
        for name, each in _spark(bootstrap, repeat, [name for name in names if name in plain.texts()]).items():
            results[name].figures[PLAIN] = [_read_by(name, rows) / seconds for seconds in each]
            results[name].ratio = ratio(results[name], OURS, PLAIN)
    for result in results.values():
        judge(result, OURS)
    return list(results.values())


def _title(name: str) -> str:
    return f"{name}: {' '.join(queries()[name].split())[:70]}"


def _read_by(name: str, rows: Counter[str]) -> int:
    """The rows of the tables that a query reads."""
    return sum(rows[table] for table in TABLES if re.search(rf"\b{table}\b", queries()[name]))


def _fill(broker: Barnabas, bootstrap: str, count: int) -> Counter[str]:
    """Write the events; how many each stream has."""
    for table in TABLES:
        create_topic(broker, table, PARTITIONS)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.messages": 2 * MOST_WAITING})
    rows = Counter[str]()
    for each in events(count):
        producer.produce(each.stream, json.dumps(each.row), partition=rows[each.stream] % PARTITIONS)
        rows[each.stream] += 1
        if len(producer) > MOST_WAITING:
            producer.poll(0.1)
    assert producer.flush(60) == 0, "the events are acknowledged"
    return rows


def _view(client: Any, name: str) -> float:
    """Create a view, prove it, and drop it; the seconds until it had all rows."""
    began_s = time.perf_counter()
    client.execute(f"CREATE MATERIALIZED VIEW {name} AS {queries()[name]}")
    seconds = time.perf_counter() - began_s
    for first, second in ((f"SELECT * FROM {name}", queries()[name]), (queries()[name], f"SELECT * FROM {name}")):
        (found,) = client.execute(f"SELECT count(*) FROM (({first}) EXCEPT ALL ({second}))").fetchone()
        assert found == 0, f"{found} rows of {name} are wrong"
    client.execute(f"DROP MATERIALIZED VIEW {name}")
    return seconds


def _spark(bootstrap: str, repeat: int, names: Sequence[str]) -> dict[str, list[float]]:
    """The seconds of Spark alone."""
    if not names:
        return {}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src")))}
    command = [sys.executable, "-m", "bench.nexmark.plain", bootstrap, str(repeat), *names]
    with Child[str](command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment) as process:
        told, _ = process.communicate()
    assert process.returncode == 0, f"Spark alone ended with {process.returncode}"
    found = defaultdict[str, list[float]](list)
    for line in told.splitlines():
        name, seconds = line.split()
        found[name].append(float(seconds))
    return found


if __name__ == "__main__":
    sys.exit(main())
