"""From events of the binary log to batches of records: counts where in which transaction they are. No socket and no clock.

The offset is `{"file": F, "pos": P}` between two transactions, and has `"row": N` within one: of the transaction that begins there, the
first N rows are in the log of the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from barnabas.connect.api import Batch
from barnabas.connect.plugins.debezium.envelope import CREATE, TRUNCATE, UPDATE
from barnabas.connect.plugins.debezium.signals import OPEN
from barnabas.connect.plugins.mysql_capture.chunks import Chunks
from barnabas.connect.plugins.mysql_capture.events import Event, Row, Shape, records_of
from barnabas.connect.plugins.mysql_capture.logged import LoggedTable
from barnabas.connect.plugins.mysql_capture.settings import Settings

MOST_SHAPES = 10_000  # tables, and forms that they had
Place = tuple[str, int]


class LogBatches:
    """See the module.

    Args:
        offset: from which the binary log is read.
        shape: of a table as the log describes it.
        chunks: incremental snapshots, whose rows come between those of the log.

    Attributes:
        is_news: whether the offset must be kept although there are no records.
    """

    def __init__(
        self, settings: Settings, offset: Mapping[str, Any], shape: Callable[[LoggedTable], Shape], chunks: Chunks | None = None
    ) -> None:
        self._settings, self._shape_of, self._chunks = settings, shape, chunks
        self._done: Place = offset["file"], offset["pos"]
        self._delivered: int = offset.get("row", 0)
        self._since: dict[str, Place] = {name: (file, pos) for name, (file, pos) in offset.get("tables", {}).items()}
        self._shapes: dict[LoggedTable, Shape | None] = {}
        self._by_id: dict[int, Shape | None] = {}
        self._seq = 0
        self._groups: list[tuple[Shape, list[Event]]] = []
        self._last: dict[tuple[str, str], tuple[Shape, list[Event]]] = {}  # of each table: records of a table keep their order
        self.rows = 0
        self.is_news = False

    @property
    def is_open(self) -> bool:
        """Whether a transaction has begun and not ended."""
        return self._seq > 0

    def table_is(self, table_id: int, table: LoggedTable) -> None:
        """The changes with this id are of a table, from here on."""
        if table not in self._shapes:
            if len(self._shapes) >= MOST_SHAPES:
                self._shapes.clear()
            takes = self._settings.takes(table.database, table.table)
            self._shapes[table] = self._shape_of(table) if takes else None
        self._by_id[table_id] = self._shapes[table]

    def forget_shapes(self) -> None:
        """A statement may have given columns of tables other defaults, which the log does not tell."""
        self._shapes.clear()

    def is_captured(self, table_id: int) -> bool:
        """Whether the changes with this id become records."""
        return self._by_id.get(table_id) is not None

    def skip(self, count: int) -> None:
        """Count changes of a table that is not captured."""
        self._seq += count

    def rows_changed(self, table_id: int, changes: Sequence[tuple[Row | None, Row | None]], at: Event) -> None:
        """Take changes of one table: rows before and after.

        Args:
            at: an event with the place and the time.
        """
        shape = self._by_id[table_id]
        if shape is not None and self._is_known(shape, at):
            shape = None
        for number, (old, new) in enumerate(changes):
            self._seq += 1
            if self._seq > self._delivered and shape is not None:
                self._change(shape, old, new, at._replace(row=number))

    def _change(self, shape: Shape, old: Row | None, new: Row | None, at: Event) -> None:
        chunks = self._chunks
        is_signals = chunks is not None and chunks.is_signals(shape)
        if chunks is not None and not is_signals:
            chunks.changed(shape, old, new)
        self._add(shape, events_of(shape, old, new, self._settings, at))
        if chunks is not None and is_signals and old is None and new is not None:
            signal, read, events = chunks.signal(new, at)
            self.is_news |= signal.kind != OPEN
            if read is not None:
                self._add(read, events)

    def table_truncated(self, shape: Shape, at: Event) -> None:
        """A table was emptied."""
        self._seq += 1
        if self._seq > self._delivered and not self._is_known(shape, at):
            self._add(shape, [at._replace(op=TRUNCATE)])
            if self._chunks is not None:
                self._chunks.emptied(shape)

    def _is_known(self, shape: Shape, at: Event) -> bool:
        """Whether the snapshot of a table has what was changed there."""
        return (at.file, at.pos) <= self._since.get(f"{shape.database}.{shape.table}", ("", 0))

    def _add(self, shape: Shape, events: Sequence[Event]) -> None:
        table = shape.database, shape.table
        group = self._last.get(table)
        if group is None or group[0] is not shape:
            group = self._last[table] = shape, []
            self._groups.append(group)
        group[1].extend(events)
        self.rows += len(events)

    def ended(self, place: Place) -> None:
        """A transaction has ended here. The log names its tables again before the next changes, often with other ids."""
        self._done, self._seq, self._delivered = place, 0, 0
        self._by_id.clear()

    def offset(self) -> dict[str, Any]:
        """The offset behind all that was taken."""
        found: dict[str, Any] = {"file": self._done[0], "pos": self._done[1]}
        if row := max(self._seq, self._delivered):
            found["row"] = row
        self._since = {name: place for name, place in self._since.items() if place > self._done}
        if self._chunks is not None:
            found |= self._chunks.reading.offset()
        return found | ({"tables": {name: list(place) for name, place in self._since.items()}} if self._since else {})

    def take(self, partition: Mapping[str, Any], now_us: int) -> list[Batch]:
        """The batches of all that was taken since; the last one has the offset. Raises ConnectError for values without a form."""
        groups = [(shape, events) for shape, events in self._groups if events]
        is_alone, offset = self.is_news and not groups, self.offset()
        self._groups, self._last, self.rows, self.is_news = [], {}, 0, False
        if is_alone:
            return [Batch([], offset, partition)]
        return [
            Batch(
                records_of(shape, events, self._settings, now_us), offset if at == len(groups) else None, partition,
                topic=self._settings.topic(shape.database, shape.table), is_records=True,
            )
            for at, (shape, events) in enumerate(groups, 1)
        ]  # fmt: skip


def events_of(shape: Shape, old: Row | None, new: Row | None, settings: Settings, at: Event) -> list[Event]:
    """The events of one change, in order."""
    if old is not None and new is not None and any(old[place] != new[place] for place in shape.key):
        return [*_deleted(old, settings, at), *events_of(shape, None, new, settings, at)]
    if new is None:
        assert old is not None
        return _deleted(old, settings, at)
    op = CREATE if old is None else UPDATE
    return [] if op in settings.skipped else [at._replace(op=op, old=old, new=new)]


def _deleted(old: Row, settings: Settings, at: Event) -> list[Event]:
    return [at._replace(op=op, old=old) for op in settings.deletion]
