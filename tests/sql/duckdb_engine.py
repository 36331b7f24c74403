"""An engine over DuckDB alone, for tests of the ways to reach an engine."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from barnabas.sql.interface import Caller, Prepared, Result, Session, SqlError


class DuckResult:
    def __init__(self, reader: pa.RecordBatchReader | None, tag: str) -> None:
        self._reader, self.tag = reader, tag

    @property
    def schema(self) -> pa.Schema | None:
        return None if self._reader is None else self._reader.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        if self._reader is None:
            return
        while True:
            try:
                yield self._reader.read_next_batch()
            except StopIteration:
                return
            except Exception as error:
                raise sql_error(error) from error

    def close(self) -> None:
        self._reader = None


class DuckPrepared:
    copy = None
    schema = None
    parameters: Sequence[pa.DataType] = ()

    def __init__(self, text: str) -> None:
        self.text = text


class DuckSession:
    state = "I"

    def __init__(self, engine: DuckEngine, caller: Caller) -> None:
        self._engine, self.caller = engine, caller
        self.is_fresh = engine.is_fresh
        self._connection = duckdb.connect()
        self.closed = threading.Event()

    def statements(self, text: str) -> list[str]:
        try:
            return [each.query.strip().rstrip(";") for each in duckdb.extract_statements(text)]
        except duckdb.Error as error:
            raise sql_error(error) from error

    def prepare(self, text: str, parameters: Sequence[pa.DataType | None] = ()) -> Prepared:
        return DuckPrepared(text)

    def execute(self, prepared: Prepared, values: Sequence[Any] = ()) -> Result:
        try:
            found = self._connection.sql(prepared.text, params=list(values) or None)
            has_rows = found is not None and found.columns != ["Count"]
            return DuckResult(found.to_arrow_reader(1_000), "SELECT") if has_rows else DuckResult(None, "CREATE TABLE")
        except duckdb.Error as error:
            raise sql_error(error) from error

    def copy_in(self, prepared: Prepared, data: Iterator[bytes]) -> Result:
        raise SqlError("0A000", "no COPY here")

    def copy_out(self, prepared: Prepared) -> Iterator[bytes]:
        raise SqlError("0A000", "no COPY here")

    def parameter(self, name: str) -> str | None:
        return None

    def cancel(self) -> None:
        self._connection.interrupt()

    def close(self) -> None:
        self._connection.close()
        self.closed.set()


class DuckEngine:
    """Remembers its sessions.

    Args:
        is_fresh: what sessions say about themselves, whatever they did.
    """

    def __init__(self, *, is_fresh: bool = False) -> None:
        self.is_fresh = is_fresh
        self.sessions: list[DuckSession] = []

    def session(self, caller: Caller) -> Session:
        made = DuckSession(self, caller)
        self.sessions.append(made)
        return made

    def close(self) -> None:
        for each in self.sessions:
            each.close()


def sql_error(error: Exception) -> SqlError:
    states = {duckdb.ParserException: "42601", duckdb.CatalogException: "42P01", duckdb.InterruptException: "57014"}
    state = next((state for kind, state in states.items() if isinstance(error, kind)), "22000")
    return SqlError(state, str(error))
