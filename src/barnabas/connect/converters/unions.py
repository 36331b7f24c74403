"""Columns of different types as one: structs get the fields of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from barnabas.connect.converters.interface import Array


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Tables as one. A field that some lack is null there, and so it may be null in all.

    Raises:
        pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError: a field has types that have nothing in common.
    """
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowTypeError:
        relaxed = [each.cast(pa.schema([_relaxed(field) for field in each.schema])) for each in tables]
        return pa.concat_tables(relaxed, promote_options="permissive")


def _relaxed(field: pa.Field[Any]) -> pa.Field[Any]:
    kind: Any = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_relaxed(each) for each in kind])
    return pa.field(field.name, kind, metadata=field.metadata)


def scattered(parts: Sequence[tuple[Any, Array]], count: int) -> Array:
    """Columns of some rows each as one, null at the other rows. Raises as `joined` does.

    Args:
        parts: the numbers of rows, and their values in this order.
        count: of all rows.
    """
    if not parts:
        return pa.nulls(count)
    if len(parts) == 1 and len(parts[0][0]) == count:
        return parts[0][1]
    whole = joined([pa.table({"value": part}) for _, part in parts])
    place = np.full(count, -1, np.int64)
    place[np.concatenate([rows for rows, _ in parts])] = np.arange(whole.num_rows)
    made: Array = whole.column("value").combine_chunks().take(pa.array(place, pa.int64(), mask=place < 0))
    return made
