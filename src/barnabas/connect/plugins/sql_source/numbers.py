"""Exact numbers of databases as plain ones, as `numeric.mapping` says."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

NONE, PRECISION_ONLY, BEST_FIT, EAGER = "none", "precision_only", "best_fit", "best_fit_eager_double"
MAPPINGS = (NONE, PRECISION_ONLY, BEST_FIT, EAGER)
MOST_DIGITS = 18  # of a number that fits into 64 bits whatever its digits are
_INTEGERS = ((2, pa.int8()), (4, pa.int16()), (9, pa.int32()), (MOST_DIGITS, pa.int64()))  # by the most digits that they hold


def mapped(rows: pa.Table, mapping: str) -> pa.Table:
    """The rows with their decimals in the types that the mapping chooses by precision and scale."""
    if mapping == NONE:
        return rows
    for at, field in enumerate(rows.schema):
        kind = None if not pa.types.is_decimal(field.type) else _kind(field.type, mapping)
        if kind is not None:
            rows = rows.set_column(at, field.name, pc.cast(rows.column(at), kind))
    return rows


def _kind(decimal: Any, mapping: str) -> Any:
    """The type of a column of decimals; None: it stays what it is."""
    if decimal.scale <= 0:
        return next((kind for digits, kind in _INTEGERS if decimal.precision <= digits), None)
    if mapping == EAGER or (mapping == BEST_FIT and decimal.precision <= MOST_DIGITS):
        return pa.float64()
    return None
