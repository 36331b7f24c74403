"""The pipeline: joins flights with weather and airlines, computes their delays for each carrier and window, and writes them to
a topic.

How it works
    Flights and weather are streams from topics. The query joins them by airport and hour (left outer, so that a flight without
    a weather report counts too). It adds the airline's name from the compacted topic, and aggregates for each carrier in
    windows of event time. A window is written once, when the watermark says that no more rows can come (append mode).

Rules
  1. No row is late: the producers keep all partitions within a day (publish, rule 1). The watermark allows a week, since Spark
     does not read the ends of the partitions at exactly the same time.
  2. Sums are of whole numbers (minutes, hundredths of a mile per hour), so that every other engine must get the same sums.
     Means are only for readers.
  3. The closing markers pass through the watermarks like any record; their window never closes. They must not be filtered:
     Spark would push the filter below the watermark, and the watermark would stop before the last windows.
  4. The airlines are read once at the start: a table inside a stream would be read again in every micro-batch.
  5. After a restart with the same checkpoint it continues where it stopped, and each window is in the topic once: for readers
     of committed records, the sink writes exactly once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from demo import topics
from demo.data import WINDOW_HOURS

FORMAT = "barnabas"
CHECKPOINT = "flights-checkpoint"  # folder inside the run's folder; the name must be unique, because a run removes this folder
WATERMARK_DELAY = "7 days"
AT_WORK = "Processing new data"  # Spark's status during a micro-batch
TRIGGER = "2 seconds"  # fewer and larger micro-batches: each takes about 1 s of two cores, independent of its size
LATE_MINUTES = 15  # airlines report a departure as delayed from this delay on
TIME = "yyyy-MM-dd'T'HH:mm:ss'Z'"
FLIGHT_SCHEMA = "carrier string, origin string, time_hour timestamp, dep_delay long, arr_delay long"
WEATHER_SCHEMA = "origin string, time_hour timestamp, wind_speed double, precip double"


@dataclass(frozen=True, slots=True)
class Status:
    """The progress of the query. `watermark` is the text of a UTC time, empty before the first batch; `doing` is Spark's own
    text."""

    batches: int
    rows: int
    windows: int
    watermark: str
    doing: str = ""

    def then(self, later: Status) -> Status:
        """The combined status of both runs of a query that was started again."""
        return Status(
            self.batches + later.batches,
            self.rows + later.rows,
            self.windows + later.windows,
            later.watermark or self.watermark,
            later.doing,
        )


def start(spark: SparkSession, bootstrap: str, checkpoint: Path, *, available_now: bool = False) -> StreamingQuery:
    """Start the query; it runs until it is stopped, or with `available_now` until it has read all existing records."""
    results = delays(
        flights=read_json(spark, bootstrap, topics.FLIGHTS, FLIGHT_SCHEMA),
        weather=read_json(spark, bootstrap, topics.WEATHER, WEATHER_SCHEMA),
        airlines=read_airlines(spark, bootstrap),
    )
    writer = (
        results.writeStream.format(FORMAT)
        .queryName("carrier-delays")
        .outputMode("append")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", topics.RESULTS)
        .option("checkpointLocation", str(checkpoint))
    )
    return writer.trigger(availableNow=True).start() if available_now else writer.trigger(processingTime=TRIGGER).start()


def read_json(spark: SparkSession, bootstrap: str, topic: str, schema: str) -> DataFrame:
    """A topic of JSON values as a stream of rows."""
    records = (
        spark.readStream.format(FORMAT)
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
    )
    return records.select(F.from_json(F.col("value").cast("string"), schema).alias("row")).select("row.*")


def read_airlines(spark: SparkSession, bootstrap: str) -> DataFrame:
    """The airlines as a small table: the last record of each key, as after compaction."""
    records = spark.read.format(FORMAT).option("kafka.bootstrap.servers", bootstrap).option("subscribe", "airlines").load()
    latest = records.groupBy("key").agg(F.max_by("value", "offset").alias("value"))
    row = F.from_json(F.col("value").cast("string"), "carrier string, name string")
    rows = latest.select(row.alias("row")).select(F.col("row.carrier").alias("carrier"), F.col("row.name").alias("airline"))
    return spark.createDataFrame(rows.collect(), schema="carrier string, airline string")


def delays(flights: DataFrame, weather: DataFrame, airlines: DataFrame) -> DataFrame:
    """The records of the results topic: one for each carrier and window in which it had flights."""
    hours = weather.select(
        F.col("origin").alias("weather_origin"),
        F.col("time_hour").alias("weather_hour"),
        hundredths("wind_speed").alias("wind"),
        (F.col("precip") > 0).alias("rain"),
    ).withWatermark("weather_hour", WATERMARK_DELAY)
    same_hour = (F.col("origin") == F.col("weather_origin")) & (F.col("time_hour") == F.col("weather_hour"))
    joined = (
        flights.withWatermark("time_hour", WATERMARK_DELAY)
        .join(hours, same_hour, "left_outer")
        .join(F.broadcast(airlines), "carrier", "left_outer")
    )
    windows = joined.groupBy(F.window("time_hour", f"{WINDOW_HOURS} hours"), "carrier", "airline").agg(*figures())
    return as_records(windows)


def hundredths(name: str) -> Column:
    """A measurement in whole hundredths."""
    return F.floor(F.col(name) * 100 + 0.5)


def figures() -> list[Column]:
    """The figures of a carrier in a window: all whole numbers."""
    delay, rain = F.col("dep_delay"), F.col("rain")
    return [
        F.count("*").alias("flights"),
        F.count(delay).alias("departed"),
        F.coalesce(F.sum(delay), F.lit(0)).alias("dep_delay_sum"),
        F.max(delay).alias("dep_delay_max"),
        F.count_if(delay >= LATE_MINUTES).alias("delayed"),
        F.count("arr_delay").alias("arrived"),
        F.coalesce(F.sum("arr_delay"), F.lit(0)).alias("arr_delay_sum"),
        F.count("weather_hour").alias("with_weather"),
        F.count("wind").alias("with_wind"),
        F.coalesce(F.sum("wind"), F.lit(0)).alias("wind_sum"),
        F.count_if(rain & delay.isNotNull()).alias("rain_departed"),
        F.coalesce(F.sum(F.when(rain, delay)), F.lit(0)).alias("rain_dep_delay_sum"),
    ]


def as_records(windows: DataFrame) -> DataFrame:
    """Key `carrier window_start`, value JSON with every field present."""
    opened, closed = (F.date_format(F.col(f"window.{edge}"), TIME) for edge in ("start", "end"))
    fields: list[Column | str] = [
        opened.alias("window_start"),
        closed.alias("window_end"),
        *[c for c in windows.columns if c != "window"],
    ]
    return windows.select(
        F.concat_ws(" ", "carrier", opened).alias("key"),
        F.to_json(F.struct(*fields), {"ignoreNullFields": "false"}).alias("value"),
    )


def follow(query: StreamingQuery, report: Callable[[Status], None], should_stop: Callable[[Status], bool]) -> Status:
    """Watch the query until it ends by itself, or until `should_stop`: then stop it after the current batch.

    Raises:
        StreamingQueryException: the query failed.
    """
    status = Status(0, 0, 0, "")
    last_batch = -1
    try:
        ended = False
        while not ended:
            ended = bool(query.awaitTermination(1))
            for progress in query.recentProgress:
                if progress["batchId"] > last_batch and "addBatch" in progress["durationMs"]:
                    last_batch = progress["batchId"]
                    status = _after(status, progress)
            report(replace(status, doing=query.status["message"]))
            ended = ended or should_stop(status)
        return status
    finally:
        query.stop()


def _after(status: Status, progress: Any) -> Status:
    windows = sum(o["numRowsRemoved"] for o in progress["stateOperators"] if o["operatorName"] == "stateStoreSave")
    return Status(
        batches=status.batches + 1,
        rows=status.rows + progress["numInputRows"],
        windows=status.windows + windows,
        watermark=progress["eventTime"].get("watermark", status.watermark),
    )
