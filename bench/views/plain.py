"""Spark without a view: a query that counts and sums the same topic by key, with state in RocksDB, and drops its rows.

`python -m bench.views.plain BOOTSTRAP TOPIC ROWS TIMES` prints the rows a second of each time, without the start of Spark.
"""

from __future__ import annotations

import sys
import tempfile
import time
from typing import Any

from barnabas.pipelines import session
from bench.views.systems import MASTER

MOST_ROWS = 500_000  # of a micro-batch, as a view takes them


def main() -> int:
    bootstrap, topic, rows, times = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    spark = session("plain", master=MASTER, conf={"spark.log.level": "ERROR"})
    for number in range(times + 1):
        began = time.perf_counter()
        _count(spark, bootstrap, topic)
        if number:  # the first starts the workers, and compiles
            print(rows / (time.perf_counter() - began), flush=True)
    spark.stop()
    return 0


def stream_of(spark: Any, bootstrap: str, topic: str) -> Any:
    """All records of a topic, in micro-batches as a view takes them."""
    return (
        spark.readStream.format("barnabas")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", MOST_ROWS)
        .option("commitOffsets", False)
        .load()
    )


def _count(spark: Any, bootstrap: str, topic: str) -> None:
    stream = stream_of(spark, bootstrap, topic)
    read = stream.selectExpr("from_json(cast(value AS string), 'id bigint, price double') AS row")
    counted = read.groupBy("row.id").agg({"*": "count", "row.price": "sum"})
    with tempfile.TemporaryDirectory(prefix="barnabas-bench-plain-") as folder:
        writer = counted.writeStream.outputMode("update").option("checkpointLocation", folder).trigger(availableNow=True)
        writer.foreachBatch(drop).start().awaitTermination()


def drop(frame: Any, number: int) -> None:
    """Compute the rows of a micro-batch, and write them nowhere."""
    frame.write.format("noop").mode("overwrite").save()


if __name__ == "__main__":
    sys.exit(main())
