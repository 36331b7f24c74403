"""Run cases against a data source of Spark's, in the Python that has it: BOOTSTRAP FORMAT CASES OUTPUT [JARS].

CASES is a file of `[[kind, options, rows], …]`; OUTPUT gets a list of what became of each: `{"took": …}` or `{"refused": message}`.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

SERVERS = "kafka.bootstrap.servers"
# Cases that must fail wait shorter than by default.
IMPATIENT = {"kafkaConsumer.pollTimeoutMs": "3000", "kafka.max.block.ms": "3000"}
STACK = re.compile(r"\n\s+at [\w.$/]+\(.*|\n\tat .*|\nJVM stacktrace.*|\nDriver stacktrace.*", re.DOTALL)


def read(spark: SparkSession, source: str, given: dict[str, str]) -> Any:
    """First and next offset, and how many rows, of each partition."""
    return spans(spark.read.format(source).options(**given).load())


def spans(frame: DataFrame) -> Any:
    rows = frame.groupBy("topic", "partition").agg({"offset": "min", "partition": "max", "value": "count"})
    return sorted([r["topic"], r["partition"], r["min(offset)"], r["count(value)"]] for r in rows.collect())


def stream(spark: SparkSession, source: str, given: dict[str, str]) -> Any:
    """The same of a stream that takes what is there."""
    found: set[tuple[str, int, int]] = set()

    def note(batch: DataFrame, _: int) -> None:
        found.update((r["topic"], r["partition"], r["offset"]) for r in batch.select("topic", "partition", "offset").collect())

    with tempfile.TemporaryDirectory() as folder:
        frame = spark.readStream.format(source).options(**given).load()
        query = frame.writeStream.foreachBatch(note).option("checkpointLocation", folder).trigger(availableNow=True).start()
        try:
            if not query.awaitTermination(30):
                return "goes on"
        finally:
            query.stop()
    places = sorted({(topic, partition) for topic, partition, _ in found})
    offsets = {place: [o for t, p, o in found if (t, p) == place] for place in places}
    return [[*place, min(offsets[place]), len(offsets[place])] for place in places]


def write(spark: SparkSession, source: str, given: dict[str, str], rows: str) -> Any:
    options = {name: value for name, value in given.items() if name != "mode"}
    spark.sql(rows).write.format(source).mode(given.get("mode", "append")).options(**options).save()
    return "written"


def outcome(spark: SparkSession, bootstrap: str, source: str, kind: str, given: dict[str, str], rows: str) -> dict[str, Any]:
    options = {SERVERS: bootstrap, **IMPATIENT, **given}
    try:
        if kind == "batch":
            return {"took": read(spark, source, options)}
        return {"took": stream(spark, source, options) if kind == "stream" else write(spark, source, options, rows)}
    except Exception as error:  # noqa: BLE001 - the run records any error
        return {"refused": STACK.sub("", str(error)).strip()[-1500:]}


def main(bootstrap: str, source: str, cases: str, output: str, jars: str = "") -> None:
    builder = SparkSession.builder.master("local[2]")
    if jars:
        builder = builder.config("spark.jars", ",".join(str(each) for each in Path(jars).glob("*.jar")))
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "OFF",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        found = []
        for number, (kind, given, rows) in enumerate(json.loads(Path(cases).read_text())):
            found.append(outcome(spark, bootstrap, source, kind, given, rows))
            print(number, kind, given, rows, json.dumps(found[-1])[:300], flush=True)
        Path(output).write_text(json.dumps(found))
    finally:
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
