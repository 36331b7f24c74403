"""PostgreSQL, by psycopg 3. Rows go through COPY."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from barnabas.connect.plugins.databases.address import Address, known_options
from barnabas.connect.plugins.databases.columns import Sort, sort_of
from barnabas.connect.plugins.databases.database import Database
from barnabas.connect.plugins.databases.table_name import TableName

OPTIONS = {
    "sslmode": "sslmode", "sslrootcert": "sslrootcert", "sslcert": "sslcert", "sslkey": "sslkey",
    "sslpassword": "sslpassword", "connectTimeout": "connect_timeout", "loginTimeout": "connect_timeout",
    "ApplicationName": "application_name", "options": "options",
    "targetServerType": "target_session_attrs", "channelBinding": "channel_binding",
}  # fmt: skip
STAGE = "barnabas_rows"  # the temporary table of a batch
TEXT_ARRAY = "ARRAY"


class Postgres(Database):
    """See the module."""

    lost = (psycopg.OperationalError, psycopg.InterfaceError)
    refusals = (psycopg.DataError, psycopg.IntegrityError, psycopg.errors.RaiseException)
    errors = (psycopg.Error,)
    types: ClassVar[Mapping[Sort, str]] = {
        Sort.BOOLEAN: "BOOLEAN", Sort.INT8: "SMALLINT", Sort.INT16: "SMALLINT", Sort.INT32: "INT", Sort.INT64: "BIGINT",
        Sort.FLOAT32: "REAL", Sort.FLOAT64: "DOUBLE PRECISION", Sort.DECIMAL: "DECIMAL", Sort.STRING: "TEXT", Sort.BYTES: "BYTEA",
        Sort.DATE: "DATE", Sort.TIME: "TIME", Sort.TIMESTAMP: "TIMESTAMP", Sort.JSON: "JSONB",
    }  # fmt: skip

    def _connect(self, address: Address) -> Any:
        options: dict[str, Any] = {**known_options(address, {**OPTIONS, "currentSchema": "currentSchema"})}
        schema = options.pop("currentSchema", None)
        connection = psycopg.connect(
            host=address.host, port=address.port, dbname=address.database or None, user=address.user, password=address.password,
            **{"application_name": "barnabas", **options},
        )  # fmt: skip
        if schema is not None:
            connection.execute("SELECT set_config('search_path', %s, false)", (schema,))
            connection.commit()
        return connection

    def isolate(self, level: str) -> None:
        self.run(f"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level}")
        self.commit()

    def set_zone(self, zone: str) -> None:
        self.run("SELECT set_config('TimeZone', %s, false)", (zone,))
        self.commit()

    def streaming_cursor(self) -> Any:
        return self.connection.cursor(name="barnabas")

    def decimal(self, kind: Any) -> str:
        return f"DECIMAL({kind.precision},{kind.scale})" if kind.precision < 38 else self.types[Sort.DECIMAL]

    def columns(self, table: TableName) -> dict[str, str] | None:
        found = self.run(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            (self.table(table),),
        )
        return dict(found) or None

    def required(self, table: TableName) -> frozenset[str]:
        found = self.run(
            "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND attnotnull AND NOT attisdropped",
            (self.table(table),),
        )
        return frozenset(name for (name,) in found)

    def incrementing(self, table: TableName) -> str | None:
        found = self.run(
            "SELECT attname FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum "
            "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped "
            "AND (attidentity <> '' OR pg_get_expr(adbin, adrelid) LIKE 'nextval(%%') ORDER BY attnum",
            (self.table(table),),
        )
        return found[0][0] if found else None

    def insert(self, table: TableName, rows: pa.Table) -> None:
        self._copy(self.table(table), rows)

    def upsert(self, table: TableName, rows: pa.Table, keys: Sequence[str]) -> None:
        names = rows.column_names
        self._stage(table, rows)
        self.run(
            f"INSERT INTO {self.table(table)} ({self.names(names)}) SELECT {self.names(names)} FROM {STAGE} "
            f"{self.on_conflict(names, keys)}"
        )

    def update(self, table: TableName, rows: pa.Table, keys: Sequence[str]) -> None:
        others = [each for each in rows.column_names if each not in keys]
        if not others:
            return
        self._stage(table, rows)
        sets = ", ".join(f"{self.name(each)} = {STAGE}.{self.name(each)}" for each in others)
        self.run(f"UPDATE {self.table(table)} AS old SET {sets} FROM {STAGE} WHERE {self._same(keys)}")

    def delete(self, table: TableName, keys: pa.Table) -> None:
        self._stage(table, keys)
        self.run(f"DELETE FROM {self.table(table)} AS old USING {STAGE} WHERE {self._same(keys.column_names)}")

    def _same(self, keys: Sequence[str]) -> str:
        return " AND ".join(f"old.{self.name(each)} = {STAGE}.{self.name(each)}" for each in keys)

    def _stage(self, table: TableName, rows: pa.Table) -> None:
        """The rows in a temporary table with the types of the table's columns."""
        names = self.names(rows.column_names)
        self.run(f"DROP TABLE IF EXISTS pg_temp.{STAGE}")
        self.run(f"CREATE TEMPORARY TABLE {STAGE} ON COMMIT DROP AS SELECT {names} FROM {self.table(table)} WHERE false")
        self._copy(STAGE, rows)

    def _copy(self, table: str, rows: pa.Table) -> None:
        data = io.BytesIO()
        csv.write_csv(
            pa.table([_for_csv(each) for each in rows.columns], names=rows.column_names),
            data,
            csv.WriteOptions(include_header=False),
        )
        with self.translated(), self.connection.cursor() as cursor:
            statement = f"COPY {table} ({self.names(rows.column_names)}) FROM STDIN (FORMAT csv)"
            with cursor.copy(statement) as copy:
                copy.write(data.getbuffer())


def _for_csv(column: Any) -> Any:
    """The column in a type that the writer of CSV writes as Postgres reads it: a null is nothing, and an empty text has quotes."""
    match sort_of(column.type):
        case Sort.BYTES:
            return pa.array([None if each is None else f"\\x{each.hex()}" for each in column.to_pylist()], pa.string())
        case Sort.BOOLEAN | Sort.DECIMAL | Sort.TIME:
            return pc.cast(column, pa.string())
    return column
