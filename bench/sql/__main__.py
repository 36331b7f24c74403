"""`python -m bench run sql`: one row by its key, single-row inserts, a count and a large result, over the Postgres protocol and over
HTTP."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg.pq import ExecStatus

from bench import report
from bench.front import parser_of, tell
from bench.latency import percentile
from bench.peers.process import cpu_of, resident_mb
from bench.registry.systems import call
from bench.servers import Barnabas
from bench.sql import load
from bench.sql.systems import OURS, SqlServer
from bench.storage.result import Result, judge, measured
from bench.tables.topics import FIRST_ID, fill

CONNECTIONS = (1, 4, 8)
POSTGRES, HTTP, PSYCOPG = "Postgres", "HTTP", "psycopg 3"
SETTLE_S = 1.0
KEYED = "CREATE TABLE keyed (id bigint PRIMARY KEY, name text, price double precision, at timestamptz, active boolean)"
PLAIN = "CREATE TABLE plain (id bigint, name text, price double precision, at timestamptz, active boolean) APPEND ONLY"
LARGE = (
    "CREATE TABLE large (id bigint, name text, price double precision, at timestamptz, active boolean) "
    "APPEND ONLY WITH (topic = 'large', format = 'json')"
)
FILL = "INSERT INTO keyed SELECT i, 'customer ' || i, i * 1.5, timestamp '2026-01-01 00:00:00', i % 3 = 0 FROM range({}) r(i)"
ONE_ROW = "SELECT * FROM keyed WHERE id = $1"
INSERT = "INSERT INTO {} VALUES ($1, $2, $3, $4, $5)"
VALUES = ("customer 7", "1.5", "2026-01-01 00:00:00+00", "true")


class Amounts(NamedTuple):
    """The amounts: keys of the small table, rows of the large one, queries that are timed one by one, and seconds of a load."""

    keys: int
    rows: int
    timed: int
    seconds: float


FULL, QUICK = Amounts(100_000, 5_000_000, 5_000, 3.0), Amounts(10_000, 500_000, 500, 1.0)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("bench.sql", __doc__)
    options = parser.parse_args(arguments)
    amounts = QUICK if options.quick else FULL
    command = report.command_of("bench.sql", arguments)
    page = measured(lambda: measure(options.repeat, amounts), command, quick=options.quick)
    return tell(page, options.json)


def measure(repeat: int, amounts: Amounts) -> list[Result]:
    """All results."""
    results = _results(amounts)
    with Barnabas() as broker:
        bootstrap = "{}:{}".format(*broker.address)
        fill(broker, "large", amounts.rows)
        for _ in range(repeat):
            _starts(bootstrap, results)
        with SqlServer(bootstrap) as server:
            with server.connect() as client:
                for statement in (KEYED, PLAIN, LARGE, FILL.format(amounts.keys)):
                    client.execute(statement)
            for _ in range(repeat):
                _one_row(server, amounts, results)
                _inserts(server, amounts, results)
                _large(server, amounts, results)
            _add(results, "loaded", OURS, resident_mb(server.pids))
    for result in results.values():
        judge(result, min(result.figures, key=_order))
    return list(results.values())


def _order(label: str) -> int:
    """The label that a target is for comes first."""
    return (PSYCOPG, POSTGRES, HTTP).index(label) if label in (PSYCOPG, POSTGRES, HTTP) else -1


def _results(amounts: Amounts) -> dict[str, Result]:
    found = [
        Result("ready", "both ports accept connections, after the start", "s", {}, "< 1"),
        Result("first", "the first query is answered, after the start", "s", {}),
        Result("idle", "memory when the ports accept connections", "MB", {}),
        Result("warm", "memory after the first query", "MB", {}),
        Result("p50", f"one row by its key, of {amounts.keys:,}: median", "ms", {}, "< 2"),
        Result("p99", f"one row by its key, of {amounts.keys:,}: p99", "ms", {}),
        *(_row_rates(amounts, count) for count in CONNECTIONS),
        Result(
            "simple", f"one row by its key, its value in the text, {CONNECTIONS[-1]} connections", "queries/s", {}, ">= 5,000"
        ),
        Result("row-cpu", f"one row by its key, {CONNECTIONS[-1]} connections, of CPU time", "queries/CPU s", {}, ">= 5,000"),
        Result("simple-cpu", "the same with its value in the text", "queries/CPU s", {}, ">= 5,000"),
        Result("insert", "single-row inserts, table without a key, 1 connection", "rows/s", {}, ">= 1,000"),
        Result("insert-keyed", "single-row inserts, table with a primary key, 1 connection", "rows/s", {}, ">= 1,000"),
        Result("insert-cpu", "single-row inserts, table with a primary key, of CPU time", "rows/CPU s", {}),
        Result("count", f"count of {amounts.rows:,} records", "s", {}, "< 1.5" if amounts == FULL else ""),
        Result("filtered", f"count of {amounts.rows:,} records with a condition on two columns", "s", {}),
        Result("result", f"a result of {amounts.rows // 5:,} rows and five columns", "rows/s", {}),
        Result("loaded", "memory after all that", "MB", {}),
    ]
    return {result.case: result for result in found}


def _row_rates(amounts: Amounts, connections: int) -> Result:
    title = f"one row by its key, {connections} connection{'s' if connections > 1 else ''}"
    return Result(f"rows-{connections}", title, "queries/s", {}, ">= 5,000" if connections == CONNECTIONS[-1] else "")


def _add(results: dict[str, Result], case: str, label: str, value: float) -> None:
    results[case].figures.setdefault(label, []).append(value)


def _starts(bootstrap: str, results: dict[str, Result]) -> None:
    began = time.perf_counter()
    with SqlServer(bootstrap) as server:
        _add(results, "ready", OURS, server.ready_after_s)
        _add(results, "idle", OURS, resident_mb(server.pids))
        status, _ = call(server.http, "GET", "/sql?statement=select%201")
        assert status == 200, status
        _add(results, "first", OURS, time.perf_counter() - began)
        time.sleep(SETTLE_S)
        _add(results, "warm", OURS, resident_mb(server.pids))


def _keys(amounts: Amounts) -> Iterator[int]:
    """Keys of the small table, spread over it."""
    return (number * 7_919 % amounts.keys for number in itertools.count())


def _one_row(server: SqlServer, amounts: Amounts, results: dict[str, Result]) -> None:
    over_postgres = [load.postgres_request(str(key)) for key in itertools.islice(_keys(amounts), amounts.keys)]
    over_http = [load.http_request(server.http, ONE_ROW, [key]) for key in itertools.islice(_keys(amounts), amounts.keys)]
    ways: list[tuple[str, Any, Any, list[bytes], Any]] = [
        (POSTGRES, server.postgres, load.postgres_open(ONE_ROW), over_postgres, load.postgres_whole),
        (HTTP, server.http, load.http_open, over_http, load.http_whole),
    ]
    texts = itertools.cycle(
        load.postgres_query(f"SELECT * FROM keyed WHERE id = {key}") for key in itertools.islice(_keys(amounts), amounts.keys)
    )
    with server.connect() as client:
        _timed(results, PSYCOPG, _psycopg_delays(client, amounts))
    for label, address, connect, requests, whole in ways:
        turns = itertools.cycle(requests)
        load.rate(address, connect, turns, whole, 1, amounts.seconds / 4)
        with connect(address) as line:
            _timed(results, label, load.delays_ms(line, turns, whole, amounts.timed))
        for connections in CONNECTIONS:
            spent = cpu_of(server.pids)
            per_s = load.rate(address, connect, turns, whole, connections, amounts.seconds)
            _add(results, f"rows-{connections}", label, per_s)
        _add(results, "row-cpu", label, per_s * amounts.seconds / (cpu_of(server.pids) - spent))
    load.rate(server.postgres, load.postgres_idle, texts, load.postgres_query_whole, CONNECTIONS[-1], amounts.seconds / 4)
    spent = cpu_of(server.pids)
    per_s = load.rate(server.postgres, load.postgres_idle, texts, load.postgres_query_whole, CONNECTIONS[-1], amounts.seconds)
    _add(results, "simple", POSTGRES, per_s)
    _add(results, "simple-cpu", POSTGRES, per_s * amounts.seconds / (cpu_of(server.pids) - spent))


def _timed(results: dict[str, Result], label: str, delays: list[float]) -> None:
    _add(results, "p50", label, percentile(delays, 50.0))
    _add(results, "p99", label, percentile(delays, 99.0))


def _psycopg_delays(client: psycopg.Connection, amounts: Amounts) -> list[float]:
    found = []
    for key in itertools.islice(_keys(amounts), amounts.timed):
        began = time.perf_counter()
        rows = client.execute("SELECT * FROM keyed WHERE id = %s", [key], prepare=True).fetchall()
        found.append((time.perf_counter() - began) * 1e3)
        assert len(rows) == 1, rows
    return sorted(found)


_inserted = itertools.count(FIRST_ID)


def _inserts(server: SqlServer, amounts: Amounts, results: dict[str, Result]) -> None:
    for case, name in (("insert", "plain"), ("insert-keyed", "keyed")):
        statement = INSERT.format(name)
        requests: Iterator[bytes] = (load.postgres_request(str(number), *VALUES) for number in _inserted)
        connect = load.postgres_open(statement)
        spent = cpu_of(server.pids)
        per_s = load.rate(server.postgres, connect, requests, load.postgres_whole, 1, amounts.seconds)
        _add(results, case, POSTGRES, per_s)
        if name == "keyed":
            _add(results, "insert-cpu", POSTGRES, per_s * amounts.seconds / (cpu_of(server.pids) - spent))
        texts: Iterator[bytes] = (load.http_request(server.http, statement, [number, *_typed()]) for number in _inserted)
        _add(results, case, HTTP, load.rate(server.http, load.http_open, texts, load.http_whole, 1, amounts.seconds))


def _typed() -> tuple[object, ...]:
    return VALUES[0], float(VALUES[1]), VALUES[2], True


def _large(server: SqlServer, amounts: Amounts, results: dict[str, Result]) -> None:
    with server.connect() as client:

        def seconds(statement: str, wanted: int) -> float:
            began = time.perf_counter()
            row = client.execute(statement).fetchone()
            assert row == (wanted,), row
            return time.perf_counter() - began

        for case, condition, wanted in _counts(amounts):
            _add(results, case, PSYCOPG, seconds(f"SELECT count(*) FROM large{condition}", wanted))
        for label, form in (("Postgres, text", 0), ("Postgres, binary", 1)):
            began = time.perf_counter()
            found = client.pgconn.exec_params(f"SELECT * FROM large LIMIT {amounts.rows // 5}".encode(), None, result_format=form)
            assert found.status == ExecStatus.TUPLES_OK, found.error_message
            assert found.ntuples == amounts.rows // 5, found.ntuples
            _add(results, "result", label, found.ntuples / (time.perf_counter() - began))
            found.clear()


def _counts(amounts: Amounts) -> Sequence[tuple[str, str, int]]:
    wanted = sum(1 for number in range(5_000) if number * 1.37 % 1000 < 100 and number % 3 == 0)
    return (
        ("count", "", amounts.rows),
        ("filtered", " WHERE price < 100 AND active", wanted * amounts.rows // 5_000),
    )


if __name__ == "__main__":
    sys.exit(main())
