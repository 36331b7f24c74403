"""From events of the binary log to batches of records: counts where in which transaction they are. No socket and no clock.

The offset is `{"file": F, "pos": P}` between two transactions, and has `"row": N` within one: of the transaction that begins there, the
first N rows are in the log of the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from barnabas.connect.api import Batch
from barnabas.connect.plugins.debezium.envelope import CREATE, UPDATE
from barnabas.connect.plugins.mysql_capture.events import Event, Row, Shape, records_of
from barnabas.connect.plugins.mysql_capture.settings import Settings

Place = tuple[str, int]


class LogBatches:
    """See the module.

    Args:
        offset: from which the binary log is read.
        shape: of a table with these columns.
    """

    def __init__(
        self, settings: Settings, offset: Mapping[str, Any], shape: Callable[[str, str, Sequence[str]], Shape]
    ) -> None:  # fmt: skip
        self._settings, self._shape_of = settings, shape
        self._done: Place = offset["file"], offset["pos"]
        self._delivered: int = offset.get("row", 0)
        self._since: dict[str, Place] = {name: (file, pos) for name, (file, pos) in offset.get("tables", {}).items()}
        self._shapes: dict[tuple[str, str, tuple[str, ...]], Shape] = {}
        self._seq = 0
        self._groups: dict[int, tuple[Shape, list[Event]]] = {}
        self.rows = 0

    @property
    def is_open(self) -> bool:
        """Whether a transaction has begun and not ended."""
        return self._seq > 0

    def rows_changed(
        self, database: str, table: str, names: Sequence[str], changes: Sequence[tuple[Row | None, Row | None]], at: Event
    ) -> None:  # fmt: skip
        """Take changes of one table: rows before and after.

        Args:
            at: an event with the place and the time.
        """
        takes = self._settings.takes(database, table)
        shape = self._shape(database, table, tuple(names)) if takes else None
        if (at.file, at.pos) <= self._since.get(f"{database}.{table}", ("", 0)):
            shape = None  # the snapshot of the table has it
        for number, (old, new) in enumerate(changes):
            self._seq += 1
            if self._seq > self._delivered and shape is not None:
                events = events_of(shape, old, new, self._settings, at._replace(row=number))
                self._groups.setdefault(id(shape), (shape, []))[1].extend(events)
                self.rows += len(events)

    def _shape(self, database: str, table: str, names: tuple[str, ...]) -> Shape:
        where = database, table, names
        if where not in self._shapes:
            self._shapes[where] = self._shape_of(database, table, names)
        return self._shapes[where]

    def schema_changed(self) -> None:
        """A statement may have changed tables."""
        self._shapes = {}

    def ended(self, place: Place) -> None:
        """A transaction has ended here."""
        self._done, self._seq, self._delivered = place, 0, 0

    def offset(self) -> dict[str, Any]:
        """The offset behind all that was taken."""
        found: dict[str, Any] = {"file": self._done[0], "pos": self._done[1]}
        if self._seq:
            found["row"] = max(self._seq, self._delivered)
        self._since = {name: place for name, place in self._since.items() if place > self._done}
        return found | ({"tables": {name: list(place) for name, place in self._since.items()}} if self._since else {})

    def take(self, partition: Mapping[str, Any], now_us: int) -> list[Batch]:
        """The batches of all that was taken since; the last one has the offset. Raises ConnectError for values without a form."""
        groups = [(shape, events) for shape, events in self._groups.values() if events]
        self._groups, self.rows = {}, 0
        offset = self.offset()
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
