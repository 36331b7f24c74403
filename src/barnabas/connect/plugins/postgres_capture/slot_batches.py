"""From the messages of a slot to batches of records: counts where in which transaction they are.

No socket and no clock: `receive` takes a message, `take` gives what came together.

The offset is `{"lsn": L}` between two transactions: the next one has its commit record at L or behind it. Within a transaction it is
`{"lsn": L, "commit": C, "seq": N}`: of the transaction with the commit record at C, which is the next one behind L, the first N changes
are in the log. The server sends a transaction each time with the same changes in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from barnabas.connect.api import Batch
from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.debezium.envelope import TRUNCATE
from barnabas.connect.plugins.postgres_capture.events import Event, events_of, records_of
from barnabas.connect.plugins.postgres_capture.pgoutput import Begin, Change, Commit, Message, Relation, Truncate
from barnabas.connect.plugins.postgres_capture.settings import Settings
from barnabas.connect.plugins.postgres_capture.shape import Shape


class SlotBatches:
    """See the module.

    Args:
        offset: from which the slot sends.
        shape: of a table, as it is from a message on.
    """

    def __init__(self, settings: Settings, offset: Mapping[str, Any], shape: Callable[[Relation], Shape]) -> None:
        self._settings, self._shape_of = settings, shape
        self.done_lsn: int = offset["lsn"]
        self._delivered: tuple[int | None, int] = offset.get("commit"), offset.get("seq", 0)
        self._since: dict[str, int] = dict(offset.get("tables", {}))
        self._shapes: dict[int, Shape | None] = {}
        self._open: Begin | None = None
        self._seq = 0
        self._previous: int | None = None
        self._groups: list[tuple[Shape, list[Event]]] = []
        self._by_table: dict[int, list[Event]] = {}
        self.rows = 0

    @property
    def is_open(self) -> bool:
        """Whether a transaction has begun and not ended."""
        return self._open is not None

    def receive(self, message: Message, lsn: int) -> None:
        """Take a message. Raises ConnectError for one that does not fit."""
        match message:
            case Change():
                if self._is_next():
                    self._change(message, lsn)
            case Begin():
                self._open, self._seq = message, 0
                commit, _ = self._delivered
                if commit is not None and commit != message.commit_lsn:
                    raise ConnectError(
                        f"the slot goes on with the transaction at {message.commit_lsn}, and the one at {commit} is in the topics in part: "
                        "the slot was advanced by others"
                    )
            case Commit():
                self._previous = self.done_lsn = message.end_lsn
                self._open, self._delivered = None, (None, 0)
            case Relation():
                takes = self._settings.takes(message.schema, message.table)
                self._shapes[message.oid] = self._shape_of(message) if takes else None
                self._by_table.pop(message.oid, None)
            case Truncate() if self._is_next():
                for oid in message.oids:
                    self._truncate(oid, lsn)

    def _is_next(self) -> bool:
        """Count a change; whether it is not in the log."""
        if self._open is None:
            raise ConnectError("the slot sent a change outside of a transaction")
        self._seq += 1
        return self._seq > self._delivered[1]

    def _wanted(self, oid: int) -> Shape | None:
        if oid not in self._shapes:
            raise ConnectError(f"the slot sent a change of the table {oid} before the table itself")
        shape = self._shapes[oid]
        assert self._open is not None
        if shape is not None and self._since:
            name = f"{shape.relation.schema}.{shape.relation.table}"
            if self._open.commit_lsn < self._since.get(name, 0):
                return None  # the snapshot of the table has it
        return shape

    def _at(self, lsn: int) -> Event:
        assert self._open is not None
        return Event("", None, None, lsn, self._previous, self._open.xid, self._open.time_us)

    def _change(self, change: Change, lsn: int) -> None:
        shape = self._wanted(change.oid)
        if shape is not None:
            self._add(change.oid, shape, events_of(change, shape, self._settings, self._at(lsn)))

    def _truncate(self, oid: int, lsn: int) -> None:
        shape = self._wanted(oid)
        if shape is not None and TRUNCATE not in self._settings.skipped and not self._settings.is_flat:
            self._add(oid, shape, [self._at(lsn)._replace(op=TRUNCATE)])

    def _add(self, oid: int, shape: Shape, events: list[Event]) -> None:
        group = self._by_table.get(oid)
        if group is None:
            group = self._by_table[oid] = []
            self._groups.append((shape, group))
        group += events
        self.rows += len(events)

    def offset(self) -> dict[str, Any]:
        """The offset behind all that was received."""
        found: dict[str, Any] = {"lsn": self.done_lsn}
        if self._open is not None and self._seq:
            found |= {"commit": self._open.commit_lsn, "seq": max(self._seq, self._delivered[1])}
        self._since = {name: lsn for name, lsn in self._since.items() if lsn > self.done_lsn}
        return found | ({"tables": self._since} if self._since else {})

    def take(self, partition: Mapping[str, Any], now_us: int) -> list[Batch]:
        """The batches of all that was received since; the last one has the offset. Raises ConnectError for values without a form."""
        groups = [(shape, events) for shape, events in self._groups if events]
        self._groups, self._by_table, self.rows = [], {}, 0
        offset = self.offset()
        return [
            Batch(
                records_of(shape, events, self._settings, now_us), offset if at == len(groups) else None, partition,
                topic=shape.topic, is_records=True,
            )
            for at, (shape, events) in enumerate(groups, 1)
        ]  # fmt: skip
