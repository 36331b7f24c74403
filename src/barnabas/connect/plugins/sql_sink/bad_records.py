"""Finds the records that have no row: those that do not fit to the config, and those that the database refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from barnabas.connect.errors import BadRecords
from barnabas.connect.plugins.databases.database import Database, RowsRefused
from barnabas.connect.plugins.sql_sink.settings import Settings


def check(records: pa.Table, settings: Settings) -> None:
    """Raises BadRecords for records that lack a key or a value which the config needs."""
    found: dict[int, str] = {}
    if not settings.deletes:
        reason = "it has no value. delete.enabled=true lets such a record delete the row with its key"
        found |= dict.fromkeys(_nulls(records, "value"), reason)
    if settings.pk_mode == "record_key":
        found |= dict.fromkeys(_nulls(records, "key"), "it has no key, and pk.mode record_key needs one")
    if found:
        raise BadRecords(found)


def _nulls(records: pa.Table, name: str) -> list[int]:
    column: Any = records.column(name)
    numbers: list[int] = np.flatnonzero(column.is_null().to_numpy()).tolist() if column.null_count else []
    return numbers


def refused(database: Database, count: int, write: Callable[[int, int], None], *, finds_all: bool) -> dict[int, str]:
    """The records that a database refuses, each with the reason. A refused part of a batch is halved, and tried again by halves.

    Records are written in their order, as part of the transaction. So of two with one key the later one is refused.

    Args:
        count: of the records.
        write: writes the records from one number up to another one.
        finds_all: whether others than the first one are wanted.
    """
    found: dict[int, str] = {}
    waiting = [(0, count)]
    while waiting and (finds_all or not found):
        begin, end = waiting.pop()
        try:
            with database.savepoint():
                write(begin, end)
        except RowsRefused as error:
            middle = (begin + end) // 2
            if middle == begin:
                found[begin] = str(error)
            else:
                waiting += [(middle, end), (begin, middle)]
    return found
