"""Random changes of a MariaDB database, as `workload.py` has them for PostgreSQL."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import pymysql

from tests.connect.plugins.servers import MariadbServer
from tests.torture.databases.folding import canonical
from tests.torture.databases.workload import KEYS, LARGE, LONG, MOST_COLUMNS, OWN, Changing

SCHEMA = (
    "CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL, at datetime DEFAULT now())",
    "CREATE TABLE notes (id int, lang varchar(5), body longtext, n int, PRIMARY KEY (lang, id))",
    "CREATE TABLE events (n int, text text, KEY (n))",
    "CREATE TABLE scraps (n int, text text)",
    "CREATE TABLE done (id int PRIMARY KEY)",
    "CREATE TABLE shapes (id int PRIMARY KEY, touched int NOT NULL DEFAULT 0, v0 int)",
)
MISSES = (
    1213,
    1205,
    1062,
    1054,
)  # a deadlock, a lock that others hold, a key that is there, a column that has another name since
SESSION = ("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "SET SESSION innodb_lock_wait_timeout = 1")


def touch(server: MariadbServer) -> None:
    """Change all rows of the table whose columns change, so that the records have them as they are now."""
    server.query("UPDATE shop.shapes SET touched = touched + 1")


def rows_of(server: MariadbServer, table: str) -> Counter[str]:
    """The rows of a table, as `folded` has them."""
    connection = server.connect()
    try:
        with connection.cursor(pymysql.cursors.DictCursor) as cursor:
            cursor.execute(f"SELECT * FROM {table}")
            return Counter(canonical(row) for row in cursor.fetchall())
    finally:
        connection.close()


class MariadbWorkload(Changing):
    """See the module. The threads are those of the workload of PostgreSQL."""

    def __init__(self, server: MariadbServer, seed: int, threads: int = 2) -> None:
        self._server, self._key = server, "id"  # the name of the key of the table whose columns change
        super().__init__(seed, [self._transaction] * threads + [self._long, self._reshape])

    def _session(self, transaction: Callable[[Any, random.Random], None], chance: random.Random) -> None:
        try:
            with closing(self._server.connect()) as connection:
                run(connection, *SESSION)
                while not self.ended.is_set():
                    transaction(connection, chance)
                    self.committed += 1
        except pymysql.err.Error as error:
            self.error = str(error)  # the server is killed

    def _long(self, connection: Any, chance: random.Random) -> None:
        """A transaction that others overtake, with savepoints. Its rows are no rows of the others."""
        key = OWN + chance.randrange(KEYS)
        run(connection, "BEGIN", f"INSERT INTO accounts (id, balance) VALUES ({key}, 0) ON DUPLICATE KEY UPDATE balance = 0")
        for number in range(3):
            run(connection, f"SAVEPOINT s{number}", f"UPDATE accounts SET balance = balance + 1 WHERE id = {key}")
            run(connection, "INSERT INTO events VALUES " + ", ".join(f"(2000, '{number} {each}')" for each in range(50)))
            if chance.random() < 0.5:
                run(connection, f"ROLLBACK TO SAVEPOINT s{number}")
            self.wait_for(self.committed + LONG // 3)
        run(connection, "ROLLBACK" if chance.random() < 0.3 else "COMMIT")

    def _reshape(self, connection: Any, chance: random.Random) -> None:
        """Change a table whose rows others change."""
        names = names_of(connection)
        self._key = names[0]
        run(connection, "ALTER TABLE shapes " + chance.choice(changes_of_shape(names, chance)))
        self._key = names_of(connection)[0]
        self.wait_for(self.committed + LONG)

    def _transaction(self, connection: Any, chance: random.Random) -> None:
        try:
            run(connection, "BEGIN")
            for _ in range(chance.choice((1, 1, 2, 5, 40))):
                run(connection, self._statement(chance))
            run(connection, "ROLLBACK" if chance.random() < 0.1 else "COMMIT")
        except pymysql.err.MySQLError as error:
            if error.args[0] not in MISSES:
                raise
            run(connection, "ROLLBACK")

    def _statement(self, chance: random.Random) -> str:
        key, number = chance.randrange(KEYS), chance.randrange(1000)
        lang = chance.choice(("de", "en"))
        some = ", ".join(f"({number}, 'é{each}')" for each in range(chance.choice((1, 3, 100))))
        return chance.choice(
            (
                f"INSERT INTO accounts (id, balance) VALUES ({key}, {number}) ON DUPLICATE KEY UPDATE balance = VALUES(balance)",
                f"UPDATE accounts SET balance = balance + 1 WHERE id % 7 = {key % 7} AND id < {OWN}",
                f"UPDATE accounts SET id = {1000 + number} WHERE id = {key}",
                f"DELETE FROM accounts WHERE id = {key} OR id = {1000 + number}",
                f"INSERT INTO notes VALUES ({key}, '{lang}', repeat('{chance.choice('xyz')}', {chance.choice((3, 9000))}), 0) "
                "ON DUPLICATE KEY UPDATE body = VALUES(body)",
                f"UPDATE notes SET n = n + 1 WHERE id = {key}",
                f"DELETE FROM notes WHERE id = {key} AND lang = '{lang}'",
                f"INSERT INTO events VALUES {some}",
                f"UPDATE events SET text = concat(text, '.') WHERE n = {number}",
                f"DELETE FROM events WHERE n BETWEEN {number} AND {number + 100}",
                f"INSERT INTO notes VALUES ({key}, '{lang}', repeat('z', {LARGE if number < 20 else 2500}), 1) "
                "ON DUPLICATE KEY UPDATE n = 1",
                f"INSERT IGNORE INTO shapes ({self._key}) VALUES ({key})",
                f"DELETE FROM shapes LIMIT {number % 3}",
                "TRUNCATE scraps" if number < 10 else f"INSERT INTO scraps VALUES ({number}, NULL), (NULL, '\\\\x00')",
            )
        )


def run(connection: Any, *statements: str) -> None:
    """Run statements."""
    with connection.cursor() as cursor:
        for each in statements:
            cursor.execute(each)


def names_of(connection: Any) -> list[str]:
    """The columns of the table whose columns change, but for one; the key first."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW COLUMNS FROM shapes")
        return [name for name, *_ in cursor.fetchall() if name != "touched"]


def changes_of_shape(names: Sequence[str], chance: random.Random) -> list[str]:
    """Changes of a table, as parts of ALTER TABLE.

    Args:
        names: of its columns, the key first.
    """
    key, *others = names
    made = f"v{chance.randrange(10**6)}"
    kind, value = chance.choice((("int", "7"), ("bigint", "5000000000"), ("varchar(9)", "'ä'"), ("smallint", "1")))
    changes = [f"RENAME COLUMN {key} TO {made}"]
    if len(others) < MOST_COLUMNS:
        changes.append(f"ADD COLUMN {made} {kind} DEFAULT {value}")
    if others:
        one = chance.choice(others)
        changes += [f"DROP COLUMN {one}", f"RENAME COLUMN {one} TO {made}", f"MODIFY {one} varchar(30)"]
    return changes
