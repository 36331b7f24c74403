"""The names that completion offers: tables, their columns, settings. Asked in a session of their own, and kept.

A failure of a question gives no names: completion must not disturb typing.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.sql.interface import Session

HIDDEN = ("_key", "_partition", "_offset", "_timestamp", "_timestamp_type", "_headers")
MOST_NAMES = 10_000  # tables that are offered
MOST_TABLES = 1_000  # tables whose columns are kept


class TableNames:
    """Asked from the thread of completion; `forget` from any.

    Args:
        open_session: called with the first question.
    """

    def __init__(self, open_session: Callable[[], Session]) -> None:
        self._open_session = open_session
        self._session: Session | None = None
        self._lock = threading.Lock()
        self._tables: Sequence[str] | None = None
        self._settings: Sequence[str] | None = None
        self._columns: dict[str, Sequence[str]] = {}
        self._closed = False

    def tables(self) -> Sequence[str]:
        """The names of all tables."""
        with self._lock:
            if self._tables is None:
                self._tables = self._first_column("SHOW TABLES")[:MOST_NAMES]
            return self._tables

    def settings(self) -> Sequence[str]:
        """The names of all settings."""
        with self._lock:
            if self._settings is None:
                self._settings = self._first_column("SHOW ALL")
            return self._settings

    def columns(self, table: str) -> Sequence[str]:
        """The columns of a table, named as in a statement; nothing for an unknown one."""
        with self._lock:
            if table not in self._columns:
                if len(self._columns) >= MOST_TABLES:
                    self._columns.clear()
                found = self._columns_of(table)
                self._columns[table] = [*found, *HIDDEN] if found else ()
            return self._columns[table]

    def forget(self) -> None:
        """The tables may have changed."""
        with self._lock:
            self._tables = None
            self._columns.clear()

    def close(self) -> None:
        """End the session."""
        with self._lock:
            self._closed = True
            if self._session is not None:
                self._session.close()
                self._session = None

    def _open(self) -> Session | None:
        if self._session is None and not self._closed:
            self._session = self._open_session()
        return self._session

    def _first_column(self, statement: str) -> list[str]:
        found: list[str] = []
        with contextlib.suppress(Exception):
            session = self._open()
            if session is not None:
                result = session.execute(session.prepare(statement))
                for batch in result.batches():
                    found += [str(each) for each in batch.column(0).to_pylist()]
        return found

    def _columns_of(self, table: str) -> list[str]:
        with contextlib.suppress(Exception):
            session = self._open()
            if session is not None:
                schema = session.prepare(f"SELECT * FROM {table} LIMIT 0").schema
                return list(schema.names) if schema is not None else []
        return []
