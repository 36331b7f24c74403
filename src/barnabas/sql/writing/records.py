"""Rows as records: the form that the encoder of record batches takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa


def record_batch(keys: Sequence[bytes | None] | Any, values: Sequence[bytes | None] | Any) -> pa.RecordBatch:
    """Keys and values as a batch; each a list of bytes or an array."""
    return pa.RecordBatch.from_arrays([pa.array(keys, pa.binary()), pa.array(values, pa.binary())], names=["key", "value"])
