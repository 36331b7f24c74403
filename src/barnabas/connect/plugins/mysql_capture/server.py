"""Questions to the captured server, by an ordinary connection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pymysql
import pymysql.cursors

from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.debezium.table_columns import Filling
from barnabas.connect.plugins.mysql_capture.defaults import Declared, declared_default, default_of
from barnabas.connect.plugins.mysql_capture.events import Row, Shape
from barnabas.connect.plugins.mysql_capture.forms import form_of
from barnabas.connect.plugins.mysql_capture.logged import LoggedTable
from barnabas.connect.plugins.mysql_capture.settings import Settings

WANTED = {"log_bin": "ON", "binlog_format": "ROW", "binlog_row_image": "FULL", "binlog_row_metadata": "FULL"}
SYSTEM = "('mysql', 'information_schema', 'performance_schema', 'sys')"
SNAPSHOT_STATUS = ("Binlog_snapshot_file", "Binlog_snapshot_position")  # MariaDB's, of a consistent snapshot


@contextmanager
def translated(settings: Settings, what: str) -> Iterator[None]:
    """Errors of the library as ours."""
    try:
        yield
    except (pymysql.err.MySQLError, OSError) as error:
        raise ConnectError(f"{settings.place} {what}: {' '.join(str(error).split())}") from error


class Server:
    """The captured server. Raises ConnectError: it cannot be reached."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.connection = self._connected()
        self._is_mariadb = "mariadb" in str(self.run("SELECT version()")[0][0]).lower()

    def _connected(self) -> Any:
        with translated(self._settings, "cannot be reached"):
            return pymysql.connect(**self._settings.connection, autocommit=True, init_command="SET time_zone = '+00:00'")

    def run(self, statement: str, parameters: Sequence[Any] | None = None) -> Sequence[Any]:
        """The rows of a statement."""
        with translated(self._settings, "refused a statement"), self.connection.cursor() as cursor:
            cursor.execute(statement, parameters)
            return cursor.fetchall() if cursor.description else ()

    def check(self) -> None:
        """Raises ConnectError for a server whose binary log has too little."""
        found = dict(self.run(f"SHOW GLOBAL VARIABLES WHERE variable_name IN ({', '.join(['%s'] * len(WANTED))})", tuple(WANTED)))
        for name, value in WANTED.items():
            if found.get(name) != value:
                raise ConnectError(
                    f"{self._settings.place} has {name}={found.get(name)}: set {name}={value} in its configuration"
                )

    def position(self) -> tuple[str, int]:
        """The end of the binary log."""
        try:
            rows = self.run("SHOW MASTER STATUS")
        except ConnectError:  # MySQL 8.4 has another name for it
            rows = self.run("SHOW BINARY LOG STATUS")
        return rows[0][0], int(rows[0][1])

    def begin_snapshot(self) -> tuple[str, int]:
        """Begin a transaction that sees one state of all tables; the place in the binary log behind it."""
        self.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        if not self.run("SHOW STATUS LIKE 'Binlog_snapshot_file'"):
            self.run("FLUSH TABLES WITH READ LOCK")
            self.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            found = self.position()
            self.run("UNLOCK TABLES")
            return found
        self.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        status = dict(self.run("SHOW STATUS LIKE 'Binlog_snapshot_%%'"))
        return status[SNAPSHOT_STATUS[0]], int(status[SNAPSHOT_STATUS[1]])

    def shapes(self) -> list[Shape]:
        """The captured tables as they are now."""
        rows = self.run(
            f"SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' "
            f"AND table_schema NOT IN {SYSTEM} ORDER BY 1, 2"
        )
        return [self.shape(database, table) for database, table in rows if self._settings.takes(database, table)]

    def shape(self, database: str, table: str) -> Shape:
        """A table as it is now."""
        found = self.table(database, table)
        return shape_of(found, self._settings, self.defaults(found))

    def table(self, database: str, table: str) -> LoggedTable:
        """A table as it is now, in the form of the log; without columns if it is not there."""
        where = "WHERE table_schema = %s AND table_name = %s"
        columns = self.run(
            f"SELECT column_name, column_type, is_nullable FROM information_schema.columns {where} ORDER BY ordinal_position",
            (database, table),
        )
        declared: dict[str, str] = {name: kind for name, kind, _ in columns}
        key = [
            name
            for (name,) in self.run(
                f"SELECT column_name FROM information_schema.key_column_usage {where} AND constraint_name = 'PRIMARY' "
                "ORDER BY ordinal_position",
                (database, table),
            )
        ]
        required = frozenset(name for name, _, nullable in columns if nullable == "NO")
        return LoggedTable(database, table, tuple(declared), tuple(declared.values()), tuple(key), required)

    def defaults(self, table: LoggedTable) -> dict[str, Declared]:
        """The defaults of a table's columns, by name, as they are now: the log does not tell those of then."""
        rows = self.run(
            "SELECT column_name, column_default, extra FROM information_schema.columns "
            "WHERE table_schema = %s AND table_name = %s AND column_default IS NOT NULL",
            (table.database, table.table),
        )
        found = {name: declared_default(text, extra, is_mariadb=self._is_mariadb) for name, text, extra in rows}
        return {name: each for name, each in found.items() if each is not None}

    def unique(self, table: LoggedTable) -> tuple[str, ...]:
        """The columns of a table that are never null and that have a unique index of their own."""
        rows = self.run(
            "SELECT min(column_name) FROM information_schema.statistics WHERE table_schema = %s AND table_name = %s AND non_unique = 0 "
            "GROUP BY index_name HAVING count(*) = 1 AND max(nullable) = '' AND max(sub_part) IS NULL",
            (table.database, table.table),
        )
        return tuple(name for (name,) in rows)

    def revive(self) -> None:
        """Connect again, if the server has ended the connection because it was not used. Raises ConnectError."""
        try:
            self.connection.ping(reconnect=False)
        except (pymysql.err.MySQLError, OSError):
            self.close()
            self.connection = self._connected()

    def rows(self, shape: Shape, count: int) -> Iterator[Sequence[Row]]:
        """All rows of a table, so many at a time."""
        names = ", ".join(quoted(name) for name in shape.names)
        with translated(self._settings, f"does not give the rows of {shape.database}.{shape.table}"):
            cursor = self.connection.cursor(pymysql.cursors.SSCursor)
            try:
                cursor.execute(f"SELECT {names} FROM {quoted(shape.database)}.{quoted(shape.table)}")
                while found := cursor.fetchmany(count):
                    yield found
            finally:
                cursor.close()

    def close(self) -> None:
        """Close the connection."""
        if self.connection.open:
            self.connection.close()


def shape_of(table: LoggedTable, settings: Settings, defaults: Mapping[str, Declared]) -> Shape:
    """The shape of a table.

    Args:
        defaults: of its columns, by name.
    """
    names = table.names
    forms = tuple(form_of(each, settings) for each in table.declared)
    shown = tuple(at for at, name in enumerate(names) if settings.takes_column(f"{table.database}.{table.table}.{name}"))
    fillings = []
    for name, declared, form in zip(names, table.declared, forms, strict=True):
        is_required = name in table.required or name in table.key
        fillings.append(Filling(is_required, default_of(defaults.get(name), declared, form, is_required=is_required)))
    return Shape(
        table.database, table.table, names, forms, tuple(names.index(name) for name in table.key), shown, tuple(fillings)
    )


def quoted(name: str) -> str:
    """A name in a statement."""
    return "`" + name.replace("`", "``") + "`"
