"""Runs a task of a sink: reads records of its partitions, and gives them to the sink batch by batch.

Rules
  1. The offsets are those of the consumer group `connect-NAME`, so lag tools see them, and any worker goes on from them.
  2. Before a batch is given to the sink, its end is committed beside its beginning, as the metadata of the offset. After a kill the
     batch comes again with the same records, so a sink can know it by its identity.
  3. A sink that gathers records says up to which offset they are in its target (`pre_commit`). Nothing behind it is committed.
  4. Of several tasks, each has the partitions whose number it has by the number of tasks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import TopicPartition
from barnabas.connect.api import Identity, Sink
from barnabas.connect.converters.registry import converter
from barnabas.connect.errors import BadRecords, RetriableError
from barnabas.connect.runtime.dead_letters import DeadLetters
from barnabas.connect.runtime.settings import CONSUMER, TaskSettings
from barnabas.connect.runtime.task import Task
from barnabas.connect.runtime.tolerance import KEY, PUT, ROW, VALUE, Failure, Tolerance, transformed
from barnabas.connect.transforms.chain import Chain
from barnabas.connect.transforms.interface import column, with_column
from barnabas.engine.jobs import Job
from barnabas.pipelines.offsets import OffsetRange, Offsets, limit_rows
from barnabas.pipelines.options import read_options
from barnabas.pipelines.planner import Planner
from barnabas.pipelines.read_task import ReadTask
from barnabas.pipelines.reading import read_range

MOST_ROWS = 100_000  # of a batch
WAIT_MS = 1_000  # for records; they end the wait
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 60.0  # before a batch is tried again
Answer = TypeVar("Answer")
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
        self._chain = Chain(given)
        self._transforms = bool(given.get("transforms", "").strip())
        self._tolerance = Tolerance(given, settings.work.task, log)
        self._letters = DeadLetters(self._tolerance, settings)
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
        self._positions: Offsets = {}  # where the next batch begins
        self._safe: Offsets = {}  # what may be committed; not behind the positions
        self._own: Mapping[TopicPartition, int] = {}

    def open(self) -> None:
        self._own = self._sink.open(self._config) or {}

    def _is_mine(self, place: TopicPartition) -> bool:
        work = self.settings.work
        return (crc32(place[0].encode()) + place[1]) % work.tasks == work.task

    def work(self) -> None:
        self._positions, planned = self._begin()
        self._safe = dict(self._positions)
        while not self.stopping.is_set():
            if planned is None:
                planned = self._plan()
                if planned is None:
                    self._planner.wait_for_records(self._positions or self._ends())
                    self._commit_safe(leaves_last=False)
                    self.idle()
                    continue
                self._commit(planned)
            self._batch(planned)
            self._positions = {**self._positions, **planned}
            self._commit_safe(leaves_last=True)
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

    def _commit_safe(self, *, leaves_last: bool) -> None:
        """Commit what the sink has in its target for good, until it has no more.

        Args:
            leaves_last: whether another commit follows, that of the next plan.
        """
        while self._pre_commit():
            if leaves_last and self._safe == self._positions:
                return
            self._commit(None)

    def _pre_commit(self) -> bool:
        """Ask the sink what may be committed; whether that is more than before."""
        given = self._tried(lambda: self._sink.pre_commit(self._positions))
        before = self._safe
        self._safe = {
            place: min(given.get(place, before.get(place, end)), end) for place, end in self._positions.items()
        }  # fmt: skip
        return self._safe != before

    def _commit(self, planned: Offsets | None) -> None:
        begun = {place: end for place, end in (planned or {}).items() if end > self._positions.get(place, 0)}
        texts = {
            place: f"{PLAN}{end}" for place, end in begun.items() if self._safe.get(place, 0) == self._positions.get(place, 0)
        }
        if self._positions:
            self._client.commit_offsets(self.settings.group, {**dict.fromkeys(begun, 0), **self._safe}, texts)

    def _batch(self, end: Offsets) -> None:
        began_s = time.monotonic()
        ranges = [each for each in self._planner.stream_ranges(self._positions, end) if each.size]
        batches = [batch for each in ranges for batch in self._read(each)]
        if not batches:
            return
        read = pa.Table.from_batches(batches).combine_chunks()
        records = self._ready(read)
        bounds = {(each.topic, each.partition): (each.start, each.end) for each in ranges}
        self._write(read, records, Identity(self.settings.work.connector, bounds))
        self.count(read.num_rows, records.num_rows)
        self.log.info("event=batch rows=%d took_ms=%.0f", records.num_rows, (time.monotonic() - began_s) * 1000)

    def _read(self, part: OffsetRange) -> Iterator[pa.RecordBatch]:
        options = self._options
        return read_range(
            ReadTask(
                part, options.client, include_headers=True, fail_on_data_loss=False, poll_timeout_ms=options.poll_timeout_ms
            )
        )  # fmt: skip

    def _ready(self, read: pa.Table) -> pa.Table:
        """The records of a batch, converted and transformed. Raises ConnectError for one that fails, unless errors are tolerated."""
        records, failures = read.append_column(ROW, pa.array(range(read.num_rows), pa.int64())), []
        for name, stage, each in (("key", KEY, self._key), ("value", VALUE, self._value)):
            found = each.decode(column(records, name))
            failures += [Failure(row, stage, type(each).__name__, reason) for row, reason in found.bad.items()]
            records = with_column(records, name, found.column)
        if failures:
            bad = pa.array(sorted({each.row for each in failures}), pa.int64())
            records = records.filter(pc.invert(pc.is_in(column(records, ROW), value_set=bad))).combine_chunks()
        records, more = transformed(self._chain, records, tolerates=self._tolerance.tolerates)
        self._bury(read, [*failures, *more])
        if self._transforms and ROW in records.column_names:
            records = with_column(records, "original_topic", column(read, "topic").take(column(records, ROW)))
        return records

    def _bury(self, read: pa.Table, failures: list[Failure]) -> None:
        """Write dead letters. Raises ConnectError if errors are not tolerated."""
        letters = self._tolerance.handle(read, failures)
        if letters is not None:
            self._letters.write(letters)

    def _write(self, read: pa.Table, records: pa.Table, identity: Identity) -> None:
        while True:
            shown = records.drop_columns([ROW]) if ROW in records.column_names else records
            try:
                self._tried(partial(self._sink.write, shown, identity))
            except BadRecords as error:
                if not self._tolerance.tolerates or ROW not in records.column_names:
                    raise
                rows: list[Any] = column(records, ROW).to_pylist()
                what = type(self._sink).__name__
                self._bury(read, [Failure(rows[each], PUT, what, reason) for each, reason in error.reasons.items()])
                kept = [each for each in range(records.num_rows) if each not in error.reasons]
                records = records.take(pa.array(kept, pa.int64())).combine_chunks()
            else:
                return

    def _tried(self, call: Callable[[], Answer]) -> Answer:
        """The answer of the sink to a call, which is tried again as long as it asks for it."""
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                return call()
            except RetriableError as error:
                self.log.warning("event=sink-tried-again pause_s=%.1f reason=%r", pause_s, str(error))
                if self.stopping.wait(pause_s):
                    raise
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def release(self) -> None:
        self._sink.close()
        self._planner.close()
        self._letters.close()
