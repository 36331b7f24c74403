"""The records of changes: Debezium's envelope, or the row alone.

The changes of a table come as columns. An event becomes a record. Most changes have one, a deletion or another key has several.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import barnabas
from barnabas.connect.plugins.debezium.envelope import (
    CREATE,
    DELETE,
    READ,
    SNAPSHOT,
    TOMBSTONE,
    TRUNCATE,
    UPDATE,
    Names,
    enveloped,
    struct_of,
)
from barnabas.connect.plugins.debezium.signals import INCREMENTAL
from barnabas.connect.plugins.postgres_capture.cells import Cells, Flags, Longs, NoRows, Rows
from barnabas.connect.plugins.postgres_capture.settings import Settings
from barnabas.connect.plugins.postgres_capture.shape import Shape
from barnabas.lazy_module import LazyModule

if TYPE_CHECKING:
    from barnabas.connect.plugins.postgres_capture import kernels
else:
    kernels = LazyModule("barnabas.connect.plugins.postgres_capture.kernels")

Codes = npt.NDArray[np.int8]
OPS = (READ, CREATE, UPDATE, DELETE, TRUNCATE, TOMBSTONE)
IS_READ, IS_CREATE, IS_UPDATE, IS_DELETE, IS_TRUNCATE, IS_TOMBSTONE = range(len(OPS))
MOVED = len(OPS)  # of a change: an update that gives a row another key
SOURCE = "io.debezium.connector.postgresql.Source"
UNKNOWN = (("xmin", "int64"), ("origin", "string"), ("origin_lsn", "int64"))  # fields of Debezium's source without a value here


class Places(NamedTuple):
    """Where changes or events are, each [n].

    Args:
        lsn: of the change.
        previous_lsn: behind the commit before its transaction; -1: not known.
        xid: of its transaction.
        time_us: when its transaction was committed.
    """

    lsn: Longs
    previous_lsn: Longs
    xid: Longs
    time_us: Longs

    def take(self, rows: Longs) -> Places:
        """Some of them."""
        return Places(*(each[rows] for each in self))


class Changes(NamedTuple):
    """Changes of one table.

    Args:
        codes: places in OPS: create, update, delete and truncate.
        is_key: whether the old row has the columns of the identity alone.
    """

    codes: Codes
    old: Cells
    new: Cells
    is_key: Flags
    at: Places


class Events(NamedTuple):
    """Events of one table, as columns.

    Args:
        codes: places in OPS.
        old, new: the rows before and after, as events show them.
        key: the rows that have the keys.
        snapshot: Debezium's words for where in a snapshot they are.
    """

    codes: Codes
    old: Rows
    new: Rows
    key: Rows
    at: Places
    snapshot: Any


def events_of(changes: Changes, shape: Shape, settings: Settings) -> Events:
    """The events of changes, in order."""
    changes = changes._replace(new=_filled(changes, shape))
    codes = changes.codes.copy()
    codes[(codes == IS_UPDATE) & _has_other_key(changes, shape)] = MOVED
    rows, made = _expanded(codes, settings)
    has_new = (made == IS_CREATE) | (made == IS_UPDATE)
    new = changes.new.take(rows, has_new)
    before = changes.old.take(rows, (made == IS_DELETE) | ((made == IS_UPDATE) & ~changes.is_key[rows]))
    if shape.key:
        has_old = (made == IS_DELETE) | (made == IS_TOMBSTONE)
        key: Rows = new.or_else(changes.old.take(rows, has_old), ~has_new)
    else:
        key = NoRows(len(rows))
    return Events(made, before, new, key, changes.at.take(rows), pa.repeat("false", len(rows)))


def _filled(changes: Changes, shape: Shape) -> Cells:
    """The rows after the changes, with the large values that were left as they were, as far as the row before has them."""
    old, new = changes.old, changes.new
    is_unchanged = (new.lengths == kernels.UNCHANGED) & ~old.absent
    if not np.any(is_unchanged):
        return new
    is_identity = np.array([each.is_identity for each in shape.relation.columns], np.bool_)
    taken = is_unchanged & (is_identity[:, None] | ~changes.is_key)
    return Cells(new.data, np.where(taken, old.begins, new.begins), np.where(taken, old.lengths, new.lengths), new.absent)


def _has_other_key(changes: Changes, shape: Shape) -> Flags:
    old, new = changes.old, changes.new
    found = np.zeros(len(changes.codes), np.uint8)
    if not np.all(old.absent | new.absent):
        for place in shape.key:
            kernels.mark_different(
                old.data, old.begins[place], old.lengths[place], new.begins[place], new.lengths[place], found
            )  # fmt: skip
    return found.astype(np.bool_)


def _expanded(codes: Codes, settings: Settings) -> tuple[Longs, Codes]:
    """For each event the number of its change, and its own code."""
    deletion = [OPS.index(each) for each in settings.deletion]
    wanted = {code: [] if OPS[code] in settings.skipped else [code] for code in (IS_CREATE, IS_UPDATE, IS_TRUNCATE)}
    if settings.is_flat:
        wanted[IS_TRUNCATE] = []
    parts = [wanted.get(code, []) for code in range(MOVED + 1)]
    parts[IS_DELETE], parts[MOVED] = deletion, [*deletion, *wanted[IS_CREATE]]
    counts = np.array([len(each) for each in parts])
    each = counts[codes]
    rows = np.repeat(np.arange(len(codes)), each)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(each) - each, each)
    begins = np.cumsum(counts) - counts
    flat = np.array([code for part in parts for code in part], np.int8)
    return rows, flat[begins[codes][rows] + within] if len(rows) else np.empty(0, np.int8)


def records_of(shape: Shape, events: Events, settings: Settings, now_us: int) -> pa.Table:
    """The records of a table's events. Raises ConnectError for values without a form."""
    names = Names(shape.topic, SOURCE)
    value = shape.columns(shape.shown, events.new)
    if not settings.is_flat:
        before = shape.columns(shape.shown, events.old)
        ops = pa.array(np.array(OPS, np.object_)[events.codes], pa.string())
        value = enveloped(ops, events.codes == IS_TOMBSTONE, before, value, _source(shape, events, settings), now_us, names)
    key = shape.columns(shape.key, events.key) if shape.key else None
    return names.records(value, key, is_flat=settings.is_flat)


def _source(shape: Shape, events: Events, settings: Settings) -> Any:
    count, relation, at = len(events.codes), shape.relation, events.at
    time_us: Any = pa.array(at.time_us)
    lsn: Any = pa.array(at.lsn)
    texts: Any = pa.array(at.previous_lsn).cast(pa.string())
    known: Any = pc.binary_join_element_wise('"', texts, '"', "")
    own: Any = lsn
    xid: Any = pa.array(at.xid)
    if count and events.snapshot[0].as_py() == INCREMENTAL:  # a row that was read is no change of a transaction
        own = xid = pa.nulls(count, pa.int64())
    previous: Any = pc.if_else(pa.array(at.previous_lsn >= 0), known, "null")
    columns: dict[str, tuple[Any, bool]] = {
        "version": (pa.repeat(barnabas.__version__, count), False),
        "connector": (pa.repeat("postgresql", count), False),
        "name": (pa.repeat(settings.prefix, count), False),
        "ts_ms": (pc.divide(time_us, 1000), False),
        "snapshot": (events.snapshot, True),
        "db": (pa.repeat(settings.database, count), False),
        "sequence": (pc.binary_join_element_wise("[", previous, ',"', lsn.cast(pa.string()), '"]', ""), True),
        "ts_us": (time_us, True),
        "ts_ns": (pc.multiply(time_us, 1000), True),
        "schema": (pa.repeat(relation.schema, count), False),
        "table": (pa.repeat(relation.table, count), False),
        "txId": (xid, True),
        "lsn": (own, True),
        **{name: (pa.nulls(count).cast(kind), True) for name, kind in UNKNOWN},
    }
    return struct_of(columns, names={"snapshot": SNAPSHOT})
