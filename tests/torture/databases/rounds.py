"""The rounds: change a database while connectors, the database and the broker are killed; then tables and topics must be equal."""

from __future__ import annotations

import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.results import NewTopic
from barnabas.connect.runtime.source_offsets import records_of
from barnabas.errors import BarnabasError
from barnabas.testing import Broker
from tests.connect.plugins.servers import PostgresServer
from tests.torture.databases.folding import canonical, folded
from tests.torture.databases.processes import Worker
from tests.torture.databases.workload import SCHEMA, TABLES, Workload
from tests.waiting import wait_until

KINDS = ("worker", "worker", "worker", "database", "broker")
WITHIN_S = 60.0
MOST_TRANSACTIONS = 200  # between two kills
NUMBERS = "numbers"
TARGET = {
    "connection.user": "postgres", "auto.create": "true", "auto.evolve": "true",
    "retry.backoff.ms": "200", "max.retries": "1000",
}  # fmt: skip


@dataclass(frozen=True)
class Round:
    """One round that held."""

    number: int
    kinds: tuple[str, ...]
    transactions: int
    rows: int
    seconds: float


class Torture:
    """A broker, a database, and a capture of its tables. A sink copies the topics into other tables of the database.

    Args:
        folder: for logs.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self._random, self._seed, self._produced = random.Random(seed), seed, 0
        self._stack = ExitStack()
        self._broker = self._stack.enter_context(Broker())
        self.server = self._stack.enter_context(closing(PostgresServer()))
        for each in SCHEMA:
            self.server.query(each)
        self.server.query("INSERT INTO events SELECT g, 'begin' FROM generate_series(1, 3000) g")
        settings = {"bootstrap.servers": self._broker.bootstrap_servers}
        self._client = BlockingClient(ClientConfig.from_options({**settings, "isolation.level": "read_committed"}))
        self._stack.callback(self._client.close)
        self._client.create_topics([NewTopic(NUMBERS, 2), NewTopic("f.public.accounts", 2)])
        self.log = folder / "worker.log"
        self._worker = Worker(self._connectors(), settings, self.log)

    def _connectors(self) -> dict[str, tuple[str, str, dict[str, str]]]:
        capture = {
            "database.hostname": "127.0.0.1", "database.port": str(self.server.port), "database.user": "postgres",
            "database.dbname": "postgres", "topic.prefix": "p", "table.include.list": "public[.](accounts|notes|events)",
            "skipped.operations": "none", "slot.retry.delay.ms": "200", "slot.max.retries": "100",
            "publication.autocreate.mode": "filtered",
        }  # fmt: skip
        flat = {
            **capture,
            "barnabas.format": "flat",
            "topic.prefix": "f",
            "slot.name": "flat",
            "table.include.list": "public.accounts",
        }
        sink = {**TARGET, "topics": "f.public.accounts", "connection.url": self.server.url, "table.name.format": "copy"}
        keyed = {"insert.mode": "upsert", "pk.mode": "record_key", "delete.enabled": "true"}
        postgres = "io.debezium.connector.postgresql.PostgresConnector"
        return {
            "capture": ("source", postgres, capture),
            "flat": ("source", postgres, flat),
            "copy": ("sink", "JdbcSinkConnector", sink | keyed),
            "every": ("sink", "JdbcSinkConnector", {**sink, "table.name.format": "every", "topics": NUMBERS}),
        }

    def __enter__(self) -> Torture:
        self._worker.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.__exit__()
        self._stack.close()

    def round(self, number: int) -> Round:
        """Raises AssertionError if tables and topics do not become equal."""
        began, kinds = time.monotonic(), []
        with Workload(self.server, self._seed * 1000 + number) as load:
            for _ in range(self._random.randint(1, 3)):
                load.go_on(self._random.randrange(MOST_TRANSACTIONS))
                kinds.append(self._random.choice(KINDS))
                self._kill(kinds[-1])
                self._produce(self._random.randrange(5000))
            load.go_on(self._random.randrange(MOST_TRANSACTIONS // 2))
        for table in TABLES:
            self._await_equal(table, number, kinds)
        wait_until(self._is_copied, f"round {number}: the copy of the table differs", within_s=WITHIN_S)
        self._await_numbers(number)
        rows = sum(sum(self._rows(table).values()) for table in TABLES)
        return Round(number, tuple(kinds), load.committed, rows, time.monotonic() - began)

    def _await_numbers(self, number: int) -> None:
        """Each record of the topic is one row, not less and not more."""
        wanted = [(each,) for each in range(self._produced)]
        statement = "SELECT n FROM every ORDER BY n"
        wait_until(
            lambda: len(self.server.query(statement)) >= self._produced, f"round {number}: rows are missing", within_s=WITHIN_S
        )  # fmt: skip
        assert self.server.query(statement) == wanted, f"round {number}: rows are there twice"

    def _produce(self, count: int) -> None:
        producer = Producer({"bootstrap.servers": self._broker.bootstrap_servers, "enable.idempotence": True})
        for n in range(self._produced, self._produced + count):
            producer.produce(NUMBERS, b'{"n":%d}' % n)
        assert producer.flush(WITHIN_S) == 0
        self._produced += count

    def _kill(self, kind: str) -> None:
        match kind:
            case "worker":
                self._worker.kill()
            case "database":
                self.server.kill()
                self.server.start()
            case "broker":
                self._broker.kill()
                self._broker.restart()

    def _rows(self, table: str) -> Counter[str]:
        return Counter(canonical(row) for (row,) in self.server.query(f"SELECT to_jsonb(t) FROM {table} t"))

    def _await_equal(self, table: str, number: int, kinds: list[str]) -> None:
        wanted = self._rows(table)
        found: Counter[str] = Counter()

        def is_equal() -> bool:
            nonlocal found
            try:
                found = folded(records_of(self._client, f"p.public.{table}"))
            except BarnabasError:  # the broker starts
                return False
            return found == wanted

        try:
            wait_until(is_equal, within_s=WITHIN_S)
        except AssertionError as error:
            less, more = list((wanted - found).items())[:3], list((found - wanted).items())[:3]
            raise AssertionError(f"round {number}, {kinds}, {table}: missing {less}, too many {more}; {error}") from error

    def _is_copied(self) -> bool:
        if self.server.query("SELECT to_regclass('copy')") == [(None,)]:
            return False
        columns = "id, balance"
        left, right = f"(SELECT {columns} FROM accounts)", f"(SELECT {columns} FROM copy)"
        both = f"SELECT count(*) FROM (({left} EXCEPT {right}) UNION ALL ({right} EXCEPT {left})) AS d"
        return bool(self.server.query(both) == [(0,)])


def torture(rounds: int, seed: int) -> Iterator[Round]:
    """Raises AssertionError in the round that fails."""
    with tempfile.TemporaryDirectory() as folder, Torture(Path(folder), seed) as it:
        for number in range(1, rounds + 1):
            try:
                yield it.round(number)
            except AssertionError as error:
                raise AssertionError(f"{error}\nthe worker said: {it.log.read_text()[-2000:]}") from error
