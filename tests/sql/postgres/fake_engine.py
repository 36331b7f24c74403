"""A small engine over DuckDB: what the Postgres protocol needs of one, and nothing of topics."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from barnabas.sql.interface import Caller, Notice, SqlError

COPY = re.compile(
    r"copy\s+(?P<what>\(.*\)|\w+)(?:\s*\((?P<columns>[^)]*)\))?\s+(?P<way>from\s+stdin|to\s+stdout)", re.IGNORECASE | re.DOTALL
)
SHOW = re.compile(r"show\s+(\w+)", re.IGNORECASE)
SET = re.compile(r"set\s+(?:session\s+)?(\w+)\s*(?:=|to)\s*'?([^']*)'?", re.IGNORECASE)
STATES = {"Parser": "42601", "Catalog": "42P01", "Binder": "42703", "Conversion": "22P02", "Constraint": "23505"}
ARROW = {
    "int": pa.int32(), "date": pa.date32(), "timestamptz": pa.timestamp("us", "UTC"), "numeric": pa.decimal128(38, 18),
    "bytea": pa.binary(), "float8": pa.float64(),
}  # fmt: skip
QUIET = ("RESET", "UNLISTEN")


@dataclass
class FakePrepared:
    text: str
    parameters: Sequence[pa.DataType] = ()
    schema: pa.Schema | None = None
    copy: str | None = None


class FakeResult:
    def __init__(self, tag: str, schema: pa.Schema | None = None, batches: Iterable[pa.RecordBatch] = ()) -> None:
        self.tag, self.schema, self._batches, self.closed = tag, schema, batches, False

    def batches(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._batches
        except duckdb.Error as error:
            raise translated(error) from error

    def close(self) -> None:
        self.closed = True


def translated(error: duckdb.Error) -> SqlError:
    text = str(error)
    if isinstance(error, duckdb.InterruptException) or "INTERRUPT" in text:
        return SqlError("57014", "canceling statement due to user request")
    return SqlError(STATES.get(text.split(" ", 1)[0], "XX000"), text.split("\n", 1)[0], position=1, hint="a hint")


class FakeSession:
    def __init__(self, engine: FakeEngine, caller: Caller) -> None:
        self.engine, self.caller = engine, caller
        self.connection = engine.database.cursor()
        self.state = "I"
        self.settings = {"timezone": "UTC", "server_version": "16.0", "session_authorization": caller.user, **caller.parameters}
        self.settings = {name.lower(): value for name, value in self.settings.items()}
        self.cancelled, self.sleeps = threading.Event(), threading.Event()
        self.closed = False
        self.notices: list[Notice] = []
        self.listener: Callable[[Notice], None] | None = None

    def statements(self, text: str) -> list[str]:
        found = [part.strip() for part in re.findall(r"(?:'[^']*'|--[^\n]*|\"[^\"]*\"|[^;'\"])+", text)]
        return [part for part in found if part and not part.startswith("--")]

    def prepare(self, text: str, parameters: Sequence[pa.DataType | None] = ()) -> FakePrepared:
        word = text.split(None, 1)[0].upper().rstrip(";") if text.strip(" ;") else ""
        if self.state == "E" and word not in ("ROLLBACK", "COMMIT"):
            raise SqlError("25P02", "current transaction is aborted, commands ignored until end of transaction block")
        if found := COPY.match(text):
            rows = found["what"] if found["what"].startswith("(") else f"(select * from {found['what']})"
            return FakePrepared(text, (), self._schema(rows, ()), "in" if found["way"].lower().startswith("from") else "out")
        if word in ("", "BEGIN", "COMMIT", "ROLLBACK", "SET", "DISCARD", "DEALLOCATE", *QUIET):
            return FakePrepared(text)
        if word == "SHOW":
            return FakePrepared(text, (), pa.schema([(text.split()[1], pa.string())]))
        count = max([int(each) for each in re.findall(r"\$(\d+)", text)], default=0)
        known = [parameters[index] if index < len(parameters) else None for index in range(count)]
        cast = {int(number): ARROW.get(name.lower()) for number, name in re.findall(r"\$(\d+)::(\w+)", text)}
        kinds: list[Any] = [each or cast.get(index + 1) or pa.null() for index, each in enumerate(known)]
        schema = self._schema(text, kinds) if word in ("SELECT", "VALUES", "WITH", "TABLE") else None
        return FakePrepared(text, kinds, schema)

    def _schema(self, text: str, kinds: Sequence[pa.DataType]) -> pa.Schema:
        filled = re.sub(r"\$(\d+)", lambda found: f"CAST(NULL AS {sql_of(kinds[int(found[1]) - 1])})", text)
        try:
            found: Any = self.engine.database.cursor().sql(f"SELECT * FROM ({filled.rstrip('; ')}) LIMIT 0")
        except duckdb.Error as error:
            self.fail()
            raise translated(error) from error
        schema: pa.Schema = found.to_arrow_table().schema
        return schema

    def fail(self) -> None:
        self.state = "E" if self.state == "T" else self.state

    def execute(self, prepared: FakePrepared, values: Sequence[Any] = ()) -> FakeResult:
        text, word = prepared.text, prepared.text.split(None, 1)[0].upper().rstrip(";") if prepared.text.strip(" ;") else ""
        if not word:
            return FakeResult("")
        if word in ("BEGIN", "COMMIT", "ROLLBACK"):
            tag = "ROLLBACK" if self.state == "E" else word
            self.state = "T" if word == "BEGIN" else "I"
            return FakeResult(tag)
        if word in ("DISCARD", "DEALLOCATE", *QUIET):
            return FakeResult(" ".join(text.upper().split()) if word not in QUIET else word)
        if found := SHOW.match(text):
            table = pa.table({found[1]: [self.parameter(found[1])]})
            return FakeResult("SHOW", table.schema, iter(table.to_batches()))
        if found := SET.match(text):
            self.settings[found[1].lower()] = found[2]
            return FakeResult("SET")
        if "pg_sleep" in text:
            self.sleeps.set()
            assert self.cancelled.wait(30)
            self.sleeps.clear()
            self.cancelled.clear()
            self.fail()
            raise SqlError("57014", "canceling statement due to user request")
        if "boom" in text:
            raise RuntimeError("a fault of the engine")
        return self._ask(prepared, values, word)

    def _ask(self, prepared: FakePrepared, values: Sequence[Any], word: str) -> FakeResult:
        cursor = self.engine.database.cursor()
        try:
            if prepared.schema is None:
                count = cursor.execute(prepared.text, list(values)).fetchone()
                return FakeResult(f"{word} 0 {count[0] if count else 0}" if word == "INSERT" else word)
            typed = re.sub(
                r"\$(\d+)", lambda found: f"CAST(${found[1]} AS {sql_of(prepared.parameters[int(found[1]) - 1])})", prepared.text
            )
            reader: Any = cursor.sql(typed, params=list(values)).to_arrow_reader(10_000)
        except duckdb.Error as error:
            self.fail()
            raise translated(error) from error
        return FakeResult("SELECT", reader.schema, iter(reader))

    def copy_in(self, prepared: FakePrepared, data: Iterator[bytes]) -> FakeResult:
        found = COPY.match(prepared.text)
        assert found is not None
        rows = [line.split("\t") for line in b"".join(data).decode().splitlines() if line != "\\."]
        try:
            for row in rows:
                marks = ", ".join("?" * len(row))
                self.connection.execute(
                    f"INSERT INTO {found['what']} VALUES ({marks})", [None if each == "\\N" else each for each in row]
                )
        except duckdb.Error as error:
            self.fail()
            raise translated(error) from error
        return FakeResult(f"COPY {len(rows)}")

    def copy_out(self, prepared: FakePrepared) -> Iterator[bytes]:
        found = COPY.match(prepared.text)
        assert found is not None
        separator = "," if "csv" in prepared.text.lower() else "\t"
        what = found["what"] if found["what"].startswith("(") else f"(FROM {found['what']})"
        try:
            cursor = self.engine.database.cursor().execute(f"SELECT * FROM {what}")
        except duckdb.Error as error:
            raise translated(error) from error
        while rows := cursor.fetchmany(1000):
            yield "".join(
                separator.join("\\N" if each is None else shown(each, separator) for each in row) + "\n" for row in rows
            ).encode()

    def parameter(self, name: str) -> str | None:
        return self.settings.get(name.lower())

    def send_notices_to(self, listener: Callable[[Notice], None] | None) -> None:
        """They are taken after each statement; `listener` has those of a test that tells it some."""
        self.listener = listener

    def take_notices(self) -> Sequence[Notice]:
        found, self.notices = self.notices, []
        return found

    def cancel(self) -> None:
        self.cancelled.set()

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.engine.sessions.remove(self)
            self.connection.close()


def shown(value: Any, separator: str) -> str:
    text = str(value)
    return '"' + text.replace('"', '""') + '"' if separator == "," and re.search(r'[,"\n]', text) else text


def sql_of(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"{sql_of(kind.value_type)}[]"
    names = {
        "int16": "SMALLINT", "int32": "INTEGER", "int64": "BIGINT", "float": "FLOAT", "double": "DOUBLE", "bool": "BOOLEAN",
        "binary": "BLOB", "date32[day]": "DATE", "time64[us]": "TIME", "timestamp[us]": "TIMESTAMP",
        "timestamp[us, tz=UTC]": "TIMESTAMPTZ", "month_day_nano_interval": "INTERVAL", "decimal128(38, 18)": "DECIMAL(38,18)",
    }  # fmt: skip
    return names.get(str(kind), "VARCHAR")


class FakeEngine:
    """Sessions over one DuckDB in memory."""

    def __init__(self) -> None:
        self.database = duckdb.connect()
        self.database.execute("SET TimeZone = 'UTC'")
        self.database.execute("CREATE MACRO pg_sleep(seconds) AS NULL")
        self.database.execute("CREATE MACRO pg_advisory_unlock_all() AS NULL")
        self.sessions: list[FakeSession] = []
        self.callers: list[Caller] = []

    def session(self, caller: Caller) -> FakeSession:
        made = FakeSession(self, caller)
        self.sessions.append(made)
        self.callers.append(caller)
        return made

    def close(self) -> None:
        self.database.close()
