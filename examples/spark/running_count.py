"""Counts the records of each key continuously: a compacted topic has the newest count of each key.

python -m examples.spark.running_count --checkpoint /path --orders orders --to order-counts
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from examples.spark.common import main, stream


def counts(spark: SparkSession, servers: str, orders: str) -> DataFrame:
    """For each customer the number of orders and what they cost together; a row for each customer that a micro-batch has orders of."""
    rows = stream(spark, servers, orders, "customer string, amount double")
    return rows.groupBy("customer").agg(F.count("*").alias("orders"), F.sum("amount").alias("amount"))


if __name__ == "__main__":
    main("running-count", {"orders": "orders"}, counts, key="customer", mode="update")
