"""Writes what a micro-batch makes, and the progress of its job, in one transaction under the number of the step: exactly once."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from barnabas.engine.jobs import PROGRESS, Job, JobProgress, encode
from barnabas.incremental.interface import Size
from barnabas.pipelines.stream_writer import MicroBatches

Offsets = Mapping[str, Mapping[int, int]]


class JobSink:
    """The sink of one job, and how far the job has come.

    Args:
        settings: of the client, with `bootstrap.servers`.
        progress: the last of the job's generation, if there is one.
    """

    def __init__(self, job: Job, settings: Mapping[str, str], progress: JobProgress | None) -> None:
        self._job = job
        self._batches = _batches(job, settings)
        self.offsets: dict[str, dict[int, int]] = {}
        self._total_in, self._total_out = (0, 0) if progress is None else (progress.total_in, progress.total_out)
        if progress is not None:
            self.reach({topic: {int(at): end for at, end in parts.items()} for topic, parts in progress.offsets.items()})

    def reach(self, ends: Offsets) -> None:
        """Take note of the offsets behind a micro-batch."""
        for topic, parts in ends.items():
            self.offsets.setdefault(topic, {}).update(parts)

    def count(self, rows: int) -> None:
        """Take note of records that were read."""
        self._total_in += rows

    def write(
        self, number: int, batches: Iterable[pa.RecordBatch], rows_in: int, rows_out: int, size: Size, began_s: float, *,
        late_rows: int = 0,
    ) -> None:  # fmt: skip
        """Write records of `sink_rows`, and the progress. A number that was written before writes nothing.

        Raises:
            MicroBatchFailed: they were not written, or the next try completes it.
        """
        self._total_out += rows_out
        progress = JobProgress(
            self._job.name,
            self._job.generation,
            number,
            {topic: {str(partition): end for partition, end in parts.items()} for topic, parts in self.offsets.items()},
            rows_in,
            rows_out,
            self._total_in,
            self._total_out,
            size.rows,
            size.size,
            round((time.monotonic() - began_s) * 1000, 1),
            time.time_ns() // 1_000_000,
            late_rows=late_rows,
        )
        name = self._job.name.encode()
        told = sink_rows(pa.array([name], pa.binary()), pa.array([encode(progress)], pa.binary()), PROGRESS)

        def all_of_it() -> Iterator[pa.RecordBatch]:
            yield from batches
            yield told

        self._batches.write_here(all_of_it(), _query(self._job), number)


def recovered(job: Job, settings: Mapping[str, str]) -> int | None:
    """Complete what an earlier process of a job decided, and undo what it did not; returns the last step whose rows are in the topics.

    Raises:
        MicroBatchFailed: the topics cannot be written now.
    """
    return _batches(job, settings).recover(_query(job))


def _batches(job: Job, settings: Mapping[str, str]) -> MicroBatches:
    options = {f"kafka.{name}": value for name, value in settings.items()}
    # A view's topic goes with the view, also while its job writes.
    return MicroBatches({**options, "createTopics": "false", "sinkName": f"job-{job.name}-{job.generation}"}, _schema())


def _query(job: Job) -> str:
    return f"job-{job.generation}"


def sink_rows(keys: Any, values: Any, topic: str) -> pa.RecordBatch:
    """Records as the sink takes them."""
    return pa.record_batch({"key": keys, "value": values, "topic": pa.repeat(topic, len(keys))})


def _schema() -> Any:
    from pyspark.sql.types import StructType

    return StructType().add("key", "binary").add("value", "binary").add("topic", "string")
