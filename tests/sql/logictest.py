"""Runs files of the format sqllogictest over the Postgres protocol, and tells what failed.

    python -m tests.sql.logictest "host=127.0.0.1 port=5433 user=anna dbname=barnabas" FILE …

Records are parted by empty lines: `statement ok`, `statement error [SQLSTATE or a part of the message]`, and `query TYPES [SORT] [label]`
with the rows below `----`, one value a line or one row a line. SORT is `nosort`, `rowsort` or `valuesort`; a result may be
`N values hashing to MD5`. `skipif`, `onlyif` know the engines postgresql and barnabas; `halt` ends a file, `hash-threshold` is ignored.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

ENGINES = ("postgresql", "postgres", "barnabas")


@dataclass
class Record:
    """One statement and its outcome as the file has it."""

    line: int
    kind: str
    words: list[str]
    sql: str
    expected: list[str] = field(default_factory=list)


@dataclass
class Outcome:
    """The result of a file."""

    name: str
    passed: int = 0
    failures: list[tuple[int, str, str]] = field(default_factory=list)

    def kinds(self) -> Counter[str]:
        """The distinct failures, with names and numbers left out."""
        return Counter(re.sub(r"\d+|\"[^\"]*\"|'[^']*'", "…", reason) for _, _, reason in self.failures)


def records_of(text: str) -> Iterator[Record]:
    """The records of a file that are for this engine."""
    lines = text.splitlines()
    at, wanted = 0, True
    while at < len(lines):
        words = lines[at].split("#")[0].split() if lines[at].startswith(("#", "halt")) or lines[at].strip() else []
        at += 1
        if not words:
            continue
        match words[0]:
            case "halt":
                if wanted:
                    return
            case "skipif":
                wanted = wanted and words[1] not in ENGINES
                continue
            case "onlyif":
                wanted = wanted and words[1] in ENGINES
                continue
            case "statement" | "query":
                start, body = at, []
                while at < len(lines) and lines[at].strip() and lines[at].strip() != "----":
                    body.append(lines[at])
                    at += 1
                expected = []
                if at < len(lines) and lines[at].strip() == "----":
                    at += 1
                    while at < len(lines) and lines[at].strip():
                        expected.append(lines[at])
                        at += 1
                if wanted:
                    yield Record(start, words[0], words[1:], "\n".join(body).strip().rstrip(";"), expected)
        wanted = True


def shown(value: str | None, kind: str) -> str:
    """A value as the files have it."""
    if value is None:
        return "NULL"
    if kind == "R":
        return f"{float(value):.3f}"
    if kind == "I":
        return str(int(float(value))) if re.fullmatch(r"-?\d+\.\d*", value) else {"t": "1", "f": "0"}.get(value, value)
    return "(empty)" if not value else "".join(each if " " <= each <= "~" else "@" for each in value)


def rows_of(connection: psycopg.Connection[Any], sql: str, *, extended: bool) -> list[tuple[str | None, ...]]:
    """The rows in the text format. Raises psycopg.Error."""
    raw = connection.pgconn
    found = raw.exec_params(sql.encode(), []) if extended else raw.exec_(sql.encode())
    if found.status == psycopg.pq.ExecStatus.FATAL_ERROR:
        part = found.error_field
        state = (part(psycopg.pq.DiagnosticField.SQLSTATE) or b"").decode()
        raise psycopg.DatabaseError(f"{state}: {(part(psycopg.pq.DiagnosticField.MESSAGE_PRIMARY) or b'').decode()}")
    cells = [[found.get_value(row, column) for column in range(found.nfields)] for row in range(found.ntuples)]
    return [tuple(None if cell is None else cell.decode() for cell in row) for row in cells]


def fault_of(connection: psycopg.Connection[Any], record: Record, *, extended: bool) -> str | None:
    """Why a record failed; None if it passed."""
    try:
        rows = rows_of(connection, record.sql, extended=extended)
    except psycopg.Error as error:
        if record.kind == "statement" and record.words[0] == "error":
            wanted = " ".join(record.words[1:])
            return None if wanted in str(error) else f"another error than {wanted}: {error}"
        return str(error)
    if record.kind == "statement":
        return "no error" if record.words[0] == "error" else None
    return _compared(record, rows)


def _compared(record: Record, rows: Sequence[tuple[str | None, ...]]) -> str | None:
    kinds, sort = record.words[0], [*record.words, "nosort"][1]
    if rows and len(rows[0]) != len(kinds):
        return f"{len(rows[0])} columns instead of {len(kinds)}"
    values = [[shown(cell, kind) for cell, kind in zip(row, kinds, strict=True)] for row in rows]
    if sort == "rowsort":
        values.sort()
    flat = [cell for row in values for cell in row]
    if sort == "valuesort":
        flat.sort()
    if len(record.expected) == 1 and (found := re.fullmatch(r"(\d+) values hashing to (\w+)", record.expected[0])):
        digest = hashlib.md5("".join(f"{cell}\n" for cell in flat).encode(), usedforsecurity=False).hexdigest()
        return None if (len(flat), digest) == (int(found[1]), found[2]) else f"hash of {len(flat)} values differs"
    by_row = [" ".join(row) for row in values]
    expected = [" ".join(line.split()) for line in record.expected]
    if sort == "rowsort" and len(expected) != len(flat):
        expected.sort()
        by_row.sort()
    if expected in ([" ".join(cell.split()) for cell in flat], [" ".join(row.split()) for row in by_row]):
        return None
    return f"rows differ: {by_row[:5]} instead of {expected[:5]}"


def run(connection: psycopg.Connection[Any], path: Path, *, extended: bool = False) -> Outcome:
    """Run a file in a session."""
    outcome = Outcome(path.name)
    for record in records_of(path.read_text()):
        fault = fault_of(connection, record, extended=extended)
        if fault is None:
            outcome.passed += 1
        else:
            outcome.failures.append((record.line, record.sql, fault))
    return outcome


def main() -> None:
    """Run the files of the command line, each with both protocols."""
    for name in sys.argv[2:]:
        for extended in (False, True):
            with psycopg.connect(sys.argv[1], autocommit=True) as connection:
                outcome = run(connection, Path(name), extended=extended)
            print(
                f"{outcome.name} {'extended' if extended else 'simple'}: {outcome.passed} passed, {len(outcome.failures)} failed"
            )
            for reason, count in outcome.kinds().most_common(30):
                print(f"  {count:5} {reason}")


if __name__ == "__main__":
    main()
