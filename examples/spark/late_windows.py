"""Windows by the time of the event, with records that come late: readings summed up for each five minutes.

A window stays open until the watermark, ten minutes behind the newest event, has passed its end; then its row is written, once.
Later events are left out.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from examples.spark.common import main, stream


def five_minutes(spark: SparkSession, servers: str, readings: str) -> DataFrame:
    """One row for each sensor and window that is closed: start, number of readings, mean."""
    rows = stream(spark, servers, readings, "sensor string, at timestamp, celsius double", maxOffsetsPerTrigger="1000")
    windows = rows.withWatermark("at", "10 minutes").groupBy(F.window("at", "5 minutes"), "sensor")
    summed = windows.agg(F.count("*").alias("readings"), F.avg("celsius").alias("mean"))
    return summed.select("sensor", F.col("window.start").alias("start"), "readings", "mean")


if __name__ == "__main__":
    main("mean-temperatures", {"readings": "readings"}, five_minutes, key="sensor")
