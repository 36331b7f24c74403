"""A sequence as a relation of one row: `SELECT last_value FROM s`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from msgspec import Struct

from barnabas.sql.catalog.sequences import Sequence

_FIELDS: list[pa.Field[Any]] = [
    pa.field("last_value", pa.int64()),
    pa.field("log_cnt", pa.int64()),
    pa.field("is_called", pa.bool_()),
]
COLUMNS = pa.schema(_FIELDS)


class SequenceRelation(Struct, frozen=True):
    """A sequence; its row is that of the moment when it was found."""

    name: str
    sequence: Sequence
    columns: pa.Schema = COLUMNS
    hidden: pa.Schema = pa.schema([])
    key_alias: str | None = None
    keys: tuple[str, ...] = ()
    filled: Mapping[str, str] = {}

    def rows(self) -> pa.Table:
        """Its row."""
        return pa.table(
            {"last_value": [self.sequence.last], "log_cnt": [0], "is_called": [self.sequence.is_called]}, schema=COLUMNS
        )
