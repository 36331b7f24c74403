"""Debezium's envelope of a change: the row before and after, the source, the operation, and when it was processed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from barnabas.connect.converters.json_schema import NAME, VERSION

TOMBSTONE = "tombstone"
READ, CREATE, UPDATE, DELETE, TRUNCATE = "r", "c", "u", "d", "t"
ENVELOPE_VERSION, SOURCE_VERSION = 2, 1  # of Debezium 3.6
TRANSACTION = pa.struct(
    [
        pa.field("id", pa.string(), nullable=False), pa.field("total_order", pa.int64(), nullable=False),
        pa.field("data_collection_order", pa.int64(), nullable=False),
    ]
)  # fmt: skip
Columns = Mapping[str, tuple[Any, bool]]  # arrays by name, and whether they may be null


class Names(NamedTuple):
    """The names of the schemas of a table's records.

    Args:
        topic: of the table.
        source: of the field with where a change comes from.
    """

    topic: str
    source: str

    @property
    def row(self) -> str:
        """Of the rows before and after a change."""
        return f"{self.topic}.Value"

    def records(self, value: Any, key: Any, *, is_flat: bool) -> pa.Table:
        """Records with their names.

        Args:
            key: None if the table has none.
            is_flat: whether values are rows.
        """
        metadata = noted(self.row) if is_flat else noted(f"{self.topic}.Envelope", ENVELOPE_VERSION)
        columns, fields = [value], [pa.field("value", value.type, metadata=metadata)]
        if key is not None:
            columns.append(key)
            fields.append(pa.field("key", key.type, metadata=noted(f"{self.topic}.Key")))
        return pa.table(columns, schema=pa.schema(fields))


def noted(name: str, version: int | None = None) -> dict[bytes, bytes]:
    """The metadata of a field whose schema has a name."""
    return {NAME: name.encode(), VERSION: b"" if version is None else str(version).encode()}


SNAPSHOT = {
    **noted("io.debezium.data.Enum", 1), b"connect.default": b'"false"',
    b"connect.parameters": b'{"allowed":"true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"}',
}  # fmt: skip


def struct_of(columns: Columns, absent: Any = None, names: Mapping[str, Mapping[bytes, bytes]] | None = None) -> Any:
    """A struct of columns.

    Args:
        absent: the rows that are null, a mask.
        names: metadata of columns whose schema has a name.
    """
    known = names or {}
    fields = [
        pa.field(name, array.type, nullable=optional, metadata=dict(known.get(name, {})) or None)
        for name, (array, optional) in columns.items()
    ]
    mask = pa.array(absent, pa.bool_()) if absent is not None and any(absent) else None
    return pa.StructArray.from_arrays([array for array, _ in columns.values()], fields=fields, mask=mask)


def enveloped(ops: Any, is_tombstone: Any, before: Any, after: Any, source: Any, now_us: int, names: Names) -> Any:
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
    row = noted(names.row)
    known = {"before": row, "after": row, "source": noted(names.source, SOURCE_VERSION), "transaction": noted("event.block", 1)}
    return struct_of(columns, is_tombstone, known)
