"""Writes rows to a topic with one sink and prints rows a second; each line of standard input names a way of writing.

A line is `WAY TOPIC`, separated by tabs. `sink.py` starts it, with either PySpark. The session continues between the lines, so
that sinks can take turns.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.spark.measure import session

warnings.simplefilter("ignore", FutureWarning)  # PySpark warns about pandas 3, which this benchmark does not use

SMALL_BATCHES, SMALL_ROWS = 20, 50_000  # "stream, small triggers": number of micro-batches, and rows of each
WARM_UP_ROWS = 20_000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--format", choices=["barnabas", "kafka", "nothing"], required=True)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--warm-up", required=True, metavar="TOPIC")
    parser.add_argument("--at-least-once", action="store_true")
    parser.add_argument("--jars", default="")
    arguments = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = session(arguments)
    folder = tempfile.mkdtemp(prefix="spark-bench-")
    try:
        for name, count in (("rows", arguments.rows), ("small", SMALL_BATCHES * SMALL_ROWS)):
            rows(spark, count, arguments.size).repartition(SMALL_BATCHES).write.parquet(f"{folder}/{name}")
        batch(spark, arguments, folder, arguments.warm_up, WARM_UP_ROWS)  # the first write of a session starts the workers
        print("ready", flush=True)
        ways = {"batch": batch, "stream, one batch": stream, "stream, small triggers": small}
        for line in sys.stdin:
            way, topic = line.rstrip("\n").split("\t")
            began = time.perf_counter()
            count = ways[way](spark, arguments, folder, topic)
            print(count / (time.perf_counter() - began), flush=True)
        spark.stop()
    finally:
        shutil.rmtree(folder)


def rows(spark: Any, count: int, size: int) -> Any:
    value = f"cast(lpad(cast(id as string), {size}, '0') as binary) as value"
    return spark.range(0, count, 1, 2).selectExpr("cast(cast(id as string) as binary) as key", value)


def options(writer: Any, arguments: argparse.Namespace, topic: str) -> Any:
    writer = writer.format(arguments.format).option("kafka.bootstrap.servers", arguments.bootstrap).option("topic", topic)
    if arguments.format != "barnabas":
        return writer
    return writer.option("exactlyOnce", "false") if arguments.at_least_once else writer.option("sinkName", topic)


def batch(spark: Any, arguments: argparse.Namespace, folder: str, topic: str, count: int | None = None) -> int:
    """Write a batch; returns the number of rows, like the other functions."""
    frame = rows(spark, count or arguments.rows, arguments.size)
    options(frame.write, arguments, topic).mode("append").save()
    return count or arguments.rows


def stream(spark: Any, arguments: argparse.Namespace, folder: str, topic: str) -> int:
    return written(spark, arguments, folder, topic, "rows", SMALL_BATCHES, arguments.rows)


def small(spark: Any, arguments: argparse.Namespace, folder: str, topic: str) -> int:
    return written(spark, arguments, folder, topic, "small", 1, SMALL_BATCHES * SMALL_ROWS)


def written(spark: Any, arguments: argparse.Namespace, folder: str, topic: str, name: str, files: int, count: int) -> int:
    """Write the rows of the files with this name, with `files` files in a micro-batch; returns the number of rows."""
    source = spark.readStream.schema("key binary, value binary").option("maxFilesPerTrigger", files).parquet(f"{folder}/{name}")
    checkpoint = f"{folder}/checkpoint-{topic}"
    query = (
        options(source.writeStream, arguments, topic).option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    )
    query.awaitTermination()
    read = sum(progress["numInputRows"] for progress in query.recentProgress)
    assert read == count, (read, count)
    return count


if __name__ == "__main__":
    main()
