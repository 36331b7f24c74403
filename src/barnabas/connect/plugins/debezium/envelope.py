"""Debezium's envelope of a change: the row before and after, the source, the operation, and when it was processed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

TOMBSTONE = "tombstone"
READ, CREATE, UPDATE, DELETE, TRUNCATE = "r", "c", "u", "d", "t"
TRANSACTION = pa.struct(
    [pa.field("id", pa.string()), pa.field("total_order", pa.int64()), pa.field("data_collection_order", pa.int64())]
)
Columns = Mapping[str, tuple[Any, bool]]  # arrays by name, and whether they may be null


def struct_of(columns: Columns, absent: Any = None) -> Any:
    """A struct of columns.

    Args:
        absent: the rows that are null, a mask.
    """
    fields = [pa.field(name, array.type, nullable=optional) for name, (array, optional) in columns.items()]
    mask = pa.array(absent, pa.bool_()) if absent is not None and any(absent) else None
    return pa.StructArray.from_arrays([array for array, _ in columns.values()], fields=fields, mask=mask)


def enveloped(ops: Any, is_tombstone: Any, before: Any, after: Any, source: Any, now_us: int) -> Any:
    """The values of records: null for tombstones.

    Args:
        ops: a column of texts.
        is_tombstone: a mask.
    """
    count = len(ops)
    columns = {
        "before": (before, True),
        "after": (after, True),
        "source": (source, False),
        "transaction": (pa.nulls(count, TRANSACTION), True),
        "op": (ops, False),
        "ts_ms": (pa.repeat(now_us // 1000, count), True),
        "ts_us": (pa.repeat(now_us, count), True),
        "ts_ns": (pa.repeat(now_us * 1000, count), True),
    }
    return struct_of(columns, is_tombstone)
