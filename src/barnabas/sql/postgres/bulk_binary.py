"""Whole columns in Postgres' binary format, by numpy. Nulls stay null."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from barnabas.sql.interface import SqlError
from barnabas.sql.postgres.arrays import Array, Numbers, fixed_size, nulls_of, numbers_of, variable, words_of
from barnabas.sql.postgres.binary_format import EPOCH_DAYS, EPOCH_US, NEGATIVE
from barnabas.sql.postgres.bulk_text import YEAR_1_DAYS, YEAR_1_US, YEAR_10000_DAYS, YEAR_10000_US
from barnabas.sql.postgres.values import microseconds

MOST_DIGITS = 18  # of a decimal whose digits an int64 holds


def number(form: str) -> Callable[[Array], Array | None]:
    """Numbers in a format of numpy."""
    kind = np.dtype(form)

    def bulk(array: Array) -> Array | None:
        numbers = numbers_of(array)
        if kind.kind in "iu" and numbers.dtype.itemsize > kind.itemsize and len(numbers):
            limits = np.iinfo(kind)
            if numbers.min() < limits.min or numbers.max() > limits.max:
                raise SqlError("22003", "value is out of range")
        return nulls_of(fixed_size(numbers.astype(kind)), array)

    return bulk


def boolean(array: Array) -> Array:
    """One byte each."""
    return nulls_of(fixed_size(numbers_of(array.cast(pa.uint8()))), array)


def _shifted(numbers: Array, shift: int, low: int, high: int, form: str) -> Array | None:
    values = numbers_of(numbers)
    if len(values) and (values.min() < low or values.max() >= high):
        return None
    return nulls_of(fixed_size((values - shift).astype(form)), numbers)


def date(array: Array) -> Array | None:
    """Days since 2000."""
    return _shifted(array.cast(pa.date32()).view(pa.int32()), EPOCH_DAYS, YEAR_1_DAYS, YEAR_10000_DAYS, ">i4")


def time(array: Array) -> Array:
    """Microseconds since midnight."""
    us = microseconds(array)
    return nulls_of(fixed_size(numbers_of(us).astype(">i8")), us)


def timestamp(array: Array) -> Array | None:
    """Microseconds since 2000."""
    return _shifted(microseconds(array), EPOCH_US, YEAR_1_US, YEAR_10000_US, ">i8")


def numeric(array: Array) -> Array | None:
    """Decimals of up to 18 digits: the groups of four digits of all rows at once, group after group."""
    kind: Any = array.type
    if not kinds.is_decimal128(kind) or kind.precision > MOST_DIGITS or not 0 <= kind.scale <= kind.precision:
        return None
    words = words_of(array)
    values = np.where(array.is_valid().to_numpy(zero_copy_only=False), words, 0) if array.null_count else words
    size, places = np.abs(values).astype(np.uint64), -(-kind.scale // 4)
    base = np.uint64(10**kind.scale)
    whole, fraction = size // base, size % base * np.uint64(10 ** (4 * places - kind.scale))
    groups = np.zeros((len(values), 5 + places), np.uint64)
    for column in range(4, -1, -1):
        whole, groups[:, column] = np.divmod(whole, np.uint64(10_000))
    for column in range(5 + places - 1, 4, -1):
        fraction, groups[:, column] = np.divmod(fraction, np.uint64(10_000))
    return _numerics(groups, values < 0, kind.scale, array)


def _numerics(groups: Numbers, negative: Numbers, scale: int, array: Array) -> Array:
    """Head and groups of each row, without zeros at either end."""
    rows, width = groups.shape
    used = groups != 0
    some = used.any(axis=1)
    first = np.where(some, used.argmax(axis=1), 0)
    last = np.where(some, width - used[:, ::-1].argmax(axis=1), 0)
    table = np.zeros((rows, 4 + width), ">u2")
    table[:, 0] = last - first
    table[:, 1] = np.where(some, 4 - first, 0).astype(np.int16).view(np.uint16)
    table[:, 2] = np.where(negative, NEGATIVE, 0)
    table[:, 3] = scale
    table[:, 4:] = groups
    columns = np.arange(4 + width)
    kept = (columns < 4) | ((columns - 4 >= first[:, None]) & (columns - 4 < last[:, None]))
    offsets = np.zeros(rows + 1, np.int32)
    np.cumsum(2 * kept.sum(axis=1), out=offsets[1:])
    return nulls_of(variable(offsets, table[kept]), array)
