"""Writes rows to a file: Parquet, CSV, JSON lines or Arrow IPC, batch by batch.

Rules
  1. A file gets its name when it is complete. Until then it is a hidden file beside it, and a failure removes that.
  2. Memory is that of some batches.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from barnabas.tables.errors import TableError
from barnabas.tables.rendering import json_lines, text_schema, text_table

ENDINGS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".arrow": "arrow",
    ".feather": "arrow",
}
ROW_GROUP_ROWS = 1 << 18  # of Parquet: small groups compress worse, large ones take memory
Write = Callable[[pa.RecordBatch], Any]


def format_of(path: str, given: str | None) -> str:
    """The format for a file: the one that is given, or that of its ending. Raises TableError."""
    found = given or ENDINGS.get(Path(path).suffix.lower())
    if found is None:
        raise TableError(f"the ending of {path} names no format; there are {', '.join(ENDINGS)}")
    return found


def export(batches: Iterable[pa.RecordBatch], schema: pa.Schema, file: IO[bytes], form: str) -> int:
    """Write rows; their number.

    Args:
        form: `parquet`, `csv`, `json` (an object a line) or `arrow` (a file of Arrow IPC).
    """
    rows = 0
    with WRITERS[form](file, schema) as write:
        for batch in batches:
            write(batch)
            rows += batch.num_rows
    return rows


@contextmanager
def replaced(path: str) -> Iterator[IO[bytes]]:
    """A file that takes the place of `path` at the end of the context, and is removed if the context fails.

    Raises:
        TableError: the file cannot be written.
    """
    target = Path(path)
    hidden = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with hidden.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        hidden.replace(target)
    except OSError as error:
        raise TableError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            hidden.unlink()


@contextmanager
def _parquet(file: IO[bytes], schema: pa.Schema) -> Iterator[Write]:
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        waiting: list[pa.RecordBatch] = []

        def flush() -> None:
            if waiting:
                writer.write_table(pa.Table.from_batches(waiting, schema), row_group_size=ROW_GROUP_ROWS)
                waiting.clear()

        def write(batch: pa.RecordBatch) -> None:
            waiting.append(batch)
            if sum(each.num_rows for each in waiting) >= ROW_GROUP_ROWS:
                flush()

        yield write
        flush()


@contextmanager
def _csv(file: IO[bytes], schema: pa.Schema) -> Iterator[Write]:
    with arrow_csv.CSVWriter(file, text_schema(schema)) as writer:
        yield lambda batch: writer.write_batch(text_table(batch))


@contextmanager
def _json(file: IO[bytes], schema: pa.Schema) -> Iterator[Write]:
    yield lambda batch: file.write(json_lines(batch))


@contextmanager
def _arrow(file: IO[bytes], schema: pa.Schema) -> Iterator[Write]:
    with pa.ipc.new_file(pa.PythonFile(cast("Any", file), mode="w"), schema) as writer:
        yield writer.write_batch


WRITERS: dict[str, Callable[[IO[bytes], pa.Schema], Any]] = {"parquet": _parquet, "csv": _csv, "json": _json, "arrow": _arrow}
FORMATS = tuple(WRITERS)
