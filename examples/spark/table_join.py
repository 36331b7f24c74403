"""A stream joined with a table: orders with the newest address of their customer, which a compacted topic keeps.

The table is the newest record of each key. With resolveOffsets=task it is read again for each micro-batch, so an order gets the
address at the time of its processing; a record with a null value deletes a customer.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from barnabas.pipelines.functions import as_table, from_barnabas
from examples.spark.common import main, stream


def orders_with_addresses(spark: SparkSession, servers: str, orders: str, customers: str) -> DataFrame:
    """Every order; its address is null if the customer is unknown."""
    reader = spark.read.format("barnabas").option("kafka.bootstrap.servers", servers).option("subscribe", customers)
    newest = as_table(reader.option("resolveOffsets", "task").load())
    table = from_barnabas(newest, "address string").selectExpr("key as customer", "value.address")
    return stream(spark, servers, orders, "customer string, item string").join(table, "customer", "left")


if __name__ == "__main__":
    main("orders-with-addresses", {"orders": "orders", "customers": "customers"}, orders_with_addresses, key="customer")
