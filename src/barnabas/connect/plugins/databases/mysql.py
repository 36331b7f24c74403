"""MySQL and MariaDB, by PyMySQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pymysql
import pymysql.cursors

from barnabas.connect.plugins.databases.address import Address, known_options
from barnabas.connect.plugins.databases.columns import Sort
from barnabas.connect.plugins.databases.database import Database
from barnabas.connect.plugins.databases.literals import value_lists
from barnabas.connect.plugins.databases.table_name import TableName

OPTIONS = {
    "serverSslCert": "ssl_ca",
    "sslCa": "ssl_ca",
    "sslCert": "ssl_cert",
    "sslKey": "ssl_key",
    "connectTimeout": "connect_timeout",
}
MOST_BYTES = 1 << 20  # of the rows of a statement; MariaDB takes 16 MiB, MySQL 4 MiB at least
MOST_KEYS = 1000  # of a statement that deletes; with many more the server reads the whole table
SECURE = ("verify-ca", "verify-full", "VERIFY_CA", "VERIFY_IDENTITY", "trust", "REQUIRED")
KEY_TYPES = {Sort.STRING: "VARCHAR(255)", Sort.BYTES: "VARBINARY(255)", Sort.JSON: "VARCHAR(255)"}  # an index needs a length
TEMPORARY = {1040, 1053, 1080, 1158, 1159, 1160, 1161, 1205, 1213, 1290, 1927, 2002, 2003, 2006, 2013, 2055}
REFUSALS = {1292, 1364, 1366, 1644, 3140, 3819, 4025}  # values that are wrong or missing, and checks, by triggers too


class Mysql(Database):
    """See the module."""

    quote = "`"
    schema = "database()"
    has_case = False
    lost = (pymysql.err.InterfaceError,)
    refusals = (pymysql.err.DataError, pymysql.err.IntegrityError)
    errors = (pymysql.err.MySQLError,)
    types: ClassVar[Mapping[Sort, str]] = {
        Sort.BOOLEAN: "BOOLEAN", Sort.INT8: "TINYINT", Sort.INT16: "SMALLINT", Sort.INT32: "INT", Sort.INT64: "BIGINT",
        Sort.FLOAT32: "FLOAT", Sort.FLOAT64: "DOUBLE", Sort.DECIMAL: "DECIMAL(65,9)", Sort.STRING: "LONGTEXT",
        Sort.BYTES: "LONGBLOB", Sort.DATE: "DATE", Sort.TIME: "TIME(6)", Sort.TIMESTAMP: "DATETIME(6)", Sort.JSON: "JSON",
    }  # fmt: skip

    def _connect(self, address: Address) -> Any:
        options: dict[str, Any] = known_options(address, {**OPTIONS, "sslMode": "sslMode", "useSSL": "useSSL"})
        modes = (options.pop("sslMode", None), options.pop("useSSL", None))
        if modes[0] in SECURE or modes[1] == "true":
            options.setdefault("ssl", {})
        if "connect_timeout" in options:
            options["connect_timeout"] = max(1, int(options["connect_timeout"]) // 1000)
        return pymysql.connect(
            host=address.host, port=address.port, database=address.database or None, user=address.user,
            password=address.password or "", charset="utf8mb4", autocommit=False, init_command="SET SESSION sql_mode = "
            "CONCAT(@@sql_mode, ',STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES'), time_zone = '+00:00'", **options,
        )  # fmt: skip

    def is_lost(self, error: Exception) -> bool:
        """PyMySQL has one class for lost connections and for wrong statements; the number tells them apart."""
        return isinstance(error, self.lost) or (isinstance(error, pymysql.err.OperationalError) and error.args[0] in TEMPORARY)

    def is_refusal(self, error: Exception) -> bool:
        """PyMySQL has the same class for some refusals."""
        return isinstance(error, self.refusals) or (isinstance(error, pymysql.err.OperationalError) and error.args[0] in REFUSALS)

    def isolate(self, level: str) -> None:
        self.run(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")

    def tables(self, kinds: Sequence[str] = ("TABLE",), schema: str | None = None, catalog: str | None = None) -> list[TableName]:
        return super().tables(kinds, schema if catalog is None else catalog)  # its catalogs are the databases

    def streaming_cursor(self) -> Any:
        return self.connection.cursor(pymysql.cursors.SSCursor)

    def decimal(self, kind: Any) -> str:
        return f"DECIMAL({min(kind.precision, 65)},{min(kind.scale, 38)})"

    def type_of(self, kind: pa.DataType, *, is_key: bool) -> str:
        found = super().type_of(kind, is_key=is_key)
        return {self.types[sort]: short for sort, short in KEY_TYPES.items()}.get(found, found) if is_key else found

    def columns(self, table: TableName) -> dict[str, str] | None:
        found = self.run(
            "SELECT column_name, column_type FROM information_schema.columns WHERE table_name = %s "
            "AND table_schema = coalesce(%s, database()) ORDER BY ordinal_position",
            (table.table, table.schema),
        )
        return dict(found) or None

    def incrementing(self, table: TableName) -> str | None:
        found = self.run(
            "SELECT column_name FROM information_schema.columns WHERE table_name = %s "
            "AND table_schema = coalesce(%s, database()) AND extra LIKE '%%auto_increment%%'",
            (table.table, table.schema),
        )
        return found[0][0] if found else None

    def _insert_or(self, table: TableName, rows: pa.Table, conflict: str) -> None:
        begin = f"INSERT INTO {self.table(table)} ({self.names(rows.column_names)}) VALUES ".encode()
        self._run_lists(begin, rows, f" {conflict}".encode(), self.batch_size)

    def delete(self, table: TableName, keys: pa.Table) -> None:
        begin = f"DELETE FROM {self.table(table)} WHERE ({self.names(keys.column_names)}) IN (".encode()
        self._run_lists(begin, keys, b")", min(self.batch_size, MOST_KEYS))

    def _run_lists(self, begin: bytes, rows: pa.Table, end: bytes, most_rows: int) -> None:
        """Run a statement for each part of the rows. PyMySQL's own way builds each value by itself, which takes many times as long."""
        with self.translated(), self.connection.cursor() as cursor:
            try:
                for lists in value_lists(rows, most_rows, MOST_BYTES):
                    cursor.execute(begin + lists + end)
            except ValueError as error:
                raise pymysql.err.DataError(str(error)) from error

    def on_conflict(self, names: Sequence[str], keys: Sequence[str]) -> str:
        others = [each for each in names if each not in keys] or [keys[0]]
        return "ON DUPLICATE KEY UPDATE " + ", ".join(f"{self.name(each)} = VALUES({self.name(each)})" for each in others)
