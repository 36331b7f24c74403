"""Runs a task of a sink: reads records of its partitions, and gives them to the sink batch by batch.

Rules
  1. The offsets are those of the consumer group `connect-NAME`, so lag tools see them, and any worker goes on from them.
  2. Before a batch is given to the sink, its end is committed beside its beginning, as the metadata of the offset. After a kill the
     batch comes again with the same records, so a sink can know it by its identity.
  3. Of several tasks, each has the partitions whose number it has by the number of tasks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from typing import Any
from zlib import crc32

import pyarrow as pa

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import TopicPartition
from barnabas.connect.api import Identity, RetriableError, Sink
from barnabas.connect.converters.registry import converter
from barnabas.connect.runtime.settings import CONSUMER, TaskSettings
from barnabas.connect.runtime.task import Task
from barnabas.engine.jobs import Job
from barnabas.pipelines.offsets import OffsetRange, Offsets, limit_rows
from barnabas.pipelines.options import read_options
from barnabas.pipelines.planner import Planner
from barnabas.pipelines.read_task import ReadTask
from barnabas.pipelines.reading import read_range

MOST_ROWS = 100_000  # of a batch
WAIT_MS = 1_000  # for records; they end the wait
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 60.0  # before a batch is tried again
PLAN = "end="  # metadata of an offset: the batch that begins there ends here


class SinkTask(Task):
    """See the module.

    Args:
        sink: that gets the records.
        config: parsed by the sink's definitions.
    """

    def __init__(self, job: Job, settings: TaskSettings, log: logging.Logger, sink: Sink, config: Mapping[str, Any]) -> None:
        super().__init__(job, settings, log)
        self._sink, self._config = sink, config
        given = settings.work.config
        self._key = converter(given, settings.work.worker, is_key=True)
        self._value = converter(given, settings.work.worker, is_key=False)
        reset = given.get(f"{CONSUMER}auto.offset.reset", "earliest")
        self._options = read_options(
            {
                **settings.options(CONSUMER),
                **settings.topics,
                "startingOffsets": reset,
                "waitForRecordsMs": str(WAIT_MS),
                "includeHeaders": "true",
                "failOnDataLoss": "false",
                "commitOffsets": "false",
            },
            streaming=True,
        )
        self._client = BlockingClient(self._options.client)
        self._planner = Planner(self._options, self._client)
        self._positions: Offsets = {}
        self._own: Mapping[TopicPartition, int] = {}

    def open(self) -> None:
        self._own = self._sink.open(self._config) or {}

    def _is_mine(self, place: TopicPartition) -> bool:
        work = self.settings.work
        return (crc32(place[0].encode()) + place[1]) % work.tasks == work.task

    def work(self) -> None:
        self._positions, planned = self._begin()
        while not self.stopping.is_set():
            if planned is None:
                planned = self._plan()
                if planned is None:
                    self._planner.wait_for_records(self._positions or self._ends())
                    self.idle()
                    continue
                self._commit(planned)
            self._batch(planned)
            self._positions = {**self._positions, **planned}
            planned = self._plan()
            self._commit(planned)
            self.settle()

    def _begin(self) -> tuple[Offsets, Offsets | None]:
        """Where the task begins, and the end of the batch that was begun before."""
        there = [each for each in self._planner.initial() if self._is_mine(each)]
        known = self._client.committed_offsets(self.settings.group, there) if there else {}
        initial = self._planner.initial()
        positions = {place: known[place].offset if known[place].offset >= 0 else initial[place] for place in there}
        planned = {
            place: int(each.metadata.removeprefix(PLAN)) for place, each in known.items() if each.metadata.startswith(PLAN)
        }
        positions |= {place: offset for place, offset in self._own.items() if place in positions}
        planned = {place: end for place, end in planned.items() if end > positions[place]}
        return positions, {**positions, **planned} if planned else None

    def _ends(self) -> Offsets:
        found = self._planner.latest(self._positions, everything=True, now_ms=time.monotonic() * 1000)
        return {place: end for place, end in found.items() if self._is_mine(place)}

    def _plan(self) -> Offsets | None:
        """The end of the next batch; None if there are no records."""
        ends = self._ends()
        start = {place: self._positions.get(place, 0) for place in ends}
        if all(end <= start[place] for place, end in ends.items()):
            return None
        return limit_rows(MOST_ROWS, start, ends)

    def _commit(self, planned: Offsets | None) -> None:
        texts = {place: f"{PLAN}{end}" for place, end in (planned or {}).items() if end > self._positions.get(place, 0)}
        if self._positions:
            self._client.commit_offsets(self.settings.group, {**dict.fromkeys(texts, 0), **self._positions}, texts)

    def _batch(self, end: Offsets) -> None:
        began_s = time.monotonic()
        ranges = [each for each in self._planner.stream_ranges(self._positions, end) if each.size]
        batches = [batch for each in ranges for batch in self._read(each)]
        if not batches:
            return
        records = self._converted(pa.Table.from_batches(batches))
        bounds = {(each.topic, each.partition): (each.start, each.end) for each in ranges}
        self._write(records, Identity(self.settings.work.connector, bounds))
        self.count(records.num_rows, records.num_rows)
        self.log.info("event=batch rows=%d took_ms=%.0f", records.num_rows, (time.monotonic() - began_s) * 1000)

    def _read(self, part: OffsetRange) -> Iterator[pa.RecordBatch]:
        options = self._options
        return read_range(
            ReadTask(
                part, options.client, include_headers=True, fail_on_data_loss=False, poll_timeout_ms=options.poll_timeout_ms
            )
        )  # fmt: skip

    def _converted(self, records: pa.Table) -> pa.Table:
        """Raises ConnectError for a record that cannot be converted."""
        records = records.combine_chunks()
        for name, each in (("key", self._key), ("value", self._value)):
            column = records.column(name).combine_chunks()
            found = each.decode(column)
            if found.bad:
                raise _bad(records, name, found.bad)
            records = records.set_column(records.column_names.index(name), name, found.column)
        return records

    def _write(self, records: pa.Table, identity: Identity) -> None:
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                self._sink.write(records, identity)
            except RetriableError as error:
                wait_s = pause_s if error.pause_s is None else error.pause_s
                self.log.warning("event=batch-tried-again pause_s=%.1f reason=%r", wait_s, str(error))
                if self.stopping.wait(wait_s):
                    raise
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            else:
                return

    def release(self) -> None:
        self._sink.close()
        self._planner.close()


def _bad(records: pa.Table, name: str, bad: Mapping[int, str]) -> Exception:
    from barnabas.connect.api import ConnectError

    row, reason = next(iter(bad.items()))
    place = f"{records['topic'][row]}-{records['partition'][row]} offset {records['offset'][row]}"
    return ConnectError(f"the {name} of {place} cannot be converted: {reason}")
