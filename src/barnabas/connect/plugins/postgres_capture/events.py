"""The records of changes: Debezium's envelope, or the row alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

import barnabas
from barnabas.connect.plugins.debezium.envelope import CREATE, DELETE, TOMBSTONE, TRUNCATE, UPDATE, enveloped, struct_of
from barnabas.connect.plugins.postgres_capture.pgoutput import Change, Row, Toast
from barnabas.connect.plugins.postgres_capture.settings import Settings
from barnabas.connect.plugins.postgres_capture.shape import Shape

UNKNOWN = (("xmin", "int64"), ("origin", "string"), ("origin_lsn", "int64"))  # fields of Debezium's source without a value here


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
        new = tuple(was if each is Toast.UNCHANGED and not change.is_key else each for was, each in zip(old, new, strict=True))
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
    made = _flat(shape, events) if settings.is_flat else _enveloped(shape, events, settings, now_us)
    if shape.key:
        rows = [None if each.op == TRUNCATE else each.old if each.new is None else each.new for each in events]
        made["key"] = shape.columns(shape.key, rows)
    return pa.table(made)


def _flat(shape: Shape, events: Sequence[Event]) -> dict[str, Any]:
    return {"value": shape.columns(shape.shown, [each.new for each in events])}


def _enveloped(shape: Shape, events: Sequence[Event], settings: Settings, now_us: int) -> dict[str, Any]:
    before = shape.columns(shape.shown, [None if each.op == TOMBSTONE else each.old for each in events])
    after = shape.columns(shape.shown, [each.new for each in events])
    return {"value": enveloped([each.op for each in events], before, after, _source(shape, events, settings), now_us)}


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
    return struct_of(columns)
