"""Reads files of the format sqllogictest, in the spellings of SQLite, DuckDB, CockroachDB, RisingWave and Materialize.

| line | meaning |
|---|---|
| `statement ok`, `statement count N` | the statement below runs, and changes N rows |
| `statement error [TEXT]` | it fails; the error has a text that matches; the text may also follow `----` |
| `query TYPES [SORT] [LABEL]`, `query error [TEXT]` | the query below has the rows behind `----`, one value a line or one row a line |
| `N values hashing to MD5` | all values of the result, one a line, have this digest |
| `skipif E`, `onlyif E` | the next record is not for the engine E, or only for it |
| `include PATTERN` | the records of other files |
| `connection NAME` | the next record is of another session |
| `control sortmode SORT` | the sort of queries that name none |
| `loop V FROM TO`, `foreach V A B …`, `endloop` | the records between, with `${V}` |
| `halt` | the file ends |
| `hash-threshold`, `control …`, `subtest`, `mode`, `sleep`, `require`, `reset-server`, `system`, `simple`, `user`, `load` | no effect |
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ENGINES = ("postgresql", "postgres", "barnabas")
SORTS = ("nosort", "rowsort", "valuesort")
MAX_INCLUDED = 20  # files inside of each other
_ALONE = ("hash-threshold", "subtest", "mode", "sleep", "require", "reset-server", "user", "load", "set")
_WITH_BODY = ("system", "simple", "copy", "finish")
_OPTIONS = re.compile(r"retry \d+ .*|(retry|backoff)=\S+")


@dataclass
class Record:
    """One statement and its outcome as the file has it.

    Args:
        kind: `statement` or `query`.
        types: of the columns of a query.
        wants_error: whether it must fail; `error` is a part of the text, or a regular expression.
        count: of the rows that a statement changes.
        has_names: whether the first expected line has the names of the columns.
    """

    line: int
    kind: str
    sql: str
    types: str = ""
    sort: str = "nosort"
    wants_error: bool = False
    error: str = ""
    count: int | None = None
    connection: str = ""
    has_names: bool = False
    expected: list[str] = field(default_factory=list)
    file: str = ""


class _Reader:
    """One file."""

    def __init__(self, text: str, path: Path | None, depth: int) -> None:
        self._lines, self._path, self._depth = text.splitlines(), path, depth
        self._at = 0
        self._sort = "nosort"
        self._connection, self._wanted = "", True

    def records(self) -> Iterator[Record]:
        yield from self._until(len(self._lines), {})

    def _until(self, end: int, values: Mapping[str, str]) -> Iterator[Record]:
        while self._at < end:
            line = _filled(self._lines[self._at], values)
            words = [] if line.startswith("#") else line.split()
            self._at += 1
            if not words or self._is_for_the_next(words):
                continue
            if words[0] in ("statement", "query"):
                record = self._record(words, values)
                if self._wanted:
                    yield record
            elif words[0] == "halt":
                self._at = len(self._lines) if self._wanted else self._at
            elif words[0] == "include":
                yield from self._included(words[1])
            elif words[0] in ("loop", "foreach"):
                yield from self._loop(words, values)
            elif words[0].rstrip(";") in _WITH_BODY:
                self._body(values)
                self._expected(values)
            elif words[0].rstrip(";") not in _ALONE:
                raise ValueError(f"line {self._at} of {self._path}: {line}")
            self._wanted, self._connection = True, ""

    def _is_for_the_next(self, words: Sequence[str]) -> bool:
        """Whether a line tells something about what follows."""
        match words[0]:
            case "skipif" | "onlyif":
                self._wanted = self._wanted and (words[1] in ENGINES) == (words[0] == "onlyif")
            case "connection":
                self._connection = words[1]
            case "control":
                self._sort = words[2] if words[1:2] == ["sortmode"] else self._sort
            case _:
                return False
        return True

    def _included(self, pattern: str) -> Iterator[Record]:
        if self._path is None or self._depth >= MAX_INCLUDED:
            raise ValueError(f"line {self._at} of {self._path}: {pattern} cannot be included")
        for found in sorted(self._path.parent.glob(pattern)):
            yield from _Reader(found.read_text(), found, self._depth + 1).records()

    def _loop(self, words: Sequence[str], values: Mapping[str, str]) -> Iterator[Record]:
        start, depth, end = self._at, 1, self._at
        while end < len(self._lines) and depth:
            first = (self._lines[end].split() or [""])[0]
            depth += (first in ("loop", "foreach")) - (first == "endloop")
            end += 1
        each = [str(number) for number in range(int(words[2]), int(words[3]))] if words[0] == "loop" else words[2:]
        for value in each:
            self._at = start
            yield from self._until(end - 1, {**values, words[1]: value})
        self._at = end

    def _record(self, words: Sequence[str], values: Mapping[str, str]) -> Record:
        start = self._at
        record = Record(start, words[0], self._body(values), connection=self._connection, file=str(self._path or ""))
        record.expected = self._expected(values)
        rest = _OPTIONS.sub("", " ".join(words[1:])).split()
        if rest and rest[0].rstrip(";") in ("error", "err"):
            record.wants_error = True
            record.error = " ".join(rest[1:]) or " ".join(record.expected).strip()
        elif record.kind == "query":
            record.types = rest[0] if rest else ""
            options = rest[1].split(",") if len(rest) > 1 else []
            record.sort = next((each for each in options if each in SORTS), self._sort)
            record.has_names = "colnames" in options
        elif rest and rest[0] == "count":
            record.count = int(rest[1])
        return record

    def _body(self, values: Mapping[str, str]) -> str:
        body = []
        while self._at < len(self._lines) and self._lines[self._at].strip() and not _is_rule(self._lines[self._at]):
            if not self._lines[self._at].startswith("#"):
                body.append(_filled(self._lines[self._at], values))
            self._at += 1
        return "\n".join(body).strip().rstrip(";")

    def _expected(self, values: Mapping[str, str]) -> list[str]:
        expected: list[str] = []
        if self._at < len(self._lines) and _is_rule(self._lines[self._at]):
            self._at += 1
            while self._at < len(self._lines) and self._lines[self._at].strip():
                expected.append(_filled(self._lines[self._at], values))
                self._at += 1
        return expected


def _is_rule(line: str) -> bool:
    return set(line.strip()) == {"-"} and len(line.strip()) > 3


def _filled(line: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        line = line.replace(f"${{{name}}}", value).replace(f"{{{name}}}", value)
    return line


def records_of(text: str, path: Path | None = None) -> Iterator[Record]:
    """The records of a file that are for this engine. Raises ValueError for a line that the format does not have.

    Args:
        path: of the file, for what it includes.
    """
    return _Reader(text, path, 0).records()
