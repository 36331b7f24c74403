"""A plain model of the capture's stream: one message, one change and one event after the other, as objects of Python.

`test_slot_batches.py` compares the columns of the capture with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from struct import Struct
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

import barnabas
from barnabas.connect.api import Batch
from barnabas.connect.converters.json_schema import NAME
from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.debezium.envelope import (
    CREATE,
    DELETE,
    SNAPSHOT,
    TOMBSTONE,
    TRUNCATE,
    UPDATE,
    Names,
    enveloped,
    struct_of,
)
from barnabas.connect.plugins.postgres_capture.events import UNKNOWN
from barnabas.connect.plugins.postgres_capture.pgoutput import Begin, Relation, relation_of, truncated_of, unreadable
from barnabas.connect.plugins.postgres_capture.settings import Settings
from barnabas.connect.plugins.postgres_capture.shape import Shape

_BEGIN, _COMMIT, _OID = Struct(">qqI"), Struct(">bqqq"), Struct(">I")
_COUNT, _LENGTH = Struct(">h"), Struct(">i")
_NULL, _UNCHANGED, _TEXT = b"nut"
_EPOCH_US = 946_684_800_000_000  # 2000-01-01, from which PostgreSQL counts


class Toast(Enum):
    """A large value that a change left as it was; the stream does not have it."""

    UNCHANGED = "unchanged"


Row = tuple[bytes | Toast | None, ...]


class Commit(NamedTuple):
    """A transaction ends; the next one is behind `end_lsn`."""

    commit_lsn: int
    end_lsn: int


class Change(NamedTuple):
    """A row was inserted (c), updated (u) or deleted (d).

    Args:
        old: the row before, as far as the table's identity has it.
        is_key: whether `old` has the columns of the identity alone.
    """

    oid: int
    op: str
    old: Row | None
    new: Row | None
    is_key: bool = False


def message_of(data: bytes) -> Begin | Commit | Relation | Change | tuple[int, ...] | None:
    """The message in a payload; the tables of a truncation."""
    kind = data[:1]
    if kind in (b"I", b"U", b"D"):
        return _change(kind, data)
    if kind == b"B":
        commit_lsn, time_us, xid = _BEGIN.unpack_from(data, 1)
        return Begin(commit_lsn, time_us + _EPOCH_US, xid)
    if kind == b"C":
        _, commit_lsn, end_lsn, _ = _COMMIT.unpack_from(data, 1)
        return Commit(commit_lsn, end_lsn)
    if kind == b"R":
        return relation_of(data)
    if kind == b"T":
        return truncated_of(data)
    if kind in (b"Y", b"O", b"M"):
        return None
    raise unreadable(data)


def _change(kind: bytes, data: bytes) -> Change:
    (oid,) = _OID.unpack_from(data, 1)
    which = data[5:6]
    if kind == b"I":
        return Change(oid, "c", None, _row(data, 6)[0])
    if kind == b"D":
        return Change(oid, "d", _row(data, 6)[0], None, which == b"K")
    if which == b"N":
        return Change(oid, "u", None, _row(data, 6)[0])
    old, at = _row(data, 6)
    return Change(oid, "u", old, _row(data, at + 1)[0], which == b"K")


def _row(data: bytes, at: int) -> tuple[Row, int]:
    (count,) = _COUNT.unpack_from(data, at)
    at += 2
    values: list[bytes | Toast | None] = []
    for _ in range(count):
        kind = data[at]
        if kind == _TEXT:
            (length,) = _LENGTH.unpack_from(data, at + 1)
            begin, at = at + 5, at + 5 + length
            if at > len(data):
                raise ValueError("a value goes beyond the end")
            values.append(data[begin:at])
        elif kind == _NULL:
            values.append(None)
            at += 1
        elif kind == _UNCHANGED:
            values.append(Toast.UNCHANGED)
            at += 1
        else:
            raise ValueError(f"a value has the unknown kind {kind}")
    return tuple(values), at


class Event(NamedTuple):
    """An event of a table.

    Args:
        op: Debezium's letter, or TOMBSTONE.
        old, new: the row before and after.
        lsn: of the change.
        previous_lsn: behind the commit before its transaction.
        time_us: when its transaction was committed.
        snapshot: Debezium's word for where in a snapshot it is.
    """

    op: str
    old: Row | None
    new: Row | None
    lsn: int = 0
    previous_lsn: int | None = None
    xid: int | None = None
    time_us: int = 0
    snapshot: str = "false"


def events_of(change: Change, shape: Shape, settings: Settings, at: Event) -> list[Event]:
    """The events of a change, in order.

    Args:
        at: an event with the place and the time.
    """
    old, new = change.old, change.new
    if old is not None and new is not None and Toast.UNCHANGED in new:
        has = [each.is_identity or not change.is_key for each in shape.relation.columns]
        new = tuple(was if each is Toast.UNCHANGED and known else each for was, each, known in zip(old, new, has, strict=True))
    if change.op == UPDATE and old is not None and new is not None and _key_differs(old, new, shape):
        return [*_deleted(old, settings, at), *_wanted(at._replace(op=CREATE, new=new), settings)]
    if change.op == DELETE:
        assert old is not None
        return _deleted(old, settings, at)
    before = None if change.is_key else old
    return _wanted(at._replace(op=change.op, old=before, new=new), settings)


def _key_differs(old: Row, new: Row, shape: Shape) -> bool:
    return any(old[place] != new[place] for place in shape.key)


def _wanted(event: Event, settings: Settings) -> list[Event]:
    return [] if event.op in settings.skipped else [event]


def _deleted(old: Row, settings: Settings, at: Event) -> list[Event]:
    return [at._replace(op=op, old=old) for op in settings.deletion]


def records_of(shape: Shape, events: Sequence[Event], settings: Settings, now_us: int) -> pa.Table:
    """The records of a table's events. Raises ConnectError for values without a form."""
    names, key = Names(shape.topic, "io.debezium.connector.postgresql.Source"), None
    value = _flat(shape, events) if settings.is_flat else _enveloped(shape, events, settings, now_us, names)
    if shape.key:
        rows = [None if each.op == TRUNCATE else each.old if each.new is None else each.new for each in events]
        key = columns(shape, shape.key, rows)
    return names.records(value, key, is_flat=settings.is_flat)


def _flat(shape: Shape, events: Sequence[Event]) -> Any:
    return columns(shape, shape.shown, [each.new for each in events])


def _enveloped(shape: Shape, events: Sequence[Event], settings: Settings, now_us: int, names: Names) -> Any:
    before = columns(shape, shape.shown, [None if each.op == TOMBSTONE else each.old for each in events])
    after = columns(shape, shape.shown, [each.new for each in events])
    ops, is_tombstone = pa.array([each.op for each in events], pa.string()), [each.op == TOMBSTONE for each in events]
    return enveloped(ops, is_tombstone, before, after, _source(shape, events, settings), now_us, names)


def _source(shape: Shape, events: Sequence[Event], settings: Settings) -> Any:
    count, relation = len(events), shape.relation
    time_us: Any = pa.array([each.time_us for each in events], pa.int64())
    sequences = [
        f'[{"null" if each.previous_lsn is None else f"{chr(34)}{each.previous_lsn}{chr(34)}"},"{each.lsn}"]' for each in events
    ]
    columns: dict[str, tuple[Any, bool]] = {
        "version": (pa.repeat(barnabas.__version__, count), False),
        "connector": (pa.repeat("postgresql", count), False),
        "name": (pa.repeat(settings.prefix, count), False),
        "ts_ms": (pc.divide(time_us, 1000), False),
        "snapshot": (pa.array([each.snapshot for each in events], pa.string()), True),
        "db": (pa.repeat(settings.database, count), False),
        "sequence": (pa.array(sequences, pa.string()), True),
        "ts_us": (time_us, True),
        "ts_ns": (pc.multiply(time_us, 1000), True),
        "schema": (pa.repeat(relation.schema, count), False),
        "table": (pa.repeat(relation.table, count), False),
        "txId": (pa.array([each.xid for each in events], pa.int64()), True),
        "lsn": (pa.array([each.lsn for each in events], pa.int64()), True),
        **{name: (pa.nulls(count).cast(kind), True) for name, kind in UNKNOWN},
    }
    return struct_of(columns, names={"snapshot": SNAPSHOT})


def columns(shape: Shape, places: Sequence[int], rows: Sequence[Row | None]) -> Any:
    """A struct of columns of rows; null where there is no row. Raises ConnectError for values without a form."""
    absent = pa.array([row is None for row in rows], pa.bool_())
    fields, arrays = [], []
    for place in places:
        form, name = shape.forms[place], shape.relation.columns[place].name
        metadata = None if form.name is None else {NAME: form.name.encode()}
        fields.append(pa.field(name, form.kind, nullable=place not in shape.key, metadata=metadata))
        arrays.append(_column(shape, place, [None if row is None else row[place] for row in rows]))
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=absent)


def _column(shape: Shape, place: int, values: list[Any]) -> Any:
    form = shape.forms[place]
    if Toast.UNCHANGED in values:
        stands = None if form.placeholder is None else form.placeholder.encode()
        values = [stands if each is Toast.UNCHANGED else each for each in values]
    try:
        return form.convert(pa.array(values, pa.binary()).cast(pa.string()))
    except (ConnectError, pa.ArrowException, ValueError) as error:
        relation = shape.relation
        name = f"{relation.schema}.{relation.table}.{relation.columns[place].name}"
        raise ConnectError(f"the column {name} has a value that has no form: {error}") from None


class SlotBatches:
    """The batches of messages.

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

    def receive(self, message: Any, lsn: int) -> None:
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
            case tuple() if self._is_next():
                for oid in message:
                    self._truncate(int(oid), lsn)

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
        elif self._delivered[1]:
            found |= {"commit": self._delivered[0], "seq": self._delivered[1]}
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
