"""The records of changes of MariaDB and MySQL."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import barnabas
from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.debezium.envelope import SNAPSHOT, TOMBSTONE, Names, enveloped, struct_of
from barnabas.connect.plugins.debezium.table_columns import Filling, nothing_of
from barnabas.connect.plugins.mysql_capture.forms import Form
from barnabas.connect.plugins.mysql_capture.settings import Settings

SOURCE = "io.debezium.connector.mysql.Source"
Row = tuple[Any, ...]


class Shape(NamedTuple):
    """A captured table: its columns, their forms, the places of its key and of the columns that events have, and what stands for nulls."""

    database: str
    table: str
    names: tuple[str, ...]
    forms: tuple[Form, ...]
    key: tuple[int, ...]
    shown: tuple[int, ...]
    fillings: tuple[Filling, ...]

    def columns(self, places: Sequence[int], rows: Sequence[Row | None]) -> Any:
        """A struct of columns of rows; null where there is no row. Raises ConnectError for values without a form."""
        fields, arrays = [], []
        absent = np.array([row is None for row in rows], np.bool_)
        for place in places:
            form, name, filling = self.forms[place], self.names[place], self.fillings[place]
            fields.append(filling.field(name, form.kind, form.name, form.parameters))
            try:
                found = form.column([None if row is None else row[place] for row in rows])
                arrays.append(filling.filled(found, absent, partial(nothing_of, form.kind, form.name)))
            except (pa.ArrowException, ValueError, TypeError, AttributeError, OverflowError) as error:
                raise ConnectError(
                    f"the column {self.database}.{self.table}.{name} has a value that does not fit to its type as it is now: {error}"
                ) from None
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=pa.array(absent))


class Event(NamedTuple):
    """An event of a table.

    Args:
        op: Debezium's letter, or TOMBSTONE.
        old, new: the row before and after.
        file, pos, row: where it is in the binary log.
    """

    op: str
    old: Row | None
    new: Row | None
    file: str = ""
    pos: int = 0
    row: int = 0
    server_id: int = 0
    gtid: str | None = None
    time_us: int = 0
    snapshot: str = "false"


def records_of(shape: Shape, events: Sequence[Event], settings: Settings, now_us: int) -> pa.Table:
    """The records of a table's events. Raises ConnectError for values without a form."""
    after = shape.columns(shape.shown, [each.new for each in events])
    value, key, names = after, None, Names(settings.topic(shape.database, shape.table), SOURCE)
    if not settings.is_flat:
        before = shape.columns(shape.shown, [None if each.op == TOMBSTONE else each.old for each in events])
        ops, is_tombstone = pa.array([each.op for each in events], pa.string()), [each.op == TOMBSTONE for each in events]
        value = enveloped(ops, is_tombstone, before, after, _source(shape, events, settings), now_us, names)
    if shape.key:
        key = shape.columns(shape.key, [each.old if each.new is None else each.new for each in events])
    return names.records(value, key, is_flat=settings.is_flat)


def _source(shape: Shape, events: Sequence[Event], settings: Settings) -> Any:
    count = len(events)
    time_us: Any = pa.array([each.time_us for each in events], pa.int64())
    columns: dict[str, tuple[Any, bool]] = {
        "version": (pa.repeat(barnabas.__version__, count), False),
        "connector": (pa.repeat("mysql", count), False),
        "name": (pa.repeat(settings.prefix, count), False),
        "ts_ms": (pc.divide(time_us, 1000), False),
        "snapshot": (pa.array([each.snapshot for each in events], pa.string()), True),
        "db": (pa.repeat(shape.database, count), False),
        "sequence": (pa.nulls(count, pa.string()), True),
        "ts_us": (time_us, True),
        "ts_ns": (pc.multiply(time_us, 1000), True),
        "table": (pa.repeat(shape.table, count), True),
        "server_id": (pa.array([each.server_id for each in events], pa.int64()), False),
        "gtid": (pa.array([each.gtid for each in events], pa.string()), True),
        "file": (pa.array([each.file for each in events], pa.string()), False),
        "pos": (pa.array([each.pos for each in events], pa.int64()), False),
        "row": (pa.array([each.row for each in events], pa.int32()), False),
        "thread": (pa.nulls(count, pa.int64()), True),
        "query": (pa.nulls(count, pa.string()), True),
    }
    return struct_of(columns, names={"snapshot": SNAPSHOT})
