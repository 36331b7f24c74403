"""The columns of a table from the words that a user gives."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from barnabas.tables.errors import TableError
from barnabas.tables.formats import Raw
from barnabas.tables.scan import MODES, Columns

FORMATS = ("raw", "text")


def columns_of(
    topic: str,
    *,
    format: str = "raw",  # noqa: A002 - the word that users write
    columns: Any = None,
    key: Any = None,
    registry: Any = None,
    mode: str = "permissive",
) -> Columns:
    """The columns of a table.

    Args:
        format: of values: `raw` for a column of bytes, `text` for a column of text.
        key: `raw` or `text`.
        mode: of records that do not fit: `permissive`, `drop` or `fail`.

    Raises:
        TableError: the words do not fit each other.
    """
    if format not in FORMATS:
        raise TableError(f"the format is {format!r}; it can be {', '.join(FORMATS)}")
    if key not in (None, *FORMATS) or columns is not None:
        raise TableError("only raw and text tables can be read")
    if mode not in MODES:
        raise TableError(f"the mode is {mode!r}; it can be {', '.join(MODES)}")
    return Columns(Raw("_key", _kind(key or "raw")), Raw("value", _kind(format)), mode)


def _kind(name: str) -> pa.DataType:
    return pa.string() if name == "text" else pa.binary()
