"""The rounds: change a database while connectors, the database and the broker are killed; then tables and topics must be equal."""

from __future__ import annotations

import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from confluent_kafka import Producer

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.results import NewTopic
from barnabas.connect.runtime.source_offsets import records_of
from barnabas.errors import BarnabasError
from barnabas.testing import Broker
from tests.connect.plugins.servers import MariadbServer, PostgresServer
from tests.torture.databases import mariadb_workload
from tests.torture.databases.folding import canonical, folded
from tests.torture.databases.processes import Worker
from tests.torture.databases.workload import SCHEMA, TABLES, Changing, Workload, touch
from tests.waiting import wait_until

KINDS = ("worker", "worker", "worker", "database", "broker")
WITHIN_S = 180.0
MOST_TOLD = 4000  # characters of a log
MOST_TRANSACTIONS = 200  # between two kills
NUMBERS = "numbers"
ENDS = "the_ends"  # a table with a row for each round; its name lets it be the last one in a snapshot
CAPTURED = f"({'|'.join((*TABLES, ENDS))})"
assert max(TABLES) < ENDS
TARGET = {
    "auto.create": "true", "auto.evolve": "true",
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

    server: Any
    prefix: ClassVar[str]  # of the topics of tables
    schema: ClassVar[Sequence[str]]
    begin: ClassVar[str]  # a statement that fills the table without a key

    def __init__(self, folder: Path, seed: int) -> None:
        self._random, self._seed, self._produced = random.Random(seed), seed, 0
        self._stack = ExitStack()
        self._broker = self._stack.enter_context(Broker())
        self.server = self._stack.enter_context(closing(self.opened()))
        for each in (*self.schema, f"CREATE TABLE {ENDS} (id int PRIMARY KEY)", self.begin):
            self.run(each)
        settings = {"bootstrap.servers": self._broker.bootstrap_servers}
        self._client = BlockingClient(ClientConfig.from_options({**settings, "isolation.level": "read_committed"}))
        self._stack.callback(self._client.close)
        self._client.create_topics([NewTopic(NUMBERS, 2), NewTopic(self.accounts, 2)])
        self.log = folder / "worker.log"
        self._worker = Worker(self.connectors(), settings, self.log)

    @property
    def accounts(self) -> str:
        """The topic of flat rows."""
        return f"f{self.prefix[1:]}.accounts"

    def opened(self) -> Any:
        """A server of the database."""
        raise NotImplementedError

    def run(self, statement: str) -> Any:
        """The rows of a statement."""
        raise NotImplementedError

    def workload(self, seed: int) -> Changing:
        """The changes of a round."""
        raise NotImplementedError

    def touch(self) -> None:
        """Change all rows of the table whose columns change."""
        raise NotImplementedError

    def rows_of(self, table: str) -> Counter[str]:
        """The rows of a table, as `folded` has them."""
        raise NotImplementedError

    def is_copied(self) -> bool:
        """Whether the copy of the accounts equals them."""
        raise NotImplementedError

    def connectors(self) -> dict[str, tuple[str, str, dict[str, str]]]:
        """Kind, class and config of each connector."""
        raise NotImplementedError

    def sinks(self, user: str) -> dict[str, tuple[str, str, dict[str, str]]]:
        """The connectors that write into the database."""
        sink = {**TARGET, "connection.user": user, "connection.url": self.server.url}
        copy = {
            "topics": self.accounts,
            "table.name.format": "copy",
            "insert.mode": "upsert",
            "pk.mode": "record_key",
            "delete.enabled": "true",
        }
        return {
            "copy": ("sink", "JdbcSinkConnector", sink | copy),
            "every": ("sink", "JdbcSinkConnector", {**sink, "table.name.format": "every", "topics": NUMBERS}),
        }

    def __enter__(self) -> Self:
        self._worker.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.__exit__()
        self._stack.close()

    def round(self, number: int) -> Round:
        """Raises AssertionError if tables and topics do not become equal."""
        began, kinds = time.monotonic(), []
        with self.workload(self._seed * 1000 + number) as load:
            for _ in range(self._random.randint(1, 3)):
                load.go_on(self._random.randrange(MOST_TRANSACTIONS))
                kinds.append(self._random.choice(KINDS))
                self._kill(kinds[-1])
                self._produce(self._random.randrange(5000))
            load.go_on(self._random.randrange(MOST_TRANSACTIONS // 2))
        self.touch()
        self.run(f"INSERT INTO {ENDS} VALUES ({number})")
        wait_until(lambda: self._is_captured(number), f"round {number}, {kinds}: the capture stands still", within_s=WITHIN_S)
        for table in TABLES:
            self._check_equal(table, f"round {number}, {kinds}, {table}")
        wait_until(self.is_copied, f"round {number}: the copy of the table differs", within_s=WITHIN_S)
        self._await_numbers(number)
        rows = sum(sum(self.rows_of(table).values()) for table in TABLES)
        return Round(number, tuple(kinds), load.committed, rows, time.monotonic() - began)

    def evidence(self) -> str:
        """The last words of the database and the worker, and the present work of the worker."""
        size = self.log.stat().st_size
        with suppress(AssertionError):
            self._worker.tell_stacks()
            wait_until(lambda: self.log.stat().st_size > size, within_s=2.0)
        told = (self.server.folder / "log").read_text(errors="replace")[-MOST_TOLD:]
        return f"the database said: {told}\nthe worker said: {self.log.read_text()[-2 * MOST_TOLD :]}"

    def _await_numbers(self, number: int) -> None:
        """Each record of the topic is one row, not less and not more."""
        wanted = [(each,) for each in range(self._produced)]
        statement = "SELECT n FROM every ORDER BY n"
        wait_until(lambda: len(self.run(statement)) >= self._produced, f"round {number}: rows are missing", within_s=WITHIN_S)
        assert list(self.run(statement)) == wanted, f"round {number}: rows are there twice"

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

    def _is_captured(self, number: int) -> bool:
        """Whether all changes of a round are in the topics."""
        try:
            return len(list(records_of(self._client, f"{self.prefix}.{ENDS}"))) == number
        except BarnabasError:  # the broker starts
            return False

    def _check_equal(self, table: str, where: str) -> None:
        wanted = self.rows_of(table)
        try:
            found = folded(records_of(self._client, f"{self.prefix}.{table}"))
        except AssertionError as error:
            raise AssertionError(f"{where}: {error}") from error
        less, more = list((wanted - found).items())[:3], list((found - wanted).items())[:3]
        assert found == wanted, f"{where}: missing {less}, too many {more}"


class PostgresTorture(Torture):
    """PostgreSQL, by a slot."""

    prefix = "p.public"
    schema = SCHEMA
    begin = "INSERT INTO events SELECT g, 'begin' FROM generate_series(1, 300) g"

    def opened(self) -> PostgresServer:
        return PostgresServer()

    def run(self, statement: str) -> Any:
        return self.server.query(statement)

    def workload(self, seed: int) -> Changing:
        return Workload(self.server, seed)

    def touch(self) -> None:
        touch(self.server)

    def rows_of(self, table: str) -> Counter[str]:
        return rows_of(self.server, table)

    def is_copied(self) -> bool:
        if self.run("SELECT to_regclass('copy')") == [(None,)]:
            return False
        columns = "id, balance"
        left, right = f"(SELECT {columns} FROM accounts)", f"(SELECT {columns} FROM copy)"
        both = f"SELECT count(*) FROM (({left} EXCEPT {right}) UNION ALL ({right} EXCEPT {left})) AS d"
        return bool(self.run(both) == [(0,)])

    def connectors(self) -> dict[str, tuple[str, str, dict[str, str]]]:
        capture = {
            "database.hostname": "127.0.0.1", "database.port": str(self.server.port), "database.user": "postgres",
            "database.dbname": "postgres", "topic.prefix": "p", "table.include.list": f"public[.]{CAPTURED}",
            "skipped.operations": "none", "slot.retry.delay.ms": "200", "slot.max.retries": "100",
            "publication.autocreate.mode": "filtered",
        }  # fmt: skip
        flat = {
            **capture, "barnabas.format": "flat", "topic.prefix": "f", "slot.name": "flat", "publication.name": "flat",
            "table.include.list": "public.accounts",
        }  # fmt: skip
        postgres = "io.debezium.connector.postgresql.PostgresConnector"
        return {"capture": ("source", postgres, capture), "flat": ("source", postgres, flat), **self.sinks("postgres")}


class MariadbTorture(Torture):
    """MariaDB, by its binary log."""

    prefix = "m.shop"
    schema = mariadb_workload.SCHEMA
    begin = f"INSERT INTO events VALUES {', '.join(f'({each}, {chr(39)}begin{chr(39)})' for each in range(300))}"

    def opened(self) -> MariadbServer:
        return MariadbServer()

    def run(self, statement: str) -> Any:
        return self.server.query(statement, "shop")

    def workload(self, seed: int) -> Changing:
        return mariadb_workload.MariadbWorkload(self.server, seed)

    def touch(self) -> None:
        mariadb_workload.touch(self.server)

    def rows_of(self, table: str) -> Counter[str]:
        return mariadb_workload.rows_of(self.server, table)

    def is_copied(self) -> bool:
        if not self.run("SHOW TABLES LIKE 'copy'"):
            return False
        rows = [set(self.run(f"SELECT id, balance FROM {table}")) for table in ("accounts", "copy")]
        return rows[0] == rows[1]

    def connectors(self) -> dict[str, tuple[str, str, dict[str, str]]]:
        capture = {
            "database.hostname": "127.0.0.1", "database.port": str(self.server.port), "database.user": "root",
            "database.server.id": "5400", "topic.prefix": "m", "table.include.list": f"shop[.]{CAPTURED}", "skipped.operations": "none",
        }  # fmt: skip
        flat = {
            **capture, "barnabas.format": "flat", "topic.prefix": "f", "database.server.id": "5401", "table.include.list": "shop.accounts",
        }  # fmt: skip
        mariadb = "io.debezium.connector.mariadb.MariaDbConnector"
        return {"capture": ("source", mariadb, capture), "flat": ("source", mariadb, flat), **self.sinks("root")}


def rows_of(server: PostgresServer, table: str) -> Counter[str]:
    """The rows of a table of PostgreSQL, as `folded` has them."""
    return Counter(canonical(row) for (row,) in server.query(f"SELECT to_jsonb(t) FROM {table} t"))


DATABASES: dict[str, type[Torture]] = {"postgres": PostgresTorture, "mariadb": MariadbTorture}


def torture(rounds: int, seed: int, database: str = "postgres") -> Iterator[Round]:
    """Rounds of one of DATABASES. Raises AssertionError in the round that fails."""
    with tempfile.TemporaryDirectory() as folder, DATABASES[database](Path(folder), seed) as it:
        for number in range(1, rounds + 1):
            try:
                yield it.round(number)
            except AssertionError as error:
                raise AssertionError(f"{error}\n{it.evidence()}") from error
