"""Events of Debezium as rows: the row after a change, no value for a deletion, and columns of Debezium's types as those of SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.converters.json_schema import PRECISION, name_of
from barnabas.connect.errors import BadRecords
from barnabas.connect.transforms.debezium import envelope
from barnabas.connect.transforms.interface import column, fields_of, struct_of, with_column

if TYPE_CHECKING:
    from barnabas.connect.converters.interface import Array

TIME, DATA = "io.debezium.time.", "io.debezium.data."
NANOS, DAY_US = 1000, 86_400_000_000  # in a microsecond, and of a day
DELETE, TRUNCATE = "d", "t"


class Readable(NamedTuple):
    """Records that a sink of rows takes.

    Args:
        records: without those that change no row.
        numbers: of these records in the batch.
    """

    records: pa.Table
    numbers: list[int]


def rows_of(records: pa.Table, *, deletes: bool) -> Readable:
    """The records with rows as their values, in SQL's types; null is a deletion. Records that are no events keep their values.

    Args:
        deletes: whether deletions stay.

    Raises:
        BadRecords: some have a value that is none of its type.
    """
    values = column(records, "value")
    kept = np.ones(records.num_rows, np.bool_)
    events = envelope(values)
    if events is not None:
        after: Any = events["after"]
        letters = np.array([str(each) for each in events["op"].to_pylist()])
        is_empty, is_deletion = letters == TRUNCATE, letters == DELETE
        kept &= ~is_empty
        values = after if pa.types.is_null(after.type) else _where(after, ~is_deletion)
    if not deletes:
        kept &= values.is_valid().to_numpy(zero_copy_only=False)
    numbers = kept.nonzero()[0].tolist()
    records = with_column(records, "value", values)
    if len(numbers) < len(kept):
        records = records.take(pa.array(numbers, pa.int64())).combine_chunks()
    for side in ("key", "value"):
        if side in records.column_names:
            records = with_column(records, side, _plain(column(records, side), numbers))
    return Readable(records, numbers)


def _where(rows: Any, mask: Any) -> Array:
    """The rows where a mask holds, null elsewhere, with fields as they are."""
    fields: list[Any] = list(rows.type)
    absent = ~(mask & rows.is_valid().to_numpy(zero_copy_only=False))
    made: Array = pa.StructArray.from_arrays(rows.flatten(), fields=fields, mask=pa.array(absent))
    return made


def _plain(values: Array, numbers: list[int]) -> Array:
    """A struct whose fields have types of SQL. Raises BadRecords."""
    if not pa.types.is_struct(values.type):
        return values
    made: dict[str, Array] = {}
    kind: Any = values.type
    for field, each in zip(kind, fields_of(values, "a row").values(), strict=True):
        change = CHANGES.get(name_of(field.metadata) or "")
        try:
            made[field.name] = each if change is None else change(each)
        except (pa.ArrowException, OverflowError, ValueError) as error:
            raise BadRecords(_failing(each, change, field.name, numbers) or {0: f"{field.name}: {error}"}) from error
    return struct_of(made, values)


def _failing(values: Array, change: Any, name: str, numbers: list[int]) -> dict[int, str]:
    """The records whose value of a field cannot be changed, with the reason."""
    found = {}
    for row in range(len(values)):
        try:
            change(values.slice(row, 1))
        except (pa.ArrowException, OverflowError, ValueError) as error:
            found[numbers[row]] = f"the field {name}: {error}"
    return found


def _stamp(unit: Literal["ms", "us", "ns"]) -> Callable[[Any], Any]:
    """Numbers of a unit since 1970, of a date and time without a zone."""
    return lambda values: values.cast(pa.int64()).cast(pa.timestamp(unit)).cast(pa.timestamp("us"), safe=False)


def _of_day(factor: int) -> Callable[[Any], Any]:
    """Numbers since midnight, as times.

    Args:
        factor: microseconds of one.
    """
    return lambda values: _time(pc.multiply(values.cast(pa.int64()), pa.scalar(factor, pa.int64())))


def _time(micros: Any) -> Any:
    """Times of microseconds since midnight. Raises ValueError for more than a day, or less, which a TIME of MariaDB may be."""
    least, most = (pc.min_max(micros)[name].as_py() for name in ("min", "max"))
    if least is not None and (least < 0 or most >= DAY_US):
        raise ValueError(f"{least if least < 0 else most} microseconds are no time of a day")
    return micros.cast(pa.time64("us"))


def _zoned(values: Any) -> Any:
    """Texts in ISO 8601 with an offset."""
    return values.cast(pa.string()).cast(pa.timestamp("us", "UTC"))


def _scaled(values: Any) -> Any:
    """Decimals that have their scale in each value, with the largest scale of them."""
    numbers = [None if each is None else _decimal(each) for each in values.to_pylist()]
    scale = max((-int(each.as_tuple().exponent) for each in numbers if each is not None), default=0)
    return pa.array(numbers).cast(pa.decimal128(PRECISION, max(scale, 0)))


def _decimal(value: Mapping[str, Any]) -> Decimal:
    return Decimal(int.from_bytes(value["value"], "big", signed=True)).scaleb(-value["scale"])


CHANGES: Mapping[str, Callable[[Any], Any]] = {
    f"{TIME}Date": lambda values: values.cast(pa.int32()).cast(pa.date32()),
    f"{TIME}Timestamp": _stamp("ms"),
    f"{TIME}MicroTimestamp": _stamp("us"),
    f"{TIME}NanoTimestamp": _stamp("ns"),
    f"{TIME}ZonedTimestamp": _zoned,
    f"{TIME}Time": _of_day(1000),
    f"{TIME}MicroTime": _of_day(1),
    f"{TIME}NanoTime": lambda values: _time(pc.divide(values.cast(pa.int64()), NANOS)),
    f"{DATA}VariableScaleDecimal": _scaled,
}
