"""Times in records, as `timestamp.granularity` says."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.errors import ConnectError

LOGICAL = "connect_logical"
UNITS: dict[str, tuple[Any, int]] = {
    "micros": (pa.timestamp("us"), 1),
    "nanos": (pa.timestamp("ns"), 1000),
}  # a column of times has microseconds
FORMS = ("long", "string", "iso_datetime_string")
GRANULARITIES = (LOGICAL, *(f"{unit}_{form}" for unit in UNITS for form in FORMS))
ISO = "%Y-%m-%dT%H:%M:%S"  # the seconds have as many digits as the unit


def with_times(rows: pa.Table, granularity: str) -> pa.Table:
    """The rows with their timestamps in the wanted form. Raises ConnectError for a time that has too many nanoseconds."""
    if granularity == LOGICAL:
        return rows
    unit, _, form = granularity.partition("_")  # such as nanos_long
    for at, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            try:
                rows = rows.set_column(at, field.name, _formed(rows.column(at), unit, form))
            except pa.ArrowInvalid as error:
                raise ConnectError(f"a time in the column {field.name} does not fit to {granularity}: {error}") from None
    return rows


def _formed(column: Any, unit: str, form: str) -> Any:
    kind, factor = UNITS[unit]
    if form == "iso_datetime_string":
        return pc.strftime(column.cast(kind), ISO)
    numbers: Any = pc.multiply_checked(column.cast(pa.timestamp("us")).cast(pa.int64()), factor)
    return numbers if form == "long" else numbers.cast(pa.string())
