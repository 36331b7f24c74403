"""Rows of dlt as a table: JSON of any form, times, decimals and objects of libraries."""

from __future__ import annotations

import datetime
import enum
import uuid
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from barnabas.connect.converters.json_text import text_of
from barnabas.connect.errors import ConnectError

PLAIN = (bool, int, float, str, bytes, Decimal, datetime.datetime, datetime.date, datetime.time, datetime.timedelta, type(None))


def table_of(rows: Sequence[Any], resource: str) -> pa.Table:
    """The columns of rows. One whose values have several types, as JSON may have, becomes texts: JSON of each value.

    Raises:
        ConnectError: a row is no dictionary.
    """
    plain = [_plain(row) for row in rows]
    if bad := next((row for row in plain if not isinstance(row, dict)), None):
        raise ConnectError(f"a row of {resource} is {type(bad).__name__}, and no dictionary")
    names = dict.fromkeys(name for row in plain for name in row)
    return pa.table({name: _column([row.get(name) for row in plain]) for name in names})


def _column(values: list[Any]) -> Any:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([each if each is None or isinstance(each, str) else text_of(each).decode() for each in values])


def _plain(value: Any) -> Any:
    """A value of types that Arrow knows; a subclass, such as a time of pendulum, is one of its class."""
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_plain(each) for each in value]
    if isinstance(value, enum.Enum):
        return _plain(value.value)
    if isinstance(value, uuid.UUID):
        return str(value)
    if hasattr(value, "model_dump"):  # a model of pydantic
        return _plain(value.model_dump())
    return value if isinstance(value, PLAIN) else str(value)
