"""Captures with a table of signals, as tests of incremental snapshots have them: of each kind of database."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from random import Random
from threading import Event, Thread
from typing import Any, ClassVar
from uuid import uuid4

import pytest

from barnabas.connect.plugins.debezium.windows import Windows
from barnabas.connect.runtime.source_offsets import records_of
from barnabas.engine.jobs import Job
from tests.connect.plugins.captures import Capture
from tests.torture.databases.folding import canonical, folded
from tests.waiting import wait_until

COUNT = 25  # rows of the table t
WITHIN = 4  # transactions within a window
KEYS = 30  # of rows that come while the capture runs


class Signalled(Capture):
    """A capture with a table of signals, and a table of rows that it has not read.

    Attributes:
        chunks: the class that reads chunks.
        conflicts: errors of statements of which two do not fit together.
        text: has characters that mean something in a statement, as a part of one.
        types: of a number, a time and bytes.
        small: bytes, as a part of a statement.
    """

    name: str
    chunks: ClassVar[type[Windows]]
    conflicts: ClassVar[tuple[type[Exception], ...]]
    text: ClassVar[str]
    types: ClassVar[tuple[str, str, str]]
    small: ClassVar[str]

    def connect(self) -> Any:
        """A connection to the schema or database that commits each statement."""
        raise NotImplementedError

    def rows(self, table: str) -> Counter[str]:
        """The rows of a table, as `folded` has them."""
        with closing(self.connect()) as connection:
            cursor = connection.cursor()
            cursor.execute(f"SELECT * FROM {table}")
            names = [each[0] for each in cursor.description]
            return Counter(canonical(dict(zip(names, row, strict=True))) for row in cursor.fetchall())

    def capturing(self, **config: str) -> Job:
        """The task, which reads no rows at first."""
        given = {"snapshot_mode": "no_data", "incremental_snapshot_chunk_size": "4", **config}
        return self.job(signal_data_collection=f"{self.name}.signals", **given)

    def until_streaming(self, task: Any, *before: str) -> None:
        """Wait until changes come.

        Args:
            before: statements before each of them.
        """
        count = len(self.records("ready"))

        def comes() -> bool:
            self.run(*before, "INSERT INTO ready VALUES (0)")
            return len(self.records("ready")) > count

        self.tasks.until(comes, task, "no changes came")

    def signal(self, kind: str, data: Any = None) -> None:
        """Add a row to the table of signals."""
        self.run(_signal(kind, data))

    def snapshot(
        self, *tables: str, also: str | None = None, conditions: Any = (), key: str | None = None, before: str = ""
    ) -> None:
        """Ask for a snapshot of tables, and give another signal in the same transaction.

        Args:
            key: surrogate-key.
            before: a statement.
        """
        names = [f"{self.name}[.]{each}" for each in tables]
        data = {"type": "incremental", "data-collections": names, "additional-conditions": conditions, "surrogate-key": key}
        wanted = _signal("execute-snapshot", data)
        self.run(*([before] if before else []), "BEGIN", wanted, *([_signal(also)] if also else []), "COMMIT")

    def read(self, table: str = "t") -> list[Any]:
        """The rows that were read, in their order."""
        return [each[2] for each in self.changes(table) if each[0] == "r"]

    def until_some_are_read(self, count: int, task: Any) -> None:
        """Wait until so many rows were read, or more."""
        self.tasks.until(lambda: len(self.read()) >= count, task, "the rows did not come")

    def until_read(self, count: int, task: Any, table: str = "t") -> None:
        """Wait until so many rows were read."""
        self.tasks.until(lambda: len(self.read(table)) >= count, task, "the rows did not come")
        assert len(self.read(table)) == count

    def equals(self, table: str = "t") -> bool:
        """Whether the records make the table."""
        return folded(records_of(self.tasks._client, self.topic(table))) == self.rows(table)

    def on_the_first_chunk(self, monkeypatch: pytest.MonkeyPatch, *statements: str) -> None:
        """Run statements when the first chunk was read, before its window ends."""
        waiting = [statements]
        self._behind_chunks(monkeypatch, lambda: self.run(*waiting.pop()) if waiting else None)

    def _behind_chunks(self, monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
        real = self.chunks.chunk

        def chunk(own: Any, *arguments: Any) -> Any:
            found = real(own, *arguments)
            act()
            return found

        monkeypatch.setattr(self.chunks, "chunk", chunk)

    def has_closed(self, count: int) -> bool:
        """Whether so many windows have ended."""
        with closing(self.connect()) as connection:
            cursor = connection.cursor()
            cursor.execute("SELECT count(*) FROM signals WHERE type = 'snapshot-window-close'")
            return bool(cursor.fetchone()[0] >= count)

    @contextmanager
    def writing(self, monkeypatch: pytest.MonkeyPatch, writers: int) -> Iterator[None]:
        """Connections that change rows at random, some within each window."""
        ends, made = Event(), [Writer(self, Random(each)) for each in range(writers)]
        threads = [Thread(target=each.write, args=(ends,)) for each in made]

        def wait() -> None:
            begin = sum(each.count for each in made)
            wait_until(lambda: ends.is_set() or sum(each.count for each in made) >= begin + WITHIN, "nobody writes")

        self._behind_chunks(monkeypatch, wait)
        for each in threads:
            each.start()
        try:
            yield
        finally:
            ends.set()
            for each in threads:
                each.join()


class Writer:
    """Changes rows at random.

    Attributes:
        count: of transactions that have ended.
    """

    def __init__(self, capture: Signalled, random: Random) -> None:
        self._capture, self._random, self.count = capture, random, 0

    def write(self, ends: Event) -> None:
        """Go on until the end."""
        random = self._random
        with closing(self._capture.connect()) as connection:
            while not ends.is_set():
                statements = [_change(random) for _ in range(random.randrange(1, 4))]
                cursor = connection.cursor()
                try:
                    for each in ["BEGIN", *statements, "COMMIT"]:
                        cursor.execute(each)
                except self._capture.conflicts:
                    cursor.execute("ROLLBACK")
                self.count += 1


def _signal(kind: str, data: Any = None) -> str:
    text = "NULL" if data is None else "'" + json.dumps(data).replace("'", "''") + "'"
    return f"INSERT INTO signals VALUES ('{uuid4()}', '{kind}', {text})"


def _change(random: Random) -> str:
    a, other = random.randrange(KEYS), random.randrange(KEYS)
    return random.choice(
        (
            f"UPDATE t SET v = v + 1 WHERE a = {a}", f"DELETE FROM t WHERE a = {a}", f"UPDATE t SET a = {other} WHERE a = {a}",
            f"INSERT INTO t VALUES ({a}, 'é', 0)", f"UPDATE t SET v = v + 1 WHERE a < {a}",
        )
    )  # fmt: skip
