"""Reads a topic with one data source and prints rows a second and rows; each line of standard input names a way of reading.

`compare.py` starts it, with either PySpark. The session continues between the lines, so that two sources can take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from barnabas.pipelines.spark_session import CHECKPOINTS

SMALL_TRIGGERS, SMALL_ROWS = 20, 2_000
warnings.simplefilter("ignore", FutureWarning)  # PySpark warns about pandas 3, which this benchmark does not use


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--format", choices=["barnabas", "kafka", "nothing"], required=True)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--jars", default="")
    parser.add_argument("--rows-a-trigger", type=int, default=500_000)
    arguments = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = session(arguments)
    ways = {
        "batch, aggregated": aggregated,
        "batch, noop": noop,
        "stream, one batch": stream,
        "stream, limited": limited,
        "stream, small triggers": small,
    }
    aggregated(spark, arguments)  # the first read of a session starts the workers
    print("ready", flush=True)
    for line in sys.stdin:
        began = time.perf_counter()
        rate = ways[line.strip()](spark, arguments)
        rows = arguments.rows if rate is None else SMALL_TRIGGERS * SMALL_ROWS
        print(rate or rows / (time.perf_counter() - began), rows, flush=True)
    spark.stop()


def session(arguments: argparse.Namespace) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
    builder = (
        builder.config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.streaming.numRecentProgressUpdates", "200")
        .config("spark.driver.memory", "2g")
        .config("spark.log.level", "ERROR")
    )
    for setting, value in CHECKPOINTS.items():  # applies to both connectors
        builder = builder.config(setting, value)
    if arguments.jars:
        builder = builder.config("spark.jars", ",".join(str(path) for path in sorted(Path(arguments.jars).glob("*.jar"))))
    else:
        builder = builder.config("spark.python.daemon.module", "barnabas.pipelines.daemon")
    session = builder.getOrCreate()
    if arguments.format == "nothing":
        from bench.spark.nothing import NothingDataSource

        session.dataSource.register(NothingDataSource)
    return session


def options(reader: Any, arguments: argparse.Namespace, first: int = 0) -> Any:
    """The reader with the options for the rows from `first` on."""
    each = first // arguments.partitions
    if arguments.format == "nothing":
        read = reader.format("nothing").options(rows=arguments.rows, partitions=arguments.partitions, size=arguments.size)
        return read.option("startingOffset", each)
    start = json.dumps({arguments.topic: {str(partition): each for partition in range(arguments.partitions)}})
    return (
        reader.format(arguments.format)
        .option("kafka.bootstrap.servers", arguments.bootstrap)
        .option("subscribe", arguments.topic)
        .option("startingOffsets", start if first else "earliest")
    )


def aggregated(spark: Any, arguments: argparse.Namespace) -> None:
    (row,) = options(spark.read, arguments).load().selectExpr("count(*) as n", "sum(length(value)) as bytes").collect()
    assert row.n == arguments.rows, (row, arguments.rows)


def noop(spark: Any, arguments: argparse.Namespace) -> None:
    options(spark.read, arguments).load().write.format("noop").mode("overwrite").save()


def stream(spark: Any, arguments: argparse.Namespace) -> None:
    run(options(spark.readStream, arguments), arguments)


def limited(spark: Any, arguments: argparse.Namespace) -> None:
    run(options(spark.readStream, arguments).option("maxOffsetsPerTrigger", arguments.rows_a_trigger), arguments)


def small(spark: Any, arguments: argparse.Namespace) -> float:
    """The rows a second with triggers of few rows, so that only the cost of a trigger counts; without the first trigger, which
    also starts processes."""
    rows = SMALL_TRIGGERS * SMALL_ROWS
    reader = options(spark.readStream, arguments, arguments.rows - rows)
    progress = run(reader.option("maxOffsetsPerTrigger", SMALL_ROWS), arguments, rows)[1:]
    spent_ms = sum(item["durationMs"]["triggerExecution"] for item in progress)
    return float(sum(item["numInputRows"] for item in progress) * 1000 / spent_ms)


def run(reader: Any, arguments: argparse.Namespace, rows: int | None = None) -> list[Any]:
    folder = tempfile.mkdtemp()
    try:
        writer = reader.load().writeStream.format("noop").option("checkpointLocation", folder)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        read = sum(progress["numInputRows"] for progress in query.recentProgress)
        assert read == (rows or arguments.rows), (read, rows, arguments.rows)
        return list(query.recentProgress)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
