"""The writers that Spark sees, for batch and stream; thin over `writing`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from barnabas.pipelines.sink_options import sink_options
from barnabas.pipelines.writing import open_idempotent, write_batches

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql.types import StructType


@dataclass
class Written(WriterCommitMessage):
    """What a task wrote."""

    rows: int


def _columns(schema: StructType) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in schema.fields}


class BatchWriter(DataSourceArrowWriter):
    """`df.write.format("barnabas")`."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._task = sink_options(options, _columns(schema), streaming=False).task

    def write(self, iterator: Iterator[RecordBatch]) -> Written:  # type: ignore[override]
        return Written(write_batches(self._task, iterator, open_idempotent(self._task))[0])


class StreamWriter(DataSourceStreamArrowWriter):
    """`df.writeStream.format("barnabas")`."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._task = sink_options(options, _columns(schema), streaming=True).task

    def write(self, iterator: Iterator[RecordBatch]) -> Written:  # type: ignore[override]
        return Written(write_batches(self._task, iterator, open_idempotent(self._task))[0])

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Everything was acknowledged before."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """What was written stays: at least once."""
