"""Removes records that were sent twice: payments by their id.

A producer that restarts may send records again, which then have other offsets. The ids of the last hour are kept in the state:
the first record of an id passes, the others do not.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from examples.spark.common import main, stream


def payments_once(spark: SparkSession, servers: str, payments: str) -> DataFrame:
    """The payments, each id once."""
    rows = stream(spark, servers, payments, "id string, at timestamp, amount double")
    return rows.withWatermark("at", "1 hour").dropDuplicatesWithinWatermark(["id"])


if __name__ == "__main__":
    main("payments-once", {"payments": "payments"}, payments_once, key="id")
