"""Takes micro-batches of streams, and appends the rows that they make: the tables beside them, the target's topic and the progress stay
in step. No Spark.

Rules
  1. At the beginning, the tables are read up to their ends, in step 0. So no row of a stream misses the row of a table that was there.
  2. A micro-batch then goes as in `kept_view.py`: the flow steps, the sink writes rows and progress under the number of the step, the flow
     commits. After a kill the caller takes it again, and the sink writes nothing twice.
  3. A topic that is read as a table alone is read from its end at the beginning on. Of one that is a stream too, the table leaves out
     the records that it has.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.client.config import ClientConfig
from barnabas.client.results import EARLIEST
from barnabas.engine.driver.job_sink import JobSink
from barnabas.engine.driver.position import Position, StreamOffset, by_topic, note_of
from barnabas.engine.driver.rows import Decoder, RowEncoder
from barnabas.engine.jobs import InputTable, InsertWork, Job, JobProgress
from barnabas.incremental.appending import AppendFlow
from barnabas.incremental.interface import FlowError
from barnabas.tables.client_source import ClientSource
from barnabas.tables.declared import columns_of
from barnabas.tables.row_names import KEY_WORD, ROW
from barnabas.tables.scan import HEADERS
from barnabas.tables.source import Snapshot
from barnabas.tables.table import Table

if TYPE_CHECKING:
    from barnabas.schemas.arrow.columns import RegistryAddress

RECORDS = {"_key": "key", "value": "value", "_partition": "partition", "_offset": "offset", "_timestamp": "timestamp"}


class Begun(msgspec.Struct):
    """What the state has at the beginning: by topic and partition the offsets behind the rows of the tables."""

    tables: dict[str, dict[int, int]]


_BEGUN = msgspec.json.Decoder(Begun)  # made at import, because threads must not make it at once


class Appended:
    """One insert.

    Args:
        settings: of the client, with `bootstrap.servers`.
        flow: of the job's plan.
        progress: the last of the job's generation, if there is one.

    Raises:
        FlowError: the state does not fit the progress.
    """

    def __init__(
        self, job: Job, settings: Mapping[str, str], flow: AppendFlow, *, progress: JobProgress | None = None,
        registry: RegistryAddress | None = None, log: logging.Logger | None = None,
    ) -> None:  # fmt: skip
        assert isinstance(job.work, InsertWork)
        self.job, self.work, self.flow = job, job.work, flow
        given, nodes = self.work.tables, self.work.plan.tables
        self.topics = sorted({each.topic for each in given.values()})
        self._tables = {name: each for name, each in given.items() if not nodes[name].is_stream}
        self._streamed = {each.topic for name, each in given.items() if nodes[name].is_stream}
        self._config = ClientConfig.from_options({**settings, "isolation.level": "read_committed"})
        self._streams = Decoder({name: each for name, each in given.items() if nodes[name].is_stream}, registry)
        self._beside = Decoder(self._tables, registry)
        self._encoder = RowEncoder(self.work.target, registry)
        self._sink = JobSink(job, settings, progress)
        self.position = Position(flow.position, flow.note, progress)
        self._log = log or logging.getLogger(__name__)
        self._has_progress = progress is not None
        self._begun: dict[str, dict[int, int]] = {}

    @property
    def uses_headers(self) -> bool:
        """Whether the headers of records are needed."""
        return self._streams.uses_headers or self._beside.uses_headers

    @property
    def starting_offsets(self) -> str:
        """Where its topics are read from, as the source of Spark takes it; after `begin`."""
        found: dict[str, Any] = {}
        for topic in self.topics:
            places = self._start(topic)
            if places is None:
                found[topic] = "earliest"
                continue
            found[topic] = {str(each): places.get(each, EARLIEST) for each in sorted({*places, *self._ends(topic)})}
        return msgspec.json.encode(found).decode()

    def begin(self) -> None:
        """Take the rows of the tables, and write the first progress. Raises FlowError, ClientError, MicroBatchFailed."""
        began_s = time.monotonic()
        if self.flow.position < 0:
            taken: dict[str, Snapshot] = {}
            sources = {topic: ClientSource(topic, self._config) for topic in {each.topic for each in self._tables.values()}}
            try:
                taken = {topic: source.snapshot() for topic, source in sources.items()}
                ends = {topic: {at: each.end for at, each in found.partitions.items()} for topic, found in taken.items()}
                self.flow.begin(self._parts(sources, taken), msgspec.json.encode(Begun(ends)).decode())
            finally:
                for source in sources.values():
                    source.close()
        begun = self.flow.begun
        if begun is None:
            raise FlowError("the state has no beginning")
        self._begun = _BEGUN.decode(begun).tables
        if not self._has_progress:
            for topic in self.topics:
                start = self._start(topic) or {}
                self._sink.reach({topic: {at: start.get(at, low) for at, (low, _) in self._ends(topic).items()}})
            self._sink.write(0, [], 0, 0, self.flow.size(), began_s)
            self._has_progress = True

    def _start(self, topic: str) -> dict[int, int] | None:
        """Where a topic is read from, by partition; None: from its first record."""
        if topic not in self._streamed:
            return self._begun.get(topic)
        known = self.work.start.get(topic)
        return None if known is None else {int(partition): offset for partition, offset in known.items()}

    def _parts(self, sources: Mapping[str, ClientSource], taken: Mapping[str, Snapshot]) -> Iterator[dict[str, pa.Table]]:
        """The rows of the tables at the beginning, batch by batch."""
        for name, given in self._tables.items():
            has_names = given.key == KEY_WORD
            layout = columns_of(given.topic, key=KEY_WORD if has_names else None)
            table = Table(sources[given.topic], layout, taken[given.topic], newest=given.is_keyed)
            rows = self._beside.rows(name)
            names = [*RECORDS, *([HEADERS] if rows.uses_headers else []), *([ROW] if has_names else [])]
            for batch in table.batches(names):
                if has_names:  # their records' own keys name no rows that nothing changed
                    named = layout.key.encode(batch.select([ROW]))
                    batch = batch.drop_columns([ROW]).set_column(0, "_key", named)
                renamed = [RECORDS.get(each, each.removeprefix("_")) for each in batch.schema.names]
                yield {name: rows.of(pa.Table.from_batches([batch]).rename_columns(renamed))}

    def _ends(self, topic: str) -> dict[int, tuple[int, int]]:
        source = ClientSource(topic, self._config)
        try:
            return {partition: (bounds.start, bounds.end) for partition, bounds in source.snapshot().partitions.items()}
        finally:
            source.close()

    def take(self, records: pa.Table, end: StreamOffset) -> None:
        """Take a micro-batch. Arguments and errors are those of `KeptView.take`."""
        began_s, number = time.monotonic(), self.flow.position + 1
        self._sink.reach(by_topic(end))
        try:
            inputs = {**self._streams.inputs(records), **self._beside.inputs(self._unknown(records))}
            rows = self.flow.step(number, inputs, note_of(end))
            self._check(rows)
            self._sink.count(records.num_rows)
            self._sink.write(
                number,
                self._encoder.records(rows),
                records.num_rows,
                rows.num_rows,
                self.flow.size(),
                began_s,
                late_rows=self.flow.late(),
            )
            self.flow.commit()
        except BaseException:
            self.flow.rollback()
            raise
        self.position.reach(end)
        took_ms = (time.monotonic() - began_s) * 1000
        self._log.info("event=batch number=%d rows=%d appended=%d took_ms=%.0f", number, records.num_rows, rows.num_rows, took_ms)

    def _unknown(self, records: pa.Table) -> pa.Table:
        """The records without those that the tables had at the beginning."""
        for topic in self._streamed & self._begun.keys():
            for partition, end in self._begun[topic].items():
                of_partition = (pc.field("topic") == topic) & (pc.field("partition") == partition)
                if records.num_rows:
                    records = records.filter(~(of_partition & (pc.field("offset") < end)))
        return records

    def _check(self, rows: pa.Table) -> None:
        """Raises FlowError for a null where the target has none."""
        for name in self.work.required:
            if rows.column(name).null_count:
                raise FlowError(f'null value in column "{name}" of "{_shown(self.work.target)}" violates not-null constraint')

    def close(self) -> None:
        """Release the state."""
        self.flow.close()


def _shown(target: InputTable) -> str:
    return target.topic
