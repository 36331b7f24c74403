"""Random changes of a PostgreSQL database: small and large transactions, values that move out of the row."""

from __future__ import annotations

import random
import threading
from contextlib import suppress

import psycopg

from tests.connect.plugins.servers import PostgresServer
from tests.waiting import wait_until

TABLES = ("accounts", "notes", "events")
SCHEMA = (
    "CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL, at timestamptz DEFAULT now())",
    "CREATE TABLE notes (id int, lang text, body text, n int, PRIMARY KEY (lang, id))",
    "ALTER TABLE notes ALTER body SET STORAGE EXTERNAL",
    "CREATE TABLE events (n int, text text)",
    "ALTER TABLE events REPLICA IDENTITY FULL",
)
KEYS = 30


class Workload:
    """Threads that change the tables until the end of the block."""

    def __init__(self, server: PostgresServer, seed: int, threads: int = 2) -> None:
        self._server, self._ended = server, threading.Event()
        self.committed, self._error = 0, ""
        self._threads = [threading.Thread(target=self._work, args=(random.Random(seed * 100 + at),)) for at in range(threads)]

    def __enter__(self) -> Workload:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for each in self._threads:
            each.join()

    def go_on(self, count: int) -> None:
        """Wait until so many transactions more are committed."""
        wanted = self.committed + count
        try:
            wait_until(lambda: self.committed >= wanted)
        except AssertionError:
            raise AssertionError(
                f"the workload is at {self.committed} of {wanted} transactions; its last error: {self._error}"
            ) from None

    def _work(self, chance: random.Random) -> None:
        while not self._ended.is_set():
            try:
                with self._server.connect() as connection:
                    connection.execute(b"SET deadlock_timeout = '20ms'")
                    connection.commit()
                    while not self._ended.is_set():
                        self._transaction(connection, chance)
                        self.committed += 1
            except psycopg.Error as error:
                self._error = str(error)  # the server is killed

    def _transaction(self, connection: psycopg.Connection[object], chance: random.Random) -> None:
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
                f"UPDATE accounts SET balance = balance + 1 WHERE id % 7 = {key % 7}",
                f"UPDATE accounts SET id = {1000 + number} WHERE id = {key}",
                f"DELETE FROM accounts WHERE id = {key} OR id = {1000 + number}",
                f"INSERT INTO notes VALUES ({key}, '{lang}', repeat('{chance.choice('xyz')}', {chance.choice((3, 9000))}), 0) "
                "ON CONFLICT (lang, id) DO UPDATE SET body = excluded.body",
                f"UPDATE notes SET n = n + 1 WHERE id = {key}",
                f"DELETE FROM notes WHERE id = {key} AND lang = '{lang}'",
                f"INSERT INTO events SELECT {number}, 'é' || g FROM generate_series(1, {chance.choice((1, 3, 500))}) g",
                f"UPDATE events SET text = text || '.' WHERE n = {number}",
                f"DELETE FROM events WHERE n BETWEEN {number} AND {number + 100}",
            )
        )
