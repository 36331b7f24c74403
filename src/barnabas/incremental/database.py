"""The DuckDB instance of a flow: the state is the attached database `state`, and everything else lies in memory.

So the functions that a flow needs are defined anew at each start, and the file has tables alone.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from barnabas.functions.definition import Function
from barnabas.functions.duck import IN_PYTHON, Known
from barnabas.functions.processes import WORKERS
from barnabas.incremental import natives
from barnabas.incremental.interface import FlowError, Size


class Database:
    """One instance with one connection for the steps.

    Args:
        path: of the state's file; None: in memory.
        memory_bytes: for all; DuckDB writes to the disk what does not fit.
        setup: statements that run once, such as macros.
        functions: of users.

    Raises:
        FlowError: the file cannot be opened, or a statement of `setup` fails.
    """

    def __init__(
        self, path: Path | None, memory_bytes: int, threads: int, setup: Sequence[str], functions: Sequence[Function] = ()
    ) -> None:
        self._path, self._is_ours, self._threads = path, path is None, threads
        self._runs_functions = bool(functions)
        if functions:
            WORKERS.join()
        if path is None:
            self._spill = Path(tempfile.mkdtemp(prefix="barnabas-flow-"))
        else:
            self._spill = path.with_name(path.name + ".spill")
        config: dict[str, Any] = {
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
            "python_enable_replacements": "false",
            "preserve_insertion_order": "false",
            "memory_limit": f"{memory_bytes}B",
            "threads": str(threads),
            "temp_directory": str(self._spill),
        }
        try:
            with failing():
                self._connection: Any = duckdb.connect(":memory:", config=config)
                self._start(":memory:" if path is None else str(path), setup)
                Known(self._connection).learn(functions)
        except BaseException:
            self.close()
            raise

    def _start(self, name: str, setup: Sequence[str]) -> None:
        self._connection.execute("ATTACH '" + name.replace("'", "''") + "' AS state")
        self._is_ours = True
        shutil.rmtree(self._spill, ignore_errors=True)  # what a process that was killed has left
        self._connection.execute("SET GLOBAL TimeZone = 'UTC'")  # DuckDB's default is the zone of the machine
        natives.register(self._connection)
        for statement in setup:
            self._connection.execute(statement)
        # a step of 500,000 rows takes a third less processor time, and the file twice the bytes
        self._connection.execute("SET force_compression = 'uncompressed'")
        self._connection.execute("SET enable_external_access = false")

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        with failing():
            self._connection.execute(sql, list(parameters)).fetchall()

    @contextmanager
    def one_thread(self) -> Iterator[None]:
        """Run queries whose result depends on the order of the rows."""
        self.run("SET threads = 1")
        try:
            yield
        finally:
            self.run(f"SET threads = {self._threads}")

    def one(self, sql: str) -> tuple[Any, ...]:
        """The first row."""
        with failing():
            found: tuple[Any, ...] = self._connection.execute(sql).fetchall()[0]
            return found

    def table(self, sql: str) -> pa.Table:
        with failing():
            found: pa.Table = self._connection.sql(sql).to_arrow_table()
            return found

    def kinds(self, sql: str) -> list[str]:
        """The types of the columns of a query, in DuckDB's words."""
        with failing():
            return [row[1] for row in self._connection.execute(f"DESCRIBE {sql}").fetchall()]

    def give(self, name: str, rows: pa.Table) -> None:
        """Let statements read rows as a relation."""
        with failing():
            self._connection.register(name, rows)

    def take_back(self, name: str) -> None:
        """End `give`. In a transaction that failed the name stays, until it is given other rows."""
        with contextlib.suppress(duckdb.TransactionException):
            self._connection.unregister(name)

    def committed(self) -> Any:
        """A further connection; it sees what was committed. The caller closes it."""
        return self._connection.cursor()

    def has(self, table: str) -> bool:
        """Whether the state has a table."""
        name = table.partition(".")[2]
        return bool(self.one(f"SELECT count(*) FROM duckdb_tables() WHERE database_name = 'state' AND table_name = '{name}'")[0])

    def size(self) -> Size:
        """Rows of all tables of the state; bytes of the file with its log, or of memory."""
        cursor = self._connection.cursor()
        try:
            with failing():
                tables = cursor.execute("SELECT table_name FROM duckdb_tables() WHERE database_name = 'state'").fetchall()
                counts = " UNION ALL ".join(f"SELECT count(*) AS n FROM state.{name}" for (name,) in tables)
                ((rows,),) = cursor.execute(f"SELECT sum(n) FROM ({counts})").fetchall()
                ((memory,),) = cursor.execute("SELECT sum(memory_usage_bytes) FROM duckdb_memory()").fetchall()
        finally:
            cursor.close()
        return Size(int(rows), int(memory) + self._file_bytes())

    def _file_bytes(self) -> int:
        if self._path is None:
            return 0
        files = [self._path, self._path.with_name(self._path.name + ".wal")]
        return sum(each.stat().st_size for each in files if each.exists())

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Statements that all succeed, or none."""
        self.run("BEGIN")
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            self.undo()
            raise

    def undo(self) -> None:
        """Undo the open transaction, if there is one."""
        with contextlib.suppress(duckdb.TransactionException):
            self._connection.execute("ROLLBACK")

    def close(self) -> None:
        """Also removes what was written for want of memory."""
        if hasattr(self, "_connection"):
            self._connection.close()
        if self._runs_functions:
            self._runs_functions = False
            WORKERS.leave()
        if self._is_ours:
            shutil.rmtree(self._spill, ignore_errors=True)


@contextmanager
def failing() -> Iterator[None]:
    """DuckDB's errors as a `FlowError` of one line."""
    try:
        yield
    except duckdb.Error as error:
        lines = _OF_FUNCTION.sub("", str(error)).splitlines()
        raise FlowError(lines[0] if lines else type(error).__name__) from error


_OF_FUNCTION = re.compile(rf"\A[\w ]+ Error: {IN_PYTHON}")  # before our own words
