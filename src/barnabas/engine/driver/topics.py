"""The topics of jobs as Spark reads them: which jobs may read them together, a stream of them, and a part of them at once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from barnabas.engine.driver.position import StreamOffset
from barnabas.pipelines.offsets import EARLIEST, Offsets, from_stream_offset, to_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

IDLE_WAIT_MS = 2_000  # an idle query asks so often; records end the wait


class Topics(NamedTuple):
    """The topics that a job reads, and how. Jobs of which all of it is equal read together.

    Args:
        most_rows: of a micro-batch.
        pool: Spark's scheduling pool that the jobs name; None: none.
    """

    names: tuple[str, ...]
    with_headers: bool
    most_rows: int
    pool: str | None

    def _options(self, settings: Mapping[str, str]) -> dict[str, str]:
        client = {f"kafka.{name}": value for name, value in settings.items()}
        return {"includeHeaders": str(self.with_headers).lower(), **client}

    def reader_options(self, settings: Mapping[str, str], starting: str) -> dict[str, str]:
        """Options of the source for a reader in the driver."""
        return {
            **self._options(settings),
            "subscribe": ",".join(self.names),
            "startingOffsets": starting,
            "maxOffsetsPerTrigger": str(self.most_rows),
            "commitOffsets": "false",
        }

    def stream(self, spark: SparkSession, settings: Mapping[str, str], start: StreamOffset) -> DataFrame:
        """All records from an offset on, which has every partition."""
        options = self.reader_options(settings, json.dumps(to_json(from_stream_offset(start)[0])))
        return spark.readStream.format("barnabas").options(**options, waitForRecordsMs=str(IDLE_WAIT_MS)).load()

    def part(self, spark: SparkSession, settings: Mapping[str, str], start: StreamOffset, end: StreamOffset) -> pa.Table:
        """The records between two offsets, by a job of Spark."""
        last = from_stream_offset(end)[0]
        partitions: dict[str, list[int]] = {}
        for topic, partition in sorted(last):
            partitions.setdefault(topic, []).append(partition)
        options = {
            **self._options(settings),
            "assign": json.dumps(partitions),
            "startingOffsets": json.dumps(to_json(completed(start, end))),
            "endingOffsets": json.dumps(to_json(last)),
        }
        return spark.read.format("barnabas").options(**options).load().toArrow()


def completed(start: StreamOffset, end: StreamOffset) -> Offsets:
    """The start of each partition that `end` has: a partition that was added begins with its first record."""
    known = from_stream_offset(start)[0]
    return {tp: known.get(tp, EARLIEST) for tp in from_stream_offset(end)[0]}
