"""SUBSCRIBE: the rows of a table or a view, then each change when it is committed.

Columns: `_offset`, the text to resume behind the row; `_deleted`, whether the row of this key is gone (then only the key has values); the
table's columns, and `_row` of a table whose rows have names. Batches without rows come while nothing changes: who takes the rows then
looks whether they are still wanted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.client.batches import next_offset
from barnabas.client.results import EARLIEST
from barnabas.columnar.decode import RecordDecoder
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.interface import SqlError
from barnabas.sql.live.reading import NewRecords, TableChanged
from barnabas.tables.memory_scan import MemoryScan
from barnabas.tables.row_names import are_own
from barnabas.tables.table import Table

if TYPE_CHECKING:
    from barnabas.sql.statements.host import Host

OFFSET, DELETED = "_offset", "_deleted"
WAIT_MS = 250  # of a Fetch that finds nothing: then a batch without rows comes
SEVERAL_WAIT_MS = 20  # of topics with several partitions, whose answers are awaited together
Positions = dict[int, int]


def schema_of(relation: TopicRelation) -> pa.Schema:
    """The columns of a subscription."""
    own: list[pa.Field[Any]] = [pa.field(OFFSET, pa.string()), pa.field(DELETED, pa.bool_())]
    return pa.schema([*own, *(each.with_nullable(True) for each in relation.identified)])


class Subscription:
    """A result that does not end by itself.

    Args:
        start: positions to begin at, by partition; None to begin at what is there now.
        with_snapshot: whether the rows of this moment come first.
    """

    tag, is_live = "SUBSCRIBE", True

    def __init__(
        self, session: Host, relation: TopicRelation, start: Positions | None, *, with_snapshot: bool, text: str
    ) -> None:
        self._session, self._relation, self._text = session, relation, text
        self._start, self._with_snapshot = start, with_snapshot
        self.schema: pa.Schema | None = schema_of(relation)
        self._names = list(relation.identified.names)
        self._open = True
        session.running.hold(self)
        session.running.limit(session.settings.milliseconds("statement_timeout") / 1000)  # not that of the server

    def interrupt(self) -> None:
        """The statement was cancelled; the next step sees it."""

    def close(self) -> None:
        """Release it; safe to call twice. The session's statement calls it too."""
        if self._open:
            self._open = False
            self._session.running.release(self)

    def batches(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._rows()
        except SqlError:
            raise
        except TableChanged:
            text = f'"{self._relation.name}" was dropped, or lost records that were not read yet'
            raise SqlError("55000", text, hint="subscribe again") from None
        except Exception as error:
            raise self._session.translated(error, self._text) from error
        finally:
            self.close()

    def _rows(self) -> Iterator[pa.RecordBatch]:
        topic = self._relation.topic
        snapshot = self._session.access.snapshot(topic)
        if self._start is None:
            positions = {number: bounds.end for number, bounds in snapshot.partitions.items()}
        else:
            positions = {number: self._start.get(number, bounds.start) for number, bounds in snapshot.partitions.items()}
        if self._with_snapshot:
            table = Table(self._session.access.source(topic), self._relation.layout, snapshot, newest=self._relation.is_keyed)
            for batch in table.batches(self._names):
                self._session.running.check()
                yield self._made(batch, pa.array([_text(positions)] * batch.num_rows, pa.string()), None)
        yield self._nothing()
        yield from self._changes(positions)

    def _changes(self, positions: Positions) -> Iterator[pa.RecordBatch]:
        client = self._session.client
        found = client.topics_by_name([self._relation.topic]).get(self._relation.topic)
        if found is None:
            raise TableChanged
        wait_ms = WAIT_MS if len(found.partitions) == 1 else SEVERAL_WAIT_MS
        config = replace(client.config, read_committed=True, fetch_max_wait_ms=wait_ms, fetch_min_bytes=1)
        reading = NewRecords(client, self._relation.topic, found.topic_id, config)
        while True:
            self._session.running.check()
            for partition in reading.partitions():
                if partition not in positions:
                    place = self._relation.topic, partition
                    positions[partition] = client.list_offsets({place: EARLIEST})[place].offset
            news = 0
            for partition, answer in client.run(reading.fetch(positions)).items():
                decoder = RecordDecoder(self._relation.topic, partition)
                if len(answer.records):
                    for records in decoder.decode(answer.records, positions[partition], aborted=answer.aborted):
                        made = self._changed(records, positions, partition)
                        news += made.num_rows
                        yield made
                    positions[partition] = max(positions[partition], next_offset(answer.records, positions[partition]))
            if not news:
                yield self._nothing()

    def _changed(self, records: pa.RecordBatch, positions: Positions, partition: int) -> pa.RecordBatch:
        if self._relation.has_row_names:
            is_row = pc.is_valid(records.column("value"))
            records = records.filter(pc.or_(is_row, pc.invert(are_own(records))))
        elif self._relation.is_keyed:
            records = records.filter(pc.is_valid(records.column("key")))
        rows = MemoryScan(self._relation.topic, self._relation.layout, self._names, records).table()
        offsets: list[Any] = records.column("offset").to_pylist()
        texts = [_text({**positions, partition: offset + 1}) for offset in offsets]
        deleted = pc.is_null(records.column("value")) if self._relation.is_keyed else None
        if not rows.num_rows:
            return self._nothing()
        return self._made(rows.combine_chunks().to_batches()[0], pa.array(texts, pa.string()), deleted)

    def _made(self, batch: pa.RecordBatch, offsets: Any, deleted: Any) -> pa.RecordBatch:
        if deleted is None:
            deleted = pa.array([False] * batch.num_rows, pa.bool_())
        assert self.schema is not None
        columns = [offsets, deleted, *(batch.column(name) for name in self._names)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _nothing(self) -> pa.RecordBatch:
        assert self.schema is not None
        return pa.RecordBatch.from_arrays([pa.array([], each.type) for each in self.schema], schema=self.schema)


def _text(positions: Mapping[int, int]) -> str:
    return ",".join(f"{number}:{offset}" for number, offset in sorted(positions.items()))


def positions_of(text: str) -> Positions:
    """The positions that a text such as `0:17,1:4` has. Raises SqlError."""
    found: Positions = {}
    for part in text.split(","):
        number, _, offset = part.strip().partition(":")
        if not (number.isdecimal() and offset.isdecimal() and len(number) < 10 and len(offset) < 19):
            raise SqlError("22023", f'"{text}" is no position', hint="FROM takes the text of the column _offset, such as '0:17'")
        found[int(number)] = int(offset)
    return found


def names_of(relation: TopicRelation) -> Sequence[str]:
    """The columns that a subscription cannot have beside its own."""
    return [name for name in relation.columns.names if name in (OFFSET, DELETED)]
