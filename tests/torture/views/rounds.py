"""The rounds: write to tables, kill something at some moment, go on, and compare each view and stream with its query over the tables.

Real parts: a broker, `barnabas engine start` with Spark, and SQL sessions.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Producer

from barnabas.client.config import ClientConfig
from barnabas.engine.jobs import JobProgress
from barnabas.engine.stores import progress_of
from barnabas.errors import BarnabasError
from barnabas.sql.engine import SqlEngine
from barnabas.sql.interface import Caller
from barnabas.testing import Broker
from tests.sql.engine.asking import Asking
from tests.waiting import wait_until

KINDS = ("driver", "engine", "broker", "nothing")
WITHIN_S = 240.0
TABLES = (
    "create table customers (id int primary key, name text, city text) with (partitions = 2)",
    "create table orders (id int primary key, customer int, amount int) with (partitions = 3)",
    "create table clicks (page text, n int) with (partitions = 2, append_only = true)",
)
VIEWS = {
    "totals": "select customer, count(*) as n, sum(amount) as total, max(amount) as largest from orders group by customer",
    "large": "select id, customer, amount from orders where amount > 500",
    "named": "select o.id, c.name, o.amount from orders o join customers c on o.customer = c.id",
    "cities": "select c.city, sum(o.amount) as total from orders o join customers c on o.customer = c.id group by c.city",
    "missing": "select c.id, c.name, o.id as order_id from customers c left join orders o on o.customer = c.id",
    "pages": "select page, count(*) as clicks, sum(n) as n from clicks group by page",
}
STREAMS = {
    "clicked": "select page, n * 2 as twice from stream clicks where n > 3",
    "ordered": "select id, customer, amount from stream orders",
}
TOPICS = ("customers", "orders", "clicks")


class Round(NamedTuple):
    """One round that held."""

    number: int
    kind: str
    written: int
    seconds: float


class Torture:
    """The parts, and what was written.

    Args:
        folder: for everything on disk.
        master, conf: of Spark.
    """

    def __init__(self, folder: Path, seed: int, master: str = "local[2]", conf: Sequence[str] = ()) -> None:
        self._spark = ["--master", master, *(word for each in conf for word in ("--conf", each))]
        self._random, self._folder = random.Random(seed), folder
        self._stack = ExitStack()
        self._broker = self._stack.enter_context(Broker(data_dir=folder / "broker"))
        self._config = ClientConfig.from_options({"bootstrap.servers": self._broker.bootstrap_servers})
        self._sql = SqlEngine(self._config)
        self._stack.callback(self._sql.close)
        self._progress = progress_of(self._config)
        self._stack.callback(self._progress.close)
        self._engine: subprocess.Popen[bytes] | None = None
        self._producer = Producer({"bootstrap.servers": self._broker.bootstrap_servers, "enable.idempotence": True})

    def __enter__(self) -> Torture:
        views = [f"create materialized view {name} as {query}" for name, query in VIEWS.items()]
        streams = [f"create stream {name} as {query}" for name, query in STREAMS.items()]
        try:
            self._start_engine()
            for statement in (*TABLES, *views, *streams):
                self._run(statement)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._engine is not None:
            self._engine.terminate()
            self._engine.wait()
        self._stack.close()

    def _start_engine(self) -> None:
        program = str(Path(sys.executable).with_name("barnabas"))
        command = [
            program, "engine", "start", "--bootstrap-server", self._broker.bootstrap_servers, "--listener", "http://127.0.0.1:0",
            "--data-dir", str(self._folder / "engine"), *self._spark,
        ]  # fmt: skip
        log = (self._folder / "engine.log").open("ab")
        self._engine = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()

    def _run(self, statement: str) -> list[tuple[Any, ...]]:
        session = Asking(self._sql.session(Caller(parameters={"statement_timeout": f"{WITHIN_S:.0f}s"})))
        try:
            return session.rows(statement)
        finally:
            session.session.close()

    def take_backlog(self, rows: int) -> None:
        """Make a view over so many rows, which are there before it."""
        self._run("create table far (k bigint, x bigint) with (partitions = 2, append_only = true)")
        self._run(f"insert into far select range % 100, range from range({rows})")
        query = "select k, count(*) as n, sum(x) as total from far group by k"
        self._run(f"create materialized view far_sums as {query}")
        assert self._run(f"(select * from far_sums) except all ({query})") == []
        assert self._run("select count(*) from far_sums") == [(100,)]

    def round(self, number: int, kind: str | None = None) -> Round:
        """Kill a part; raises AssertionError if a view or a stream is not what its query says."""
        kind, began_s = kind or self._random.choice(KINDS), time.monotonic()
        written = self._write(self._random.randint(20, 400))
        self._producer.poll(self._random.random())
        self._kill(kind)
        written += self._write(self._random.randint(20, 400))
        assert self._producer.flush(WITHIN_S) == 0, "records were not acknowledged"
        self._check(number, kind)
        return Round(number, kind, written, time.monotonic() - began_s)

    def _write(self, records: int) -> int:
        chance = self._random
        for _ in range(records):
            table = chance.choice(("customers", "orders", "orders", "clicks"))
            if table == "clicks":
                self._produce(table, None, {"page": chance.choice("abcdef"), "n": chance.randint(0, 9)})
                continue
            key = str(chance.randint(1, 12 if table == "customers" else 150))
            row: dict[str, Any] | None = {"name": f"name {chance.randint(1, 5)}", "city": chance.choice(("Ulm", "Rom", None))}
            if table == "orders":
                row = {"customer": chance.randint(1, 14), "amount": chance.randint(0, 1000)}
            self._produce(table, key, row if chance.random() > 0.15 else None)
        return records

    def _produce(self, topic: str, key: str | None, row: dict[str, Any] | None) -> None:
        self._producer.produce(topic, None if row is None else json.dumps(row), key)
        self._producer.poll(0)

    def _kill(self, kind: str) -> None:
        if kind == "driver":
            for pid in self._drivers():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        elif kind == "engine" and self._engine is not None:
            self._engine.kill()
            self._engine.wait()
            self._start_engine()
        elif kind == "broker":
            self._broker.kill()
            self._broker.start()

    def _drivers(self) -> list[int]:
        assert self._engine is not None
        found = []
        for folder in Path("/proc").iterdir():
            with suppress(OSError, ValueError, IndexError):
                parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
                if parent == self._engine.pid and b"barnabas.engine.driver" in (folder / "cmdline").read_bytes():
                    found.append(int(folder.name))
        return found

    def _check(self, number: int, kind: str) -> None:
        """Wait until each view and stream has what was written, and compare it with its query."""
        ends = {topic: self._ends(topic) for topic in TOPICS}
        for name, query in {**VIEWS, **STREAMS}.items():
            its = {topic: each for topic, each in ends.items() if topic in query}
            wait_until(partial(self._has, name, its), f"round {number}, {kind} killed: {name} is behind", within_s=WITHIN_S)
            kept, expected = Counter(self._run(f"select * from {name}")), Counter(self._run(query))
            lacking, beyond = list((expected - kept).elements())[:5], list((kept - expected).elements())[:5]
            assert kept == expected, f"round {number}, {kind} killed: {name} lacks {lacking}, and has {beyond}"

    def _ends(self, topic: str) -> dict[str, int]:
        rows = self._run(f"select _partition, max(_offset) + 1 from {topic} group by 1")
        return {str(partition): end for partition, end in rows}

    def _has(self, name: str, ends: dict[str, dict[str, int]]) -> bool:
        try:
            found: JobProgress | None = self._progress.follow(max_age_s=0.05).get(name)
        except BarnabasError:
            return False
        return found is not None and all(
            found.offsets.get(topic, {}).get(partition, 0) >= end
            for topic, parts in ends.items()
            for partition, end in parts.items()
        )


def torture(rounds: int, seed: int) -> Iterator[Round]:
    """Run them. Raises AssertionError."""
    with tempfile.TemporaryDirectory(prefix="barnabas-views-") as folder, Torture(Path(folder), seed) as made:
        for number in range(1, rounds + 1):
            yield made.round(number)
