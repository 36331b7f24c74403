"""Spark's own `kafka` connector against a broker, run by the PySpark it belongs to: HOST:PORT TOPIC FOLDER JARS."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

ROWS = 1000


def main(bootstrap: str, topic: str, folder: str, jars: str) -> None:
    """Write a batch, read it back as a batch, by time and as a stream, and stream it into a second topic."""
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", ",".join(str(each) for each in Path(jars).glob("*.jar")))
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    found: dict[str, object] = {}
    try:
        server = {"kafka.bootstrap.servers": bootstrap}
        rows = spark.range(ROWS).selectExpr(
            "cast(id as string) as key",
            "concat('value ', id) as value",
            "timestamp_millis(1700000000000 + id * 1000) as timestamp",
        )
        rows.write.format("kafka").options(**server, topic=topic).save()
        reading = {**server, "subscribe": topic, "startingOffsets": "earliest"}
        batch = spark.read.format("kafka").options(**reading, includeHeaders="true").load()
        found["batch"] = (
            batch.selectExpr("cast(cast(key as string) as long) as id", "cast(value as string) as value")
            .where("value = concat('value ', id)")
            .distinct()
            .count()
        )
        late = spark.read.format("kafka").options(**server, subscribe=topic, startingTimestamp="1").load()
        found["by time"] = late.count()
        stream = spark.readStream.format("kafka").options(**reading, maxOffsetsPerTrigger="300").load()
        query = (
            stream.select("key", "value").writeStream.format("kafka").options(**server, topic=topic + "-copy")
            .option("checkpointLocation", folder).trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination()
        copy = spark.read.format("kafka").options(**server, subscribe=topic + "-copy").load()
        found["stream"] = copy.selectExpr("cast(cast(key as string) as long) as id").distinct().count()
    finally:
        spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
