"""Columns of different types as one: structs get the fields of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa


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
