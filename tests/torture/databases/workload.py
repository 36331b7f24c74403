"""Random changes of a PostgreSQL database: small, large and long transactions, values that move out of the row, tables that change."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Self

import psycopg

from tests.connect.plugins.servers import PostgresServer
from tests.waiting import wait_until

TABLES = ("accounts", "notes", "events", "shapes", "scraps")
SCHEMA = (
    "CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL, at timestamptz DEFAULT now())",
    "CREATE TABLE notes (id int, lang text, body text, n int, PRIMARY KEY (lang, id))",
    "ALTER TABLE notes ALTER body SET STORAGE EXTERNAL",
    "CREATE TABLE events (n int, text text)",
    "ALTER TABLE events REPLICA IDENTITY FULL",
    "CREATE TABLE scraps (n int, text text)",
    "CREATE TABLE done (id int PRIMARY KEY)",
    "CREATE TABLE shapes (id int PRIMARY KEY, v0 int)",
)
Connection = psycopg.Connection[Any]
COLUMNS = (
    "SELECT attname FROM pg_attribute WHERE attrelid = 'shapes'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
)
KEYS = 30
MOST_COLUMNS = 6
OWN = 5000  # from here on, keys belong to long transactions: others would wait for them
LARGE = 200_000  # bytes of a value
LONG = 30  # transactions of others that a long one waits for


def touch(server: PostgresServer) -> None:
    """Change all rows of the table whose columns change, so that the records have them as they are now."""
    [(name,), *_] = server.query(COLUMNS)
    server.query(f"UPDATE shapes SET {name} = {name}")


class Changing:
    """Threads that change a database until the end of the block.

    Args:
        seed: of the chance of each.
        work: what each of them does again and again, with a connection of its own.
    """

    def __init__(self, seed: int, work: Sequence[Callable[[Any, random.Random], None]]) -> None:
        self.ended, self.committed, self.error = threading.Event(), 0, ""
        self._threads = [
            threading.Thread(target=self._work, args=(each, random.Random(seed * 100 + at))) for at, each in enumerate(work)
        ]

    def __enter__(self) -> Self:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        for each in self._threads:
            each.join()

    def go_on(self, count: int) -> None:
        """Wait until so many transactions more are committed."""
        wanted = self.committed + count
        try:
            wait_until(lambda: self.committed >= wanted)
        except AssertionError:
            raise AssertionError(
                f"the workload is at {self.committed} of {wanted} transactions; its last error: {self.error}"
            ) from None

    def wait_for(self, count: int) -> None:
        """Wait until others have committed so many transactions, or until the end."""
        wait_until(lambda: self.committed >= count or self.ended.is_set(), "the others stand still")

    def _work(self, transaction: Callable[[Any, random.Random], None], chance: random.Random) -> None:
        while not self.ended.is_set():
            self._session(transaction, chance)

    def _session(self, transaction: Callable[[Any, random.Random], None], chance: random.Random) -> None:
        """Work with one connection until it is lost."""
        raise NotImplementedError


class Workload(Changing):
    """The threads of PostgreSQL.

    Args:
        threads: with small transactions; one with long ones and one with changes of a table are beside them.
        renames_key: whether the key of that table gets other names.
    """

    def __init__(self, server: PostgresServer, seed: int, threads: int = 2, *, renames_key: bool = True) -> None:
        self._server, self._renames_key = server, renames_key
        super().__init__(seed, [self._transaction] * threads + [self._long, self._reshape])

    def _session(self, transaction: Callable[[Any, random.Random], None], chance: random.Random) -> None:
        try:
            with self._server.connect() as connection:
                while not self.ended.is_set():
                    transaction(connection, chance)
                    self.committed += 1
        except (psycopg.Error, psycopg.Rollback) as error:
            self.error = str(error)  # the server is killed

    def _long(self, connection: Connection, chance: random.Random) -> None:
        """A transaction that others overtake, with savepoints. Its rows are no rows of the others."""
        key = OWN + chance.randrange(KEYS)
        with connection.transaction():
            connection.execute(f"INSERT INTO accounts VALUES ({key}, 0) ON CONFLICT (id) DO UPDATE SET balance = 0".encode())
            for number in range(3):
                with connection.transaction():
                    connection.execute(f"UPDATE accounts SET balance = balance + 1 WHERE id = {key}".encode())
                    connection.execute(f"INSERT INTO events SELECT 2000, '{number} ' || g FROM generate_series(1, 50) g".encode())
                    if chance.random() < 0.5:
                        raise psycopg.Rollback
                self.wait_for(self.committed + LONG // 3)
            if chance.random() < 0.3:
                raise psycopg.Rollback

    def _reshape(self, connection: Connection, chance: random.Random) -> None:
        """Change a table whose rows others change."""
        with connection.transaction():
            connection.execute("LOCK TABLE shapes")
            names = [name for (name,) in connection.execute(COLUMNS.encode())]
            change = change_of_shape(names, chance, renames_key=self._renames_key)
            connection.execute(f"ALTER TABLE shapes {change}".encode())
        self.wait_for(self.committed + LONG)

    def _transaction(self, connection: Connection, chance: random.Random) -> None:
        with suppress(psycopg.errors.DeadlockDetected, psycopg.errors.UniqueViolation), connection.transaction():
            for _ in range(chance.choice((1, 1, 2, 5, 40))):
                connection.execute(self._statement(chance).encode())
            if chance.random() < 0.1:
                raise psycopg.Rollback

    @staticmethod
    def _statement(chance: random.Random) -> str:
        key, number = chance.randrange(KEYS), chance.randrange(1000)
        lang = chance.choice(("de", "en"))
        return chance.choice(
            (
                f"INSERT INTO accounts VALUES ({key}, {number}) ON CONFLICT (id) DO UPDATE SET balance = excluded.balance",
                f"UPDATE accounts SET balance = balance + 1 WHERE id % 7 = {key % 7} AND id < {OWN}",
                f"UPDATE accounts SET id = {1000 + number} WHERE id = {key}",
                f"DELETE FROM accounts WHERE id = {key} OR id = {1000 + number}",
                f"INSERT INTO notes VALUES ({key}, '{lang}', repeat('{chance.choice('xyz')}', {chance.choice((3, 9000))}), 0) "
                "ON CONFLICT (lang, id) DO UPDATE SET body = excluded.body",
                f"UPDATE notes SET n = n + 1 WHERE id = {key}",
                f"DELETE FROM notes WHERE id = {key} AND lang = '{lang}'",
                f"INSERT INTO events SELECT {number}, 'é' || g FROM generate_series(1, {chance.choice((1, 3, 100))}) g",
                f"UPDATE events SET text = text || '.' WHERE n = {number}",
                f"DELETE FROM events WHERE n BETWEEN {number} AND {number + 100}",
                f"INSERT INTO notes VALUES ({key}, '{lang}', "
                f"repeat('z', {LARGE if number < 20 else 2500}), 1) ON CONFLICT (lang, id) DO UPDATE SET n = 1",
                f"INSERT INTO shapes VALUES ({key}) ON CONFLICT DO NOTHING",
                f"DELETE FROM shapes WHERE ctid IN (SELECT ctid FROM shapes LIMIT {number % 3})",
                "TRUNCATE scraps" if number < 10 else f"INSERT INTO scraps VALUES ({number}, NULL), (NULL, '\\\\x00')",
            )
        )


def change_of_shape(names: Sequence[str], chance: random.Random, *, renames_key: bool) -> str:
    """A change of a table, as a part of ALTER TABLE.

    Args:
        names: of its columns, the key first.
    """
    key, *others = names
    made = f"v{chance.randrange(10**6)}"
    kind, value = chance.choice((("int", "7"), ("bigint", "5000000000"), ("text", "'ä'"), ("boolean", "true")))
    changes = [f"ADD COLUMN {made} {kind} DEFAULT {value}"] if len(others) < MOST_COLUMNS else []
    if others:
        one = chance.choice(others)
        changes += [f"DROP COLUMN {one}", f"RENAME COLUMN {one} TO {made}", f"ALTER COLUMN {one} TYPE text USING {one}::text"]
    if renames_key:
        changes.append(f"RENAME COLUMN {key} TO {made}")
    return chance.choice(changes)
