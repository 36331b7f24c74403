"""Queries on Spark for one caller: a process with a session of Spark answers them, one at a time. Imports no Spark.

The process starts with the first query and stays until `close`. A question is a line of JSON on its standard input. An answer is a line of
JSON, and behind it the rows as an Arrow stream. Cancelling kills the process; the next query starts another.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator, Mapping
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa
from msgspec import Struct

from barnabas.engine.jobs import InputTable
from barnabas.errors import BarnabasError
from barnabas.schemas.arrow.columns import RegistryAddress

TASK_VARIABLE = "BARNABAS_SPARK_QUERIES"
COMMAND = (sys.executable, "-m", "barnabas.engine.driver.queries")
MOST_LINE = 1 << 20
LAST_BYTES = 2_000  # of its errors, for the reason of an end


class Question(Struct, frozen=True):
    """A query.

    Args:
        text: in Spark's SQL, over the names of `tables`.
        filled: by table and column, the expression of a value for rows that came before the column.
        has_rows: whether the rows are wanted; otherwise only the columns.
        values: of the parameters `:p1`, … in the text, as texts.
        registry: has the schemas of tables that name some.
        zone: of times.
    """

    text: str
    tables: Mapping[str, InputTable]
    filled: Mapping[str, Mapping[str, str]] = {}
    has_rows: bool = True
    values: Mapping[str, str | None] = {}
    registry: RegistryAddress | None = None
    zone: str = "UTC"


class Answer(Struct, frozen=True):
    """The head of an answer; with an error there is nothing behind it."""

    error: str | None = None
    sqlstate: str | None = None


_ANSWER = msgspec.json.Decoder(Answer)  # made at import, because threads must not make it at once


class SparkQueryError(BarnabasError):
    """Spark refused a query, or its process ended.

    Args:
        sqlstate: of Spark; None if it has none.
    """

    def __init__(self, reason: str, sqlstate: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.sqlstate = reason, sqlstate

    def __str__(self) -> str:
        return self.reason


class SparkQueries:
    """The process of one caller.

    Args:
        settings: of the client, with `bootstrap.servers` and the caller's log-in.
        master: of Spark.
    """

    def __init__(self, settings: Mapping[str, str], master: str = "local[*]") -> None:
        self._task = msgspec.json.encode({"settings": dict(settings), "master": master}).decode()
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: Any = None
        self._lock = threading.Lock()

    @property
    def is_started(self) -> bool:
        """Whether Spark is there, so that a query does not wait for its start."""
        return self._process is not None and self._process.poll() is None

    def schema(self, question: Question) -> pa.Schema:
        """The columns of a query. Raises SparkQueryError."""
        with self._asked(msgspec.structs.replace(question, has_rows=False)) as stream:
            return stream.schema

    def rows(self, question: Question) -> Generator[pa.RecordBatch, None, None]:
        """The rows. Raises SparkQueryError."""
        with self._asked(question) as stream:
            yield from stream

    @contextlib.contextmanager
    def _asked(self, question: Question) -> Iterator[pa.RecordBatchReader]:
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        done = False
        try:
            process.stdin.write(msgspec.json.encode(question) + b"\n")
            process.stdin.flush()
            line = process.stdout.readline(MOST_LINE)
            if not line:
                raise SparkQueryError(self._reason())
            answer = _ANSWER.decode(line)
            if answer.error is not None:
                done = True
                raise SparkQueryError(answer.error, answer.sqlstate)
            with pa.ipc.open_stream(process.stdout) as reader:  # type: ignore[arg-type]  # a file of bytes is enough
                yield reader
                for _ in reader:  # the next answer begins behind the last row
                    pass
            done = True
        except (OSError, pa.ArrowInvalid) as error:
            raise SparkQueryError(self._reason()) from error
        finally:
            if not done:
                self.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self.close()
        with self._lock:
            if self._process is None:
                self._errors = _LastBytes()
                self._process = subprocess.Popen(
                    COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                    env={**os.environ, TASK_VARIABLE: self._task},
                )  # fmt: skip
                assert self._process.stderr is not None
                self._errors.follow(self._process.stderr)
            return self._process

    def _reason(self) -> str:
        told = self._errors.text() if self._errors is not None else ""
        return "the process of Spark has ended" + (f": {told}" if told else "")

    def close(self) -> None:
        """End the process and what it started. May be called from any thread; a query that runs gets an error."""
        with self._lock:
            process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError, ValueError):
                    stream.close()


class _LastBytes:
    """Keeps the end of what a stream has."""

    def __init__(self) -> None:
        self._last = b""
        self._thread: threading.Thread | None = None

    def follow(self, stream: BinaryIO) -> None:
        self._thread = threading.Thread(target=self._take, args=(stream,), name="spark-errors", daemon=True)
        self._thread.start()

    def _take(self, stream: BinaryIO) -> None:
        with stream:
            for line in stream:
                self._last = (self._last + line)[-LAST_BYTES:]

    def text(self) -> str:
        """Its last line."""
        if self._thread is not None:
            self._thread.join(1.0)
        lines = self._last.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""
