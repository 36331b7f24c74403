"""The rounds: kill engines, runners and tasks while sources write and sinks read; then each record is there once, in topics and tables."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from barnabas.client.results import LATEST
from barnabas.testing import Broker
from tests.connect.cluster_of_workers import Workers, runner_of, tasks_of
from tests.connect.sample_plugins import installed
from tests.waiting import wait_until

ENGINES = ("a", "b", "c")
SOURCES = tuple(f"numbers-{number}" for number in range(4))
SINKS = {"copies-0": SOURCES[:2], "copies-1": SOURCES[2:]}
KINDS = ("services", "runner", "both", "task", "stop")
SINK = "io.confluent.connect.jdbc.JdbcSinkConnector"
MOST_ROWS = 1000  # between two kills
WITHIN_S = 60.0


@dataclass(frozen=True)
class Round:
    """One round that held.

    Args:
        seconds: until every source and every sink had written again.
    """

    number: int
    kind: str
    rows: int
    seconds: float


class Torture:
    """A broker, engines, sources that count, and sinks that copy what they count into tables.

    Args:
        folder: for logs and tables.
    """

    def __init__(self, stack: ExitStack, folder: Path, seed: int) -> None:
        self._random, self._folder = random.Random(seed), folder
        stack.enter_context(_found(installed(folder / "installed")))
        broker = stack.enter_context(Broker())
        self._workers = workers = stack.enter_context(closing(Workers(broker, folder)))
        for topic in SOURCES:
            workers.create_topic(topic)
            workers.declare(topic, "source", "tests.Counting", {"topic": topic, "rows": "5"})
        for name, topics in SINKS.items():
            config = {
                "topics": ",".join(topics), "connection.url": f"jdbc:sqlite:{self._table(name)}", "auto.create": "true",
                "retry.backoff.ms": "50", "max.retries": "1000",
            }  # fmt: skip
            workers.declare(name, "sink", SINK, config)
        for name in ENGINES:
            workers.start(name)
        self._wait_for_growth()

    def _table(self, sink: str) -> Path:
        return self._folder / f"{sink}.db"

    def round(self, number: int) -> Round:
        """One round. Raises AssertionError if a record is missing or there twice."""
        wanted = sum(self._ends().values()) + self._random.randrange(MOST_ROWS)
        wait_until(lambda: sum(self._ends().values()) >= wanted, "the sources stand still", within_s=WITHIN_S)
        kind = self._random.choice(KINDS)
        name = self._random.choice(ENGINES)
        comes_back_at_once = self._random.random() < 0.5
        began_s = time.monotonic()
        self._end(kind, name)
        if comes_back_at_once and name not in self._workers.engines:
            self._workers.start(name)
        self._wait_for_growth()
        seconds = time.monotonic() - began_s
        if name not in self._workers.engines:
            self._workers.start(name)
        return Round(number, kind, self._check(), seconds)

    def _end(self, kind: str, name: str) -> None:
        pid = self._workers.engines[name].pid
        runner = runner_of(pid)
        if kind == "task":
            tasks = tasks_of(pid)
            _kill(self._random.choice(tasks) if tasks else None)
        if kind in ("runner", "both"):
            _kill(runner)
        if kind in ("services", "both"):
            self._workers.kill(name)
        if kind == "stop":
            self._workers.stop(name)

    def _ends(self) -> dict[str, int]:
        found = self._workers.client.list_offsets({(topic, 0): LATEST for topic in SOURCES}, read_committed=True)
        return {topic: found[topic, 0].offset for topic in SOURCES}

    def _counts(self) -> dict[str, int]:
        return {
            topic: sum(self._query(name, f'SELECT count(*) FROM "{topic}"')) for name, topics in SINKS.items() for topic in topics
        }

    def _query(self, sink: str, statement: str) -> list[int]:
        """A column of numbers; empty while there is no table."""
        path = self._table(sink)
        if not path.exists():
            return []
        with closing(sqlite3.connect(path, timeout=30)) as database, suppress(sqlite3.OperationalError):
            return [n for (n,) in database.execute(statement)]
        return []

    def _wait_for_growth(self) -> None:
        """Wait until each source and each sink has written."""
        ends, counts = self._ends(), self._counts()

        def holds() -> bool:
            return all(self._ends()[topic] > ends[topic] for topic in SOURCES) and all(
                now > counts[topic] for topic, now in self._counts().items()
            )

        wait_until(holds, f"something does not go on: {ends} {counts} {self._workers.states.follow()}", within_s=WITHIN_S)

    def _check(self) -> int:
        """Each number is once in its topic and once in its table; returns how many rows there are."""
        rows = 0
        for name, topics in SINKS.items():
            for topic in topics:
                copied = self._query(name, f'SELECT n FROM "{topic}" ORDER BY n')
                assert copied == list(range(len(copied))), f"{name} has not each row of {topic} once"
                written = self._workers.values(topic)
                assert written == [b'{"n":%d}' % number for number in range(len(written))], f"{topic} has not each row once"
                rows += len(written) + len(copied)
        return rows


def _kill(pid: int | None) -> None:
    if pid is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@contextmanager
def _found(path: str) -> Iterator[None]:
    """Let processes that start find modules on this path."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = path
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def torture(rounds: int, seed: int) -> Iterator[Round]:
    """Run the rounds; one item after each. Raises AssertionError where a promise is broken."""
    with tempfile.TemporaryDirectory(prefix="barnabas-torture-") as folder, ExitStack() as stack:
        made = Torture(stack, Path(folder), seed)
        for number in range(1, rounds + 1):
            yield made.round(number)
