"""An open connection to a database, with the statements that connectors need. Each kind of database has a subclass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from barnabas.connect.errors import ConnectError, RetriableError
from barnabas.connect.plugins.databases.address import Address
from barnabas.connect.plugins.databases.columns import Sort, sort_of
from barnabas.connect.plugins.databases.table_name import TableName

if TYPE_CHECKING:
    import pyarrow as pa

Rows = Sequence[tuple[Any, ...]]
SAVEPOINT = "barnabas_rows"


class RowsRefused(ConnectError):
    """A database refuses rows for their values, such as a null where it wants none. Their transaction can go on at a savepoint."""


class RowsUnfit(RowsRefused):
    """Rows do not fit to their table, or have no form of rows. They were not given to the database."""


class Database:
    """See the module. Every statement is part of a transaction, which `commit` or `rollback` ends.

    Attributes:
        types: what columns are declared as.
        mark: of a parameter.
        quote: before and behind a name.
        for_update: the end of a query that locks its rows.
        schema: the function that gives the name of the schema in which tables without one are.
        has_case: whether names of columns that differ by their case alone are different.
        batch_size: how many rows `run_many` passes on at once.
        lost: errors after which the same statements may work later.
        refusals: errors for the values of rows, after which a transaction can go on from a savepoint.
        errors: all errors of the library.
    """

    types: ClassVar[Mapping[Sort, str]]
    mark: ClassVar[str] = "%s"
    quote: ClassVar[str] = '"'
    for_update: ClassVar[str] = " FOR UPDATE"
    schema: ClassVar[str] = "current_schema()"
    has_case: ClassVar[bool] = True
    lost: ClassVar[tuple[type[Exception], ...]] = ()
    refusals: ClassVar[tuple[type[Exception], ...]] = ()
    errors: ClassVar[tuple[type[Exception], ...]] = ()

    def __init__(self, address: Address, *, quotes: bool = True) -> None:
        """Connect.

        Args:
            quotes: whether names are quoted; otherwise the database folds their case.

        Raises:
            ConnectError: it cannot be reached.
        """
        self.address, self._quotes, self.batch_size = address, quotes, 3000
        with self.translated("cannot be reached"):
            self.connection = self._connect(address)

    def _connect(self, address: Address) -> Any:
        raise NotImplementedError

    @contextmanager
    def translated(self, what: str = "refused a statement") -> Iterator[None]:
        """Errors of the library as ours. They have the database's text, which names the table or the column."""
        try:
            yield
        except self.errors as error:
            text = " ".join(str(error).split())
            kind = RetriableError if self.is_lost(error) else RowsRefused if self.is_refusal(error) else ConnectError
            raise kind(f"{self.address} {what}: {text}") from error

    def is_lost(self, error: Exception) -> bool:
        """Whether the same statements may work later."""
        return isinstance(error, self.lost)

    def is_refusal(self, error: Exception) -> bool:
        """Whether the database refuses rows for their values."""
        return isinstance(error, self.refusals)

    # Statements

    def run(self, statement: str, parameters: Sequence[Any] = ()) -> Rows:
        """The rows of a statement; none if it has no result."""
        with self.translated():
            cursor = self.connection.cursor()
            try:
                cursor.execute(statement, tuple(parameters))
                return cursor.fetchall() if cursor.description else []
            finally:
                cursor.close()

    def run_many(self, statement: str, rows: Rows) -> None:
        """Run a statement for each row of parameters."""
        with self.translated():
            cursor = self.connection.cursor()
            try:
                for begin in range(0, len(rows), self.batch_size):
                    cursor.executemany(statement, rows[begin : begin + self.batch_size])
            finally:
                cursor.close()

    def begin(self) -> None:
        """Begin a transaction, where that takes a statement."""

    def commit(self) -> None:
        """End the transaction; its changes stay."""
        with self.translated("did not commit"):
            self.connection.commit()

    def rollback(self) -> None:
        """End the transaction; its changes go."""
        with self.translated("did not roll back"):
            self.connection.rollback()

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Rows that are refused in this block undo the block alone, not the transaction."""
        self.run(f"SAVEPOINT {SAVEPOINT}")
        try:
            yield
        except RowsRefused:
            self.run(f"ROLLBACK TO SAVEPOINT {SAVEPOINT}")
            self.run(f"RELEASE SAVEPOINT {SAVEPOINT}")
            raise
        self.run(f"RELEASE SAVEPOINT {SAVEPOINT}")

    def close(self) -> None:
        """Close the connection."""
        with self.translated("cannot be closed"):
            self.connection.close()

    def streaming_cursor(self) -> Any:
        """A cursor that does not keep the whole result in memory. One that comes from the server needs a transaction."""
        return self.connection.cursor()

    # Names and types

    def name(self, name: str) -> str:
        """A name of a column in a statement."""
        if not self._quotes:
            return name
        return f"{self.quote}{name.replace(self.quote, 2 * self.quote)}{self.quote}"

    def names(self, names: Sequence[str]) -> str:
        """Names of columns in a statement."""
        return ", ".join(map(self.name, names))

    def table(self, table: TableName) -> str:
        """A name of a table in a statement."""
        return ".".join(map(self.name, table.parts))

    def type_of(self, kind: pa.DataType, *, is_key: bool) -> str:
        """What a column of this type is declared as."""
        sort = sort_of(kind)
        if sort is Sort.DECIMAL:
            return self.decimal(kind)
        return self.types[sort]

    def decimal(self, kind: Any) -> str:
        """What a column of decimals is declared as."""
        return self.types[Sort.DECIMAL]

    # Tables

    def columns(self, table: TableName) -> dict[str, str] | None:
        """The columns of a table and their types; None if there is no such table."""
        raise NotImplementedError

    def required(self, table: TableName) -> frozenset[str]:
        """The columns of a table that are declared NOT NULL."""
        found = self.run(
            f"SELECT column_name FROM information_schema.columns WHERE table_name = {self.mark} "
            f"AND table_schema = coalesce({self.mark}, {self.schema}) AND is_nullable = 'NO'",
            (table.table, table.schema),
        )
        return frozenset(name for (name,) in found)

    def tables(self, kinds: Sequence[str] = ("TABLE",), schema: str | None = None, catalog: str | None = None) -> list[TableName]:
        """The tables of the current schema, or of the schemas that fit to a pattern; their names have the schema then.

        Args:
            kinds: TABLE, VIEW, or what else the database calls its kinds of tables.
            schema, catalog: patterns, as LIKE has them.
        """
        wanted = ["BASE TABLE" if each == "TABLE" else each for each in kinds]
        marks = ", ".join([self.mark] * len(wanted))
        conditions, parameters = [f"table_type IN ({marks})"], list[Any](wanted)
        if schema is None:
            conditions.append(f"table_schema = {self.schema}")
        for column, pattern in (("table_schema", schema), ("table_catalog", catalog)):
            if pattern is not None:
                conditions.append(f"{column} LIKE {self.mark}")
                parameters.append(pattern)
        found = self.run(
            f"SELECT table_schema, table_name FROM information_schema.tables WHERE {' AND '.join(conditions)} ORDER BY 1, 2",
            parameters,
        )
        return [TableName((name,) if schema is None else (namespace, name)) for namespace, name in found]

    def incrementing(self, table: TableName) -> str | None:
        """The column of a table whose numbers the database counts up itself; None if there is none."""
        raise NotImplementedError

    def isolate(self, level: str) -> None:
        """Let transactions of this session have an isolation level, such as REPEATABLE READ. Raises ConnectError."""
        raise ConnectError(f"{self.address.kind} has no isolation level {level}: transaction.isolation.mode is DEFAULT")

    def set_zone(self, zone: str) -> None:
        """Let columns with a zone take times without one as those of a zone. By default they are those of UTC."""

    def create(self, table: TableName, schema: pa.Schema, keys: Sequence[str]) -> None:
        """Create a table, unless it is there."""
        lines = [
            f"{self.name(each.name)} {self.type_of(each.type, is_key=each.name in keys)}{' NOT NULL' if each.name in keys else ''}"
            for each in schema
        ]
        if keys:
            lines.append(f"PRIMARY KEY ({self.names(keys)})")
        self.run(f"CREATE TABLE IF NOT EXISTS {self.table(table)} ({', '.join(lines)})")

    def add_columns(self, table: TableName, schema: pa.Schema) -> None:
        """Add columns to a table."""
        for each in schema:
            kind = self.type_of(each.type, is_key=False)
            self.run(f"ALTER TABLE {self.table(table)} ADD COLUMN {self.name(each.name)} {kind}")

    # Rows

    def values(self, rows: pa.Table) -> Rows:
        """Rows as the library takes them. Raises RowsRefused for a time beyond the year 9999, which Python lacks."""
        try:
            return list(zip(*(self.column_values(each) for each in rows.columns), strict=True))
        except OverflowError as error:
            raise RowsRefused(f"{self.address} cannot get a value: {error}") from error

    def column_values(self, column: Any) -> list[Any]:
        """The values of a column as the library takes them."""
        values: list[Any] = column.to_pylist()
        return values

    def insert(self, table: TableName, rows: pa.Table) -> None:
        """Insert rows."""
        self._insert_or(table, rows, "")

    def upsert(self, table: TableName, rows: pa.Table, keys: Sequence[str]) -> None:
        """Insert rows, or update those that have their keys. No two of the rows have one key."""
        self._insert_or(table, rows, self.on_conflict(rows.column_names, keys))

    def insert_absent(self, table: TableName, rows: pa.Table, keys: Sequence[str]) -> None:
        """Insert the rows whose keys are not there."""
        self._insert_or(table, rows, self.on_conflict(keys, keys))

    def _insert_or(self, table: TableName, rows: pa.Table, conflict: str) -> None:
        names = rows.column_names
        marks = ", ".join([self.mark] * len(names))
        self.run_many(f"INSERT INTO {self.table(table)} ({self.names(names)}) VALUES ({marks}) {conflict}", self.values(rows))

    def on_conflict(self, names: Sequence[str], keys: Sequence[str]) -> str:
        """The end of an upsert."""
        sets = ", ".join(f"{self.name(each)} = excluded.{self.name(each)}" for each in names if each not in keys)
        return f"ON CONFLICT ({self.names(keys)}) DO {f'UPDATE SET {sets}' if sets else 'NOTHING'}"

    def update(self, table: TableName, rows: pa.Table, keys: Sequence[str]) -> None:
        """Update the rows that have these keys."""
        others = [each for each in rows.column_names if each not in keys]
        if not others:
            return
        sets = ", ".join(f"{self.name(each)} = {self.mark}" for each in others)
        self.run_many(
            f"UPDATE {self.table(table)} SET {sets} WHERE {self._where(keys)}", self.values(rows.select([*others, *keys]))
        )

    def delete(self, table: TableName, keys: pa.Table) -> None:
        """Delete the rows that have these keys."""
        self.run_many(f"DELETE FROM {self.table(table)} WHERE {self._where(keys.column_names)}", self.values(keys))

    def _where(self, keys: Sequence[str]) -> str:
        return " AND ".join(f"{self.name(each)} = {self.mark}" for each in keys)
