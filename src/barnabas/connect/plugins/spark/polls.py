"""Polls of a format or a table of Spark: which rows one has, and the position behind them.

A poll first asks for the greatest number and time, and reads rows up to these. So the ranges of a partitioned reading, which Spark reads
one after the other, fit together.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.spark.jdbc import option, raise_if_driver_is_missing
from barnabas.connect.plugins.spark.settings import Settings
from barnabas.connect.plugins.sql_source.position import Position

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


class Ends(Struct, frozen=True):
    """The greatest values of a poll, and the bounds of its ranges; None where there are no rows or nobody asked."""

    number: Any = None
    time: datetime.datetime | None = None
    low: Any = None
    high: Any = None


def load(spark: SparkSession, settings: Settings, ends: Ends | None = None) -> DataFrame:
    """All rows. Raises ConnectError if the driver of a database is missing; Spark's errors pass.

    Args:
        ends: with the bounds of the ranges; None reads in one.
    """
    reader = spark.read.format(settings.format).options(**settings.options)
    if settings.schema:
        reader = reader.schema(settings.schema)
    if settings.partition and ends is not None and ends.low is not None:
        low, high = settings.bounds or (_bound(ends.low), _bound(ends.high))
        ranges = {"lowerBound": low, "upperBound": high, "numPartitions": str(settings.count)}
        if query := option(settings.options, "query"):  # Spark reads no query by ranges, and a table that is one
            others = {name: value for name, value in settings.options.items() if name.lower() != "query"}
            reader = spark.read.format(settings.format).options(**others, dbtable=f"({query}) barnabas_query")
        reader = reader.options(partitionColumn=settings.partition, **ranges)
    try:
        return reader.load(settings.path or None)
    except Exception as error:
        raise_if_driver_is_missing(error, settings.format, settings.options)
        raise


def _bound(value: Any) -> str:
    return value.isoformat(" ") if isinstance(value, datetime.datetime) else str(value)


def ends_of(spark: SparkSession, settings: Settings, position: Position) -> Ends:
    """The greatest number and time behind a position, and the bounds of the rows there."""
    from pyspark.sql import functions as f

    asked: dict[str, Column] = {}
    if settings.incrementing:
        asked["number"] = f.max(f.col(settings.incrementing))
    if settings.timestamp:
        asked["time"] = f.unix_micros(f.max(f.col(settings.timestamp)).cast("timestamp"))
    if settings.partition and settings.bounds is None:
        asked["low"], asked["high"] = f.min(f.col(settings.partition)), f.max(f.col(settings.partition))
    if not asked:
        return Ends(low=settings.bounds and settings.bounds[0], high=settings.bounds and settings.bounds[1])
    rows = behind(load(spark, settings), settings, position)
    found = rows.agg(*(column.alias(name) for name, column in asked.items())).collect()[0].asDict()
    if settings.partition and settings.bounds is not None:
        found["low"], found["high"] = settings.bounds
    time = None
    if found.get("time") is not None:
        time = datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(microseconds=found["time"])
        oldest = datetime.datetime.now(datetime.UTC) - datetime.timedelta(milliseconds=settings.delay_ms)
        time = min(time, oldest) if settings.delay_ms else time
    return Ends(found.get("number"), time, found.get("low"), found.get("high"))


def behind(rows: DataFrame, settings: Settings, position: Position) -> DataFrame:
    """The rows behind a position."""
    from pyspark.sql import functions as f

    number, time = f.col(settings.incrementing or "x"), f.col(settings.timestamp or "x")
    last = position.number if settings.incrementing else None
    if not settings.timestamp:
        return rows if last is None else rows.where(number > last)
    if position.time is None:
        return rows
    at = f.lit(position.time)
    return rows.where(time > at) if last is None else rows.where((time > at) | ((time == at) & (number > last)))


def polled(spark: SparkSession, settings: Settings, position: Position) -> DataFrame | None:
    """The rows of a poll; None if there are none."""
    from pyspark.sql import functions as f

    ends = ends_of(spark, settings, position)
    if (settings.incrementing and ends.number is None) or (settings.timestamp and ends.time is None):
        return None
    rows = behind(load(spark, settings, ends), settings, position)
    if settings.timestamp:
        return rows.where(f.col(settings.timestamp) <= f.lit(ends.time))
    return rows.where(f.col(settings.incrementing) <= f.lit(ends.number)) if settings.incrementing else rows


def greatest(position: Position, rows: pa.RecordBatch, settings: Settings) -> Position:
    """The position behind some more rows of a poll. Raises ConnectError for columns that cannot say where they are."""
    if not rows.num_rows:
        return position
    part: Any = pa.Table.from_batches([rows])
    if not settings.timestamp:
        number = int(pc.max(_column(part, settings.incrementing)).as_py())
        return Position(number if position.number is None else max(number, position.number))
    times = _column(part, settings.timestamp)
    if not pa.types.is_timestamp(times.type):
        raise ConnectError(f"the column {settings.timestamp} has the type {times.type}, and no times")
    last = pc.max(times)
    time = last.as_py()
    time = time.replace(tzinfo=datetime.UTC) if time.tzinfo is None else time.astimezone(datetime.UTC)
    if position.time is not None and time < position.time:
        return position
    if not settings.incrementing:
        return Position(time=time)
    number = int(pc.max(_column(part.filter(pc.equal(times, last)), settings.incrementing)).as_py())
    if time == position.time and position.number is not None:
        number = max(number, position.number)
    return Position(number, time)


def _column(part: pa.Table, name: str) -> Any:
    found = next((each for each in part.column_names if each.lower() == name.lower()), None)
    if found is None:
        raise ConnectError(f"the rows have no column {name}; they have {', '.join(part.column_names)}")
    return part.column(found)
