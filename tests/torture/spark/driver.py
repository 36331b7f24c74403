"""The pipeline as a process: `python -m tests.torture.spark.driver HOST:PORT FOLDER SINK`.

A query that fails is started again from its checkpoint, as a supervisor would. Lines of JSON on standard output: the JVM's process id,
each finished micro-batch, each failure. It ends when its standard input does.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.pipelines import interpreter, write_stream
from tests.torture.spark import plan
from tests.torture.spark.plan import Sink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

warnings.simplefilter("ignore", FutureWarning)  # PySpark warns about pandas 3, which this program does not use


def session(folder: Path) -> SparkSession:
    """Tasks are tried four times, so that a killed worker makes another attempt and not always a failed query."""
    from barnabas.pipelines import session

    os.environ["PYSPARK_PYTHON"] = interpreter.write_command(folder)
    conf = {
        "spark.driver.memory": "1g",
        "spark.sql.session.timeZone": "UTC",
        "spark.python.authenticate.socketTimeout": "120s",
        "spark.local.dir": folder,  # the run's folder also takes the files of a killed driver
        "spark.driver.extraJavaOptions": f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.io.tmpdir={folder}",
        "spark.log.level": "ERROR",
    }
    return session("torture", master="local[2,4]", conf=conf)


def start(spark: SparkSession, bootstrap: str, folder: Path, sink: Sink) -> StreamingQuery:
    from pyspark.sql import functions as F

    records = (
        spark.readStream.format("barnabas")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", plan.IN)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", "100000")
        .load()
    )
    row = F.from_json(F.col("value").cast("string"), "key int, ms long, number long")
    rows = records.select(row.alias("row")).select("row.*").withColumn("at", F.timestamp_millis("ms"))
    windows = (
        rows.withWatermark("at", f"{plan.WATERMARK_MS} milliseconds")
        .groupBy("key", F.window("at", f"{plan.WINDOW_MS} milliseconds"))
        .agg(
            F.count("*").alias("count"),
            F.sum("number").alias("sum"),
            F.min("number").alias("least"),
            F.max("number").alias("greatest"),
        )
        .withColumn("start", F.unix_millis("window.start"))
        .drop("window")
    )
    out = windows.select(F.col("key").cast("string").alias("key"), F.to_json(F.struct("*")).alias("value"))
    writer = out.writeStream.format("barnabas") if sink is Sink.STREAM else write_stream(out)
    writer = writer.outputMode("append" if sink is Sink.STREAM else "update").option("kafka.bootstrap.servers", bootstrap)
    writer = writer.option("topic", plan.OUT).option("checkpointLocation", str(folder / "checkpoint"))
    return writer.trigger(processingTime="0 seconds").start()


def say(**message: object) -> None:
    print(json.dumps(message), flush=True)


def wait_for_end(ended: threading.Event) -> None:
    sys.stdin.read()
    ended.set()


def main(bootstrap: str, folder: Path, sink: Sink) -> None:
    from pyspark import SparkContext
    from pyspark.errors import StreamingQueryException

    ended = threading.Event()
    threading.Thread(target=wait_for_end, args=(ended,), daemon=True).start()
    spark = session(folder)
    gateway = SparkContext._gateway
    assert gateway is not None
    say(java=gateway.proc.pid)
    while not ended.is_set():
        query = start(spark, bootstrap, folder, sink)
        last = -1
        try:
            while not ended.is_set() and not query.awaitTermination(0.2):  # type: ignore[arg-type]  # also fractions of a second
                progress = query.lastProgress
                if progress is not None and progress["batchId"] > last:
                    last = progress["batchId"]
                    say(batch=last)
        except StreamingQueryException as error:
            say(failed=str(error)[:2000])
        finally:
            query.stop()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Sink(sys.argv[3]))
