"""The time of a small micro-batch, and the age of a record when a reader of committed records gets it.

    python -m bench.spark.latency                       # all ways of writing, in turns
    python -m bench.spark.latency --rounds 5 --seconds 40 --ways stream updates
    python -m bench.spark.latency --conf spark.sql.streaming.checkpoint.fileChecksum.enabled=false

A producer writes a thousand records a second, with their times, to a topic. One query after the other writes them to another
topic, and a consumer reads them there. All ways use the same session and broker, in turns, so that their ratios are valid on a
machine with other work. The first half of each run is a warm-up. So is the first half of the rounds, because the JVM compiles
for minutes. The figures are medians in milliseconds. `cpu` is the CPU time of all processes of Spark for a micro-batch. On a
machine with other work it is more exact than the clock.

Ways
    stream          `writeStream.format("barnabas")`
    updates         `write_stream`
    frame           `foreachBatch` with a DataFrame's `write`, `sinkName` and `sinkBatchId`
    none            Spark's `noop` sink: the time of everything except the sink
    floor           a source and a sink in Python that do nothing (`nothing`): the minimum in Spark
    floor-updates   the same with a sink like that of `write_stream`: a function in `mapInArrow`, whose results are collected
    count-…         the same after a running count by key, in update mode
    …-forking       with the checkpoint's usual file manager
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import threading
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bench.peers.process import cpu_by_pid, cpu_since, family
from bench.spark.nothing import NAME, NothingDataSource
from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas.client.blocking import BlockingClient
from barnabas.client.results import NewTopic
from barnabas.pipelines import session, write_stream
from barnabas.pipelines.spark_session import CHECKPOINTS
from barnabas.testing import Broker

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

RECORDS_A_SECOND, KEYS, PARTITIONS = 1_000, 50, 2
IN = "in"
WAYS = (
    "stream",
    "stream-forking",
    "updates",
    "frame",
    "none",
    "floor",
    "floor-updates",
    "count-updates",
    "count-frame",
    "count-none",
    "count-floor-updates",
)
COUNT, FORKING, FLOOR = "count-", "-forking", "floor"
COLUMNS = ("p50", "p99", "cpu")
PARTS = ("latestOffset", "queryPlanning", "walCommit", "addBatch", "commitOffsets", "triggerExecution")
MANAGER, WITHOUT_FORKS = next(iter(CHECKPOINTS.items()))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=30.0, help="of each run (default %(default)s)")
    parser.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE", help="a setting of Spark; repeatable")
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore", FutureWarning)  # PySpark warns about pandas 3, which this benchmark does not use
    conf = {"spark.driver.memory": "1g", "spark.log.level": "ERROR", **dict(each.split("=", 1) for each in given.conf)}
    found: dict[str, list[dict[str, float]]] = defaultdict(list)
    with Broker({"transaction.two.phase.commit.enable": True}) as broker:
        spark = session("latency", master="local[2]", conf=conf)
        with BlockingClient.to(broker.bootstrap_servers) as client:
            names = [IN, *(f"{way}-{number}" for number in range(given.rounds) for way in given.ways)]
            client.create_topics([NewTopic(name, PARTITIONS if name == IN else 1, 1, {}) for name in names])
        with records(broker.bootstrap_servers):
            for number in range(given.rounds):
                for way in given.ways:
                    result = measure(spark, broker.bootstrap_servers, way, f"{way}-{number}", given.seconds)
                    found[way].append(result)
                    print(json.dumps({"way": way, **result}), flush=True)
        spark.stop()
    print(f"\n{'medians of the later half':24}" + "".join(f"{part:>18}" for part in (*COLUMNS, *PARTS)))
    for way, results in found.items():
        warm = results[len(results) // 2 :]
        columns = (statistics.median(result[part] for result in warm) for part in (*COLUMNS, *PARTS))
        print(f"{way:24}" + "".join(f"{column:18.0f}" for column in columns))


@contextmanager
def records(servers: str) -> Iterator[None]:
    """Write records to the topic during the block."""
    is_over = threading.Event()

    def send() -> None:
        producer, sent, began = Producer({"bootstrap.servers": servers, "linger.ms": 1}), 0, time.time()
        while not is_over.wait(0.004):
            for number in range(sent, int((time.time() - began) * RECORDS_A_SECOND)):
                producer.produce(IN, str(time.time()).encode(), str(number % KEYS).encode(), number % PARTITIONS)
                sent = number + 1
            producer.poll(0)
        producer.flush()

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def measure(spark: SparkSession, servers: str, way: str, topic: str, seconds: float) -> dict[str, float]:
    """Run one query for `seconds`, and return its figures."""
    forking = WITHOUT_FORKS.replace("FileSystemBased", "FileContextBased")
    spark.conf.set(MANAGER, forking if way.endswith(FORKING) else WITHOUT_FORKS)
    with tempfile.TemporaryDirectory(prefix="spark-bench-") as checkpoint:
        query = start(spark, servers, way, topic, checkpoint)
        ages, cpu = watched(query, jvm_pid(spark), servers, topic, seconds)
        progress = [each for each in query.recentProgress if each["numInputRows"] > 0]
        query.stop()
    ages = sorted(ages) or [float("nan")]
    later = progress[len(progress) // 2 :]
    if not later:
        raise SystemExit(f"{way}: no micro-batch within {seconds:g} s; give --seconds more")
    parts = {part: statistics.median(each["durationMs"].get(part, 0) for each in later) for part in PARTS}
    p50, p99 = (1000 * ages[int(len(ages) * share)] for share in (0.5, 0.99))
    return {"p50": p50, "p99": p99, "cpu": cpu, "batches": len(later), **parts}


def jvm_pid(spark: SparkSession) -> int:
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    return int(jvm.java.lang.ProcessHandle.current().pid())


def start(spark: SparkSession, servers: str, way: str, topic: str, checkpoint: str) -> StreamingQuery:
    to = {"kafka.bootstrap.servers": servers, "topic": topic}
    if FLOOR in way:
        spark.dataSource.register(NothingDataSource)
        rated = {"rows": 1 << 40, "partitions": PARTITIONS, "size": 18, "rowsPerSecond": RECORDS_A_SECOND}
        read = spark.readStream.format(NAME).options(**rated).load()
        rows = read.selectExpr(f"CAST(CAST(offset % {KEYS} AS STRING) AS BINARY) AS key", "value")
    else:
        read = spark.readStream.format("barnabas").option("kafka.bootstrap.servers", servers).option("subscribe", IN).load()
        rows = read.select("key", "value")
    if way.startswith(COUNT):  # the value stays a time, so that ages can be computed: the time of the key's newest record
        rows = read.groupBy("key").agg({"value": "max", "*": "count"}).selectExpr("key", "`max(value)` as value")

    def write(frame: DataFrame, batch: int) -> None:
        named = {"sinkName": topic, "sinkBatchId": str(batch)}
        frame.write.format("barnabas").mode("append").options(**to, **named).save()

    def let_go_of(frame: DataFrame, batch: int) -> None:
        frame.mapInArrow(letting_go, "message binary").collect()

    kind = way.removeprefix(COUNT).removesuffix(FORKING)
    writers: dict[str, Any] = {
        "stream": lambda: rows.writeStream.format("barnabas"),
        "updates": lambda: write_stream(rows),
        "frame": lambda: rows.writeStream.foreachBatch(write),
        "none": lambda: rows.writeStream.format("noop"),
        FLOOR: lambda: rows.writeStream.format(NAME),
        f"{FLOOR}-updates": lambda: rows.writeStream.foreachBatch(let_go_of),
    }
    writer = writers[kind]().options(**to).outputMode("update" if way.startswith(COUNT) else "append")
    query: StreamingQuery = writer.option("checkpointLocation", checkpoint).trigger(processingTime="0 seconds").start()
    return query


def letting_go(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
    """Like a task of `write_stream`, but without writing."""
    import pyarrow as pa

    for _ in batches:
        pass
    yield pa.record_batch([pa.array([b""])], names=["message"])


def watched(query: StreamingQuery, jvm: int, servers: str, topic: str, seconds: float) -> tuple[list[float], float]:
    """The ages in seconds of records that were read in the second half of `seconds` (from the first micro-batch on), and the
    CPU of a micro-batch there."""
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "ages", "isolation.level": "read_committed", "fetch.wait.max.ms": 5}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    ages = list[float]()
    from_s, from_batch = dict[int, float](), 0
    try:
        while query.isActive and query.lastProgress is None:  # the first micro-batch starts the worker processes of the query
            query.awaitTermination(1)
        began = time.time()
        while (now := time.time()) < began + seconds:
            messages = [each for each in consumer.consume(2_000, 0.02) if each.error() is None]
            if now > began + seconds / 2:
                if not from_s:
                    from_s, from_batch = cpu_by_pid(family(jvm)), last_batch(query)
                ages += [time.time() - float(message.value() or b"") for message in messages]
            if not query.isActive:
                raise SystemExit(f"the query failed: {query.exception()}")
        return ages, 1000 * cpu_since(from_s, family(jvm)) / max(1, last_batch(query) - from_batch)
    finally:
        consumer.close()


def last_batch(query: StreamingQuery) -> int:
    progress = query.lastProgress
    assert progress is not None
    return int(progress["batchId"])


if __name__ == "__main__":
    main()
