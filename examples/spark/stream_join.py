"""Two streams joined: each click with the impression that it followed within ten minutes.

Both sides wait in the state for their match. The watermarks limit the wait: rows that are too old for any future match are
dropped, so that the state does not grow for ever.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from examples.spark.common import main, stream


def clicks_of_impressions(spark: SparkSession, servers: str, impressions: str, clicks: str) -> DataFrame:
    """One row for each click: ad, when it was shown, when it was clicked, seconds between."""
    shown = stream(spark, servers, impressions, "ad string, shown timestamp").withWatermark("shown", "20 minutes")
    clicked = stream(spark, servers, clicks, "ad string, clicked timestamp").withWatermark("clicked", "10 minutes")
    within = F.expr("clicked between shown and shown + interval 10 minutes")
    joined = shown.alias("i").join(clicked.alias("c"), (F.col("i.ad") == F.col("c.ad")) & within)
    seconds = F.expr("unix_timestamp(clicked) - unix_timestamp(shown)").alias("seconds")
    return joined.select(F.col("i.ad").alias("ad"), "shown", "clicked", seconds)


if __name__ == "__main__":
    main("clicked-ads", {"impressions": "impressions", "clicks": "clicks"}, clicks_of_impressions, key="ad")
