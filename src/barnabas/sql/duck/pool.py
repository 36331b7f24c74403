"""DuckDB's instances.

An instance runs one query at a time. So its memory limit is the limit of a query, and a query that reaches it takes nothing from the
others. A session borrows an instance for a statement and gets a cursor of it; what the statement registers is gone with the cursor.
Sessions themselves hold nothing in DuckDB. An instance takes some 25 ms to make; idle ones are kept.

One instance more, without a limit on its users, checks statements against empty tables. It never reads a row.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from barnabas.functions.definition import Function
from barnabas.functions.duck import Known
from barnabas.functions.processes import WORKERS
from barnabas.incremental import natives
from barnabas.incremental.macros import MACROS
from barnabas.sql.duck.calls import Calls
from barnabas.sql.interface import SqlError
from barnabas.sql.states import CANCELLED, TOO_MANY

UTC = "UTC"


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """The limits of queries.

    Args:
        memory_bytes: of one query.
        spill_bytes: that one query may write to `spill_folder`; None: a temporary folder.
        queries: at once; further ones wait.
        wait_s: so long; then they are refused.
        seconds: of one statement; 0: no limit.
        rows: of one result; 0: no limit.
        threads: of one query.
    """

    memory_bytes: int = 1 << 30
    spill_bytes: int = 4 << 30
    spill_folder: str | None = None
    queries: int = 4
    wait_s: float = 30.0
    seconds: float = 600.0
    rows: int = 0
    threads: int = 2


class Instances:
    """All of them.

    Args:
        macros: statements that define functions beside those of `macros.sql`.
    """

    def __init__(self, limits: QueryLimits, macros: str = "") -> None:
        self._limits = limits
        self._macros = MACROS + macros
        self._idle: list[tuple[Any, Calls, Known]] = []
        self._running = 0
        self._changed = threading.Condition()
        self._folder = Path(tempfile.mkdtemp(prefix="barnabas-sql-", dir=limits.spill_folder))
        self._made = 0
        self._planner: tuple[Any, Calls, Known] | None = None
        self._closed = False
        WORKERS.join()

    def planner(self, functions: Sequence[Function] = ()) -> Any:
        """A cursor of the instance that checks statements; the caller closes it.

        Args:
            functions: of users, which the statement calls.
        """
        with self._changed:
            if self._planner is None or self._planner[2].is_full:
                self._planner = self._connect(only_types=True)
            if functions:
                self._planner[2].learn(functions)
            return self._planner[0].cursor()

    def borrow(self, is_cancelled: Callable[[], bool], zone: str = UTC) -> Lease:
        """An instance for one query. Raises SqlError: none is free in time, or the statement was cancelled.

        Args:
            zone: of times, by DuckDB's name.
        """
        deadline = time.monotonic() + self._limits.wait_s
        with self._changed:
            while self._running >= self._limits.queries:
                if is_cancelled():
                    raise SqlError(CANCELLED, "canceling statement due to user request")
                left = deadline - time.monotonic()
                if left <= 0:
                    raise SqlError(TOO_MANY, f"{self._limits.queries} queries run already", hint="try again later")
                self._changed.wait(min(left, 0.1))
            self._running += 1
            idle = self._idle.pop() if self._idle else None
        try:
            lease = Lease(self, *(self._connect() if idle is None else idle))
        except BaseException:
            self._leave()
            raise
        if zone != UTC:
            lease.set_zone(zone)
        return lease

    def _leave(self) -> None:
        with self._changed:
            self._running -= 1
            self._changed.notify()

    def give_back(self, instance: Any, calls: Calls, functions: Known) -> None:
        """Take an instance back."""
        calls.numbers = None
        functions.rest()
        with self._changed:
            if self._closed or functions.is_full:
                instance.close()
            else:
                self._idle.append((instance, calls, functions))
        self._leave()

    def close(self) -> None:
        """Close the idle ones, and each other one when it comes back."""
        with self._changed:
            if not self._closed:
                WORKERS.leave()
            self._closed = True
            idle, self._idle = self._idle, []
            if self._planner is not None:
                idle.append(self._planner)
                self._planner = None
        for instance, _, _ in idle:
            instance.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _connect(self, *, only_types: bool = False) -> tuple[Any, Calls, Known]:
        self._made += 1
        instance = duckdb.connect(
            ":memory:",
            config={
                "enable_external_access": "false",
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "allow_community_extensions": "false",
                "python_enable_replacements": "false",
                "memory_limit": f"{self._limits.memory_bytes}B",
                "threads": str(self._limits.threads),
                "temp_directory": str(self._folder / str(self._made)),
                "max_temp_directory_size": f"{self._limits.spill_bytes}B",
            },
        )
        try:
            natives.register(instance)
            instance.execute(self._macros)
            calls = Calls()
            calls.register(instance)
            instance.execute(f"SET GLOBAL TimeZone = '{UTC}'")  # DuckDB's default is the zone of the machine
            instance.execute("SET allowed_configs = ['TimeZone']")  # of cursors, for the time zones of sessions
            instance.execute("SET lock_configuration = true")
        except BaseException:
            instance.close()
            raise
        return instance, calls, Known(instance, only_types=only_types)


class Lease:
    """An instance while a statement has it. `calls` are its functions of sequences, `functions` those of users."""

    def __init__(self, instances: Instances, instance: Any, calls: Calls, functions: Known) -> None:
        self._instances, self._instance, self.calls, self.functions = instances, instance, calls, functions
        self.cursor = instance.cursor()
        self._lock = threading.Lock()
        self._open = True

    def set_zone(self, zone: str) -> None:
        """Let the cursor compute times in a zone, by DuckDB's name. The instance and its other cursors keep UTC."""
        try:
            self.cursor.execute(f"SET TimeZone = '{zone}'")
        except BaseException:
            self.close()
            raise

    def interrupt(self) -> None:
        """End the query that runs. May be called from any thread."""
        with self._lock:
            if self._open:
                self.cursor.interrupt()

    def close(self) -> None:
        """Give it back; safe to call twice."""
        with self._lock:
            if not self._open:
                return
            self._open = False
        self.cursor.close()
        self._instances.give_back(self._instance, self.calls, self.functions)
