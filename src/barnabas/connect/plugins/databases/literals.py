"""Rows as literals of SQL, built by columns: what a statement with many rows has behind VALUES.

A text is in quotes, and a quote in it is doubled. So backslashes must mean themselves: the session has NO_BACKSLASH_ESCAPES, or the
database knows no other way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.plugins.databases.columns import Sort, sort_of

NUMBERS = frozenset({Sort.INT8, Sort.INT16, Sort.INT32, Sort.INT64, Sort.FLOAT32, Sort.FLOAT64})
NOT_NUMBERS = "numbers that are not finite cannot be used with MySQL"


def value_lists(rows: pa.Table, most_rows: int, most_bytes: int) -> Iterator[bytes]:
    """Texts such as `(1,'a'),(2,'b')`, in order.

    Args:
        rows: in plain types; see `columns.py: plain_columns`.
        most_rows: of a text.
        most_bytes: of a text, but it has one row at least.

    Raises:
        ValueError: a number is not finite.
    """
    columns = [_literals(each.combine_chunks()) for each in rows.columns]
    parts: list[Any] = ["("]
    for each in columns:
        parts += [each, ","]
    parts[-1] = ")"
    lists: Any = pc.binary_join_element_wise(*parts, "")
    lists = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
    sizes = pc.binary_length(lists).to_numpy()
    begin, size = 0, 0
    for at, more in enumerate(sizes.tolist()):
        if at > begin and (at - begin >= most_rows or size + more >= most_bytes):
            yield _joined(lists[begin:at])
            begin, size = at, 0
        size += more + 1
    if begin < len(lists):
        yield _joined(lists[begin:])


def _joined(texts: Any) -> bytes:
    whole: Any = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    text: Any = pc.binary_join(whole, ",")
    return bytes(text[0].as_buffer())


def _literals(column: Any) -> Any:
    sort = sort_of(column.type)
    texts: Any
    if sort in NUMBERS:
        if sort in {Sort.FLOAT32, Sort.FLOAT64} and not pc.all(pc.is_finite(column), min_count=0).as_py():
            raise ValueError(NOT_NUMBERS)
        texts = column.cast(pa.string())
    elif sort is Sort.DECIMAL:
        texts = _decimals(column)
    elif sort is Sort.BOOLEAN:
        texts = column.cast(pa.int8()).cast(pa.string())
    elif sort is Sort.BYTES:
        texts = pa.array([None if each is None else f"x'{each.hex()}'" for each in column.to_pylist()], pa.string())
    else:
        texts = pc.binary_join_element_wise("'", pc.replace_substring(column.cast(pa.string()), "'", "''"), "'", "")
    return pc.fill_null(texts, "NULL")


def _decimals(column: Any) -> Any:
    """Texts without an exponent: a number with one is a float for the database, and has fewer digits."""
    texts: Any = column.cast(pa.string())
    if not pc.any(pc.match_substring(texts, "E"), min_count=0).as_py():
        return texts
    return pa.array([None if each is None else f"{each:f}" for each in column.to_pylist()], pa.string())
