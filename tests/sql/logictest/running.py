"""Runs records over the Postgres protocol, and tells what failed."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from tests.sql.logictest.parsing import Record, records_of

Row = tuple[str | None, ...]
Connection = psycopg.Connection[Any]
_BOOLEANS = {"t": ("true", "1"), "f": ("false", "0")}
_EMPTY = {"(empty)", "", '""'}


@dataclass
class Outcome:
    """The result of a file."""

    name: str
    passed: int = 0
    failures: list[tuple[int, str, str]] = field(default_factory=list)

    def kinds(self) -> Counter[str]:
        """The distinct failures, with names and numbers left out."""
        return Counter(re.sub(r"\d+|\"[^\"]*\"|'[^']*'", "…", reason) for _, _, reason in self.failures)


class Sessions:
    """The connections of one file, by name; the first one has the empty name."""

    def __init__(self, first: Connection, connect: Callable[[], Connection] | None = None) -> None:
        self._connect = connect
        self._known = {"": first}

    def named(self, name: str) -> Connection:
        """The connection of a name; the first one if there is no way to make others."""
        if name not in self._known and self._connect is not None:
            self._known[name] = self._connect()
        return self._known.get(name, self._known[""])

    def close(self) -> None:
        """Close those that were made here."""
        for name, each in self._known.items():
            if name:
                each.close()


def answer_of(connection: Connection, sql: str, *, extended: bool) -> tuple[list[Row], list[str], int | None]:
    """The rows in the text format, the names of the columns, and the number of rows that were changed. Raises psycopg.Error."""
    raw = connection.pgconn
    found = raw.exec_params(sql.encode(), []) if extended else raw.exec_(sql.encode())
    if found.status == psycopg.pq.ExecStatus.FATAL_ERROR:
        part = found.error_field
        state = (part(psycopg.pq.DiagnosticField.SQLSTATE) or b"").decode()
        texts = [
            (part(each) or b"").decode()
            for each in (psycopg.pq.DiagnosticField.MESSAGE_PRIMARY, psycopg.pq.DiagnosticField.MESSAGE_DETAIL)
        ]
        raise psycopg.DatabaseError(f"{state}: {' '.join(each for each in texts if each)}")
    cells = [[found.get_value(row, column) for column in range(found.nfields)] for row in range(found.ntuples)]
    names = [(found.fname(column) or b"").decode() for column in range(found.nfields)]
    return [tuple(None if cell is None else cell.decode() for cell in row) for row in cells], names, found.command_tuples


def fault_of(connection: Connection, record: Record, *, extended: bool) -> str | None:
    """Why a record failed; None if it passed."""
    try:
        rows, names, count = answer_of(connection, record.sql, extended=extended)
    except psycopg.Error as error:
        if not record.wants_error:
            return str(error)
        return None if _matches(record.error, str(error)) else f"another error than {record.error}: {error}"
    if record.wants_error:
        return "no error"
    if record.count is not None and count != record.count:
        return f"{count} rows were changed instead of {record.count}"
    if record.kind == "statement":
        return None
    return compared(record, rows, names)


def _matches(wanted: str, error: str) -> bool:
    if not wanted or wanted in error:
        return True
    try:
        return re.search(wanted, error, re.IGNORECASE) is not None
    except re.error:
        return False


def compared(record: Record, rows: Sequence[Row], names: Sequence[str]) -> str | None:
    expected = list(record.expected)
    if record.has_names:
        given = expected.pop(0).split() if expected else []
        if given != list(names):
            return f"the columns are {list(names)} instead of {given}"
    if rows and record.types and len(rows[0]) != len(record.types):
        return f"{len(rows[0])} columns instead of {len(record.types)}"
    kinds = record.types or "T" * (len(rows[0]) if rows else 0)
    if len(expected) == 1 and (found := re.fullmatch(r"(\d+) values hashing to (\w+)", expected[0])):
        flat = _flat([[classic(cell, kind) for cell, kind in zip(row, kinds, strict=True)] for row in rows], record.sort)
        digest = hashlib.md5("".join(f"{cell}\n" for cell in flat).encode(), usedforsecurity=False).hexdigest()
        return None if (len(flat), digest) == (int(found[1]), found[2]) else f"hash of {len(flat)} values differs"
    for write in (_plain, classic):
        values = [[write(cell, kind) for cell, kind in zip(row, kinds, strict=True)] for row in rows]
        if _is_same(values, expected, record.sort):
            return None
    shown = [" ".join(_plain(cell, kind) for cell, kind in zip(row, kinds, strict=True)) for row in rows]
    return f"rows differ: {shown[:5]} instead of {expected[:5]}"


def _flat(values: Sequence[list[str]], sort: str) -> list[str]:
    rows = sorted(values) if sort == "rowsort" else values
    flat = [cell for row in rows for cell in row]
    return sorted(flat) if sort == "valuesort" else flat


def _is_same(values: Sequence[list[str]], expected: Sequence[str], sort: str) -> bool:
    """Whether the rows are those of a file, which has one value or one row a line."""
    wanted = [" ".join(line.split()) for line in expected]
    flat = [" ".join(cell.split()) for cell in _flat(values, sort)]
    rows = [" ".join(" ".join(row).split()) for row in values]
    if sort in ("rowsort", "valuesort"):
        rows = sorted(rows)
    return _are_equal(flat, wanted) or _are_equal(rows, sorted(wanted) if sort in ("rowsort", "valuesort") else wanted)


def _are_equal(lines: Sequence[str], wanted: Sequence[str]) -> bool:
    return len(lines) == len(wanted) and all(map(_is_equal, lines, wanted))


def _is_equal(line: str, wanted: str) -> bool:
    """Whether a line is the one of the file; booleans and empty texts have several spellings."""
    cells, others = line.split(" "), wanted.split(" ")
    return line == wanted or (
        len(cells) == len(others)
        and all(
            one == other or other in _BOOLEANS.get(one, ()) or {one, other} <= _EMPTY
            for one, other in zip(cells, others, strict=True)
        )
    )


def _plain(value: str | None, kind: str) -> str:
    return "NULL" if value is None else value or "(empty)"


def classic(value: str | None, kind: str) -> str:
    """A value as SQLite's files have it: three digits behind the point, and no odd characters."""
    if value is None:
        return "NULL"
    if kind == "R" and re.fullmatch(r"-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", value):
        return f"{float(value):.3f}"
    if kind == "I":
        return str(int(float(value))) if re.fullmatch(r"-?\d+\.\d*", value) else {"t": "1", "f": "0"}.get(value, value)
    return "(empty)" if not value else "".join(each if " " <= each <= "~" else "@" for each in value)


def run(
    connection: Connection, path: Path, *, extended: bool = False, connect: Callable[[], Connection] | None = None
) -> Outcome:
    """Run a file.

    Args:
        connection: of the first session.
        connect: makes the sessions that the file names.
    """
    outcome = Outcome(path.name)
    sessions = Sessions(connection, connect)
    try:
        for record in records_of(path.read_text(), path):
            fault = fault_of(sessions.named(record.connection), record, extended=extended)
            if fault is None:
                outcome.passed += 1
            else:
                outcome.failures.append((record.line, record.sql, fault))
    finally:
        sessions.close()
    return outcome


def drop_everything(connection: Connection) -> None:
    """Drop all tables and views, so that the next file begins without any."""
    listed = "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema NOT IN ('pg_catalog', 'information_schema')"
    for name, _ in connection.execute(listed).fetchall():
        for kind in ("MATERIALIZED VIEW", "VIEW", "TABLE"):
            with_name = f'DROP {kind} IF EXISTS "{name}" CASCADE'
            try:
                connection.execute(with_name)
            except psycopg.Error:
                continue
