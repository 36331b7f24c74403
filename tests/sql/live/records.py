"""Records as `columnar.decode` makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from barnabas.columnar.decode import SCHEMA

Triple = tuple[bytes | None, bytes | None, int]


def records(triples: Sequence[Triple], partition: int = 0) -> pa.RecordBatch:
    """Records of keys, values and offsets; each has its offset as its time in milliseconds."""
    keys, values, offsets = zip(*triples, strict=True) if triples else ((), (), ())
    columns: list[Any] = [
        pa.array(keys, pa.binary()),
        pa.array(values, pa.binary()),
        pa.nulls(len(triples), pa.string()),
        pa.array([partition] * len(triples), pa.int32()),
        pa.array(offsets, pa.int64()),
        pa.array([each * 1_000 for each in offsets], pa.int64()).cast(pa.timestamp("us", tz="UTC")),
        pa.array([0] * len(triples), pa.int32()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
