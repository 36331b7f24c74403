"""The common parts of the examples: a topic as a stream of rows, rows to a topic, and the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession

from barnabas.pipelines import session, write_stream
from barnabas.pipelines.functions import from_barnabas, to_barnabas

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


def stream(spark: SparkSession, servers: str, topic: str, schema: str, **options: str) -> DataFrame:
    """The JSON values of a topic as rows, from its beginning."""
    reader = spark.readStream.format("barnabas").option("kafka.bootstrap.servers", servers).option("subscribe", topic)
    records = reader.option("startingOffsets", "earliest").options(**options).load()
    return from_barnabas(records, schema, mode="DROPMALFORMED").select("value.*")


def write(
    rows: DataFrame, servers: str, topic: str, checkpoint: str, *, key: str | None = None, mode: str = "append"
) -> StreamingQuery:
    """Write rows as JSON to a topic, until the records that existed at the start are processed."""
    records = to_barnabas(rows, key=key)
    writer = write_stream(records).option("kafka.bootstrap.servers", servers).option("topic", topic)
    return writer.outputMode(mode).option("checkpointLocation", checkpoint).trigger(availableNow=True).start()


def main(name: str, topics: Mapping[str, str], build: Callable[..., DataFrame], **how: str) -> None:
    """The command line of an example: `build(spark, servers, **topics)` makes its rows, which go to `--to`."""
    parser = argparse.ArgumentParser(description=name)
    parser.add_argument("--bootstrap-server", default="127.0.0.1:9092")
    parser.add_argument("--checkpoint", required=True, help="a folder")
    parser.add_argument("--to", default=name, help="the topic to write")
    for argument, default in topics.items():
        parser.add_argument(f"--{argument}", default=default, help="a topic to read")
    given = vars(parser.parse_args())
    spark = session(name)
    rows = build(spark, given["bootstrap_server"], **{argument: given[argument] for argument in topics})
    write(rows, given["bootstrap_server"], given["to"], given["checkpoint"], **how).awaitTermination()
    spark.stop()
