"""Types of parameters that fit their values.

A client declares `numeric` and `int[]`. Arrow's types say more: how many digits a decimal has after its point, how many dimensions a
list has. The first guess is made before there are values, and corrected here.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

MOST_DIGITS = 38


def fitted(given: Sequence[pa.DataType | None], values: Sequence[Any]) -> list[pa.DataType | None] | None:
    """The declared types, corrected; None if they fit as they are."""
    found = [_fitted(kind, value) for kind, value in zip(given, values, strict=False)]
    found += given[len(found) :]
    return None if found == list(given) else found


def _fitted(kind: Any, value: Any) -> Any:
    if isinstance(value, Decimal) and kind is not None and kinds.is_decimal(kind) and value.is_finite():
        return _decimal(kind, value)
    if isinstance(value, list) and kind is not None and kinds.is_list(kind):
        first = next((each for each in value if each is not None), None)
        inner = pa.list_(kind.value_type) if isinstance(first, list) and not kinds.is_list(kind.value_type) else kind.value_type
        return pa.list_(_fitted(inner, first))
    return kind


def _decimal(kind: Any, value: Decimal) -> Any:
    after = max(0, -int(value.as_tuple().exponent))
    before = max(0, value.adjusted() + 1) if value else 0
    if after <= kind.scale and before <= kind.precision - kind.scale:
        return kind
    return pa.decimal128(MOST_DIGITS, min(MOST_DIGITS, max(0, min(max(after, kind.scale), MOST_DIGITS - before))))
