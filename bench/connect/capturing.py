"""How one capture is measured: the changes of pgbench, from PostgreSQL to a consumer."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from tempfile import NamedTemporaryFile
from typing import NamedTuple

import psycopg
from tests.connect.plugins.servers import PostgresServer

from bench.connect.changes import Changes
from bench.connect.systems import Worker
from bench.latency import percentile
from bench.peers.peer import PeerUnavailable
from bench.peers.process import cpu_by_pid, cpu_since, forget_peak, peak_mb

SCALE, CLIENTS = 5, 4
CHANGES = 4  # of a transaction of pgbench
ACCOUNTS = 100_000 * SCALE
UPDATES, INSERTS = 100, 20
MANY = UPDATES + INSERTS  # changes of a transaction of the script
SCRIPT = f"""\\set first random(1, {ACCOUNTS - UPDATES + 1})
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid BETWEEN :first AND :first + {UPDATES - 1};
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime)
    SELECT 1, 1, aid, 1, now() FROM generate_series(:first, :first + {INSERTS - 1}) AS aid;
COMMIT;
"""
WITHIN_S = 600.0


class Size(NamedTuple):
    """How much is measured: transactions of the backlog, seconds under load, and transactions with many changes."""

    backlog: int
    load_s: int
    many: int


class Measurement:
    """The figures of one capture."""

    def __init__(self, config: Mapping[str, str], worker: Worker, database: PostgresServer, size: Size) -> None:
        self._config, self._worker, self._database, self._size = config, worker, database, size

    def figures(self, *, only_many: bool) -> dict[str, float]:
        """By the names of cases."""
        self._pgbench("-i", "-s", str(SCALE), "-q")
        self._worker.connect("capture", {**self._connection(), **self._config})
        _wait(self._streams)
        changes = Changes(self._worker.bootstrap, "p.public.pgbench_.*")
        with closing(changes):
            self._pgbench("-c", str(CLIENTS), "-t", "250")
            changes.take(CLIENTS * 250 * CHANGES, WITHIN_S)
            many = self._with_many(changes)
            return many if only_many else {**many, **self._under_load(changes), **self._backlog(changes)}

    def _connection(self) -> dict[str, str]:
        return {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector", "database.hostname": "127.0.0.1",
            "database.port": str(self._database.port), "database.user": "postgres", "database.password": "none",
            "database.dbname": "postgres", "topic.prefix": "p", "plugin.name": "pgoutput", "snapshot.mode": "no_data",
            "slot.name": "bench", "publication.name": "bench", "tasks.max": "1",
        }  # fmt: skip

    def _under_load(self, changes: Changes) -> dict[str, float]:
        """While pgbench works as fast as it can."""
        rate, delays_ms = self._loaded(changes, CHANGES, "-T", str(self._size.load_s))
        return {"sustained": rate, "p50": percentile(delays_ms, 50), "p99": percentile(delays_ms, 99)}

    def _with_many(self, changes: Changes) -> dict[str, float]:
        """The same, with many changes in each transaction."""
        with NamedTemporaryFile("w", suffix=".sql") as script:
            script.write(SCRIPT)
            script.flush()
            rate, delays_ms = self._loaded(changes, MANY // INSERTS, "-t", str(self._size.many // CLIENTS), "-f", script.name)
        return {"many": rate, "many-p50": percentile(delays_ms, 50), "many-p99": percentile(delays_ms, 99)}

    def _loaded(self, changes: Changes, changes_of_row: int, *options: str) -> tuple[float, list[float]]:
        """Changes a second, from the start of pgbench to the last one; and how long each took, in milliseconds, sorted.

        Args:
            changes_of_row: changes for each row of pgbench's history.
        """
        before, began = self._history(), time.perf_counter()
        load = self._started("-c", str(CLIENTS), *options)
        delays_ms = changes.follow(lambda: load.poll() is None)
        if load.wait():
            raise PeerUnavailable(f"pgbench {' '.join(options)} failed")
        count = (self._history() - before) * changes_of_row
        delays_ms += changes.take(count - len(delays_ms), WITHIN_S)
        took_s = time.perf_counter() - began
        return count / took_s, sorted(delays_ms)

    def _backlog(self, changes: Changes) -> dict[str, float]:
        """Stop the connector, make changes, and let it catch up."""
        self._worker.call("PUT", "/connectors/capture/stop")
        _wait(lambda: not self._streams())
        self._pgbench("-c", str(CLIENTS), "-t", str(self._size.backlog // CLIENTS))
        before = cpu_by_pid(self._worker.pids)
        forget_peak(self._worker.pids)
        self._worker.call("PUT", "/connectors/capture/resume")
        changes.take(1, WITHIN_S)
        first = time.perf_counter()
        count = self._size.backlog * CHANGES
        changes.take(count - changes.taken, WITHIN_S)
        took_s = time.perf_counter() - first
        cpu = cpu_since(before, self._worker.pids)
        return {"backlog": count / took_s, "cpu": cpu / count * 1_000_000, "memory": peak_mb(self._worker.pids)}

    def _history(self) -> int:
        """How many rows pgbench has written there so far."""
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
