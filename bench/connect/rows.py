"""The rows that connectors are measured with: the same in tables, in files and in topics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa

from barnabas.client.config import ClientConfig
from barnabas.connect.converters.json_converter import JsonConverter
from barnabas.connect.runtime.transaction import TransactionalWriter
from barnabas.pipelines.sink_options import WriteTask

AT_ONCE = 50_000
KINDS: dict[str, pa.DataType] = {
    "id": pa.int64(),
    "name": pa.string(),
    "price": pa.float64(),
    "amount": pa.int32(),
    "note": pa.string(),
}
SCHEMA = pa.schema(KINDS)
SQL_COLUMNS = "id BIGINT PRIMARY KEY, name VARCHAR(40), price DOUBLE PRECISION, amount INT, note VARCHAR(80)"


def table_of(first: int, count: int) -> pa.Table:
    """The rows `first`, `first + 1`, …; each has about 100 bytes as JSON."""
    ids = range(first, first + count)
    columns: list[Any] = [
        pa.array(ids, pa.int64()),
        pa.array([f"user-{each}" for each in ids], pa.string()),
        pa.array([each / 100 for each in ids], pa.float64()),
        pa.array([each % 1000 for each in ids], pa.int32()),
        pa.array([f"the row with the number {each}" for each in ids], pa.string()),
    ]
    return pa.table(columns, schema=SCHEMA)


def fill(bootstrap: str, topic: str, first: int, count: int, *, schemas: bool = False) -> None:
    """Write rows into a topic in one transaction, as JSON with or without schemas; the key of a record is its number."""
    converter = JsonConverter({"schemas.enable": str(schemas).lower()}, is_key=False)
    task = WriteTask(None, client=ClientConfig.from_options({"bootstrap.servers": bootstrap}))
    writer = TransactionalWriter(task, f"rows-of-{topic}")

    def batches() -> Iterator[pa.RecordBatch]:
        for begin in range(first, first + count, AT_ONCE):
            rows = table_of(begin, min(AT_ONCE, first + count - begin))
            columns: dict[str, Any] = {
                "key": rows.column("id").cast(pa.string()).cast(pa.binary()).combine_chunks(),
                "value": converter.encode(rows.to_struct_array().combine_chunks(), topic),
                "topic": pa.repeat(topic, rows.num_rows),
            }
            yield pa.record_batch(columns)

    try:
        writer.begin()
        writer.write(batches())
    finally:
        writer.close()


def lines_of(rows: pa.Table) -> bytes:
    """The rows as JSON, a line each."""
    return b"".join(msgspec.json.encode(each) + b"\n" for each in rows.to_pylist())
