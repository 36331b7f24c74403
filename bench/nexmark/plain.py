"""Spark without views: the queries of Nexmark that a Structured Streaming query can compute, over the same topics. The rows are dropped.

`python -m bench.nexmark.plain BOOTSTRAP TIMES NAME...` prints a line with a name and seconds for each query and time, without the start of
Spark. Spark refuses the other queries on streams: an aggregate of an aggregate, a rank, or a count of distinct values.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from typing import Any

from barnabas.pipelines import session
from bench.nexmark.queries import TABLES, queries
from bench.views.plain import drop, stream_of
from bench.views.systems import MASTER

PROJECTIONS = ("q0", "q1", "q2", "q3", "q14", "q20")  # Spark takes these as they stand
OTHERS = {
    "q10": "SELECT auction, bidder, price, date_time, extra, date_format(date_time, 'yyyy-MM-dd') AS day,"
    " date_format(date_time, 'HH:mm') AS minute FROM bid",
    "q12": "SELECT bidder, count(*) AS bids, window(_timestamp, '10 seconds').start AS s FROM bid"
    " GROUP BY bidder, window(_timestamp, '10 seconds')",
    "q17": "SELECT auction, date_trunc('day', date_time) AS day, count(*) AS total, count(*) FILTER (WHERE price < 10000) AS low,"
    " count(*) FILTER (WHERE price >= 1000000) AS high, min(price) AS least, max(price) AS most, avg(price) AS mean, sum(price) AS s"
    " FROM bid GROUP BY 1, 2",
    "q21": "SELECT auction, bidder, price, channel, CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1'"
    " WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3' ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) END AS channel_id"
    " FROM bid WHERE url RLIKE '(&|^)channel_id=' OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')",
    "q22": "SELECT auction, bidder, price, channel, split(url, '/')[3] AS dir1, split(url, '/')[4] AS dir2, split(url, '/')[5] AS dir3"
    " FROM bid",
}
AGGREGATES = frozenset({"q12", "q17"})  # their rows change


def texts() -> dict[str, str]:
    """The queries in Spark's SQL."""
    return {**{name: queries()[name] for name in PROJECTIONS}, **OTHERS}


def main() -> int:
    bootstrap, times, names = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    spark = session("nexmark", master=MASTER, conf={"spark.log.level": "ERROR", "spark.sql.session.timeZone": "UTC"})
    _run(spark, bootstrap, names[0])  # starts the workers, and compiles
    for name in names:
        for _ in range(times):
            began_s = time.perf_counter()
            _run(spark, bootstrap, name)
            print(name, time.perf_counter() - began_s, flush=True)
    spark.stop()
    return 0


def _run(spark: Any, bootstrap: str, name: str) -> None:
    text = texts()[name]
    for table, columns in TABLES.items():
        if re.search(rf"\b{table}\b", text):
            _stream(spark, bootstrap, table, columns).createOrReplaceTempView(table)
    mode = "update" if name in AGGREGATES else "append"
    with tempfile.TemporaryDirectory(prefix="barnabas-bench-nexmark-") as folder:
        writer = spark.sql(text).writeStream.outputMode(mode).option("checkpointLocation", folder).trigger(availableNow=True)
        writer.foreachBatch(drop).start().awaitTermination()


def _stream(spark: Any, bootstrap: str, table: str, columns: str) -> Any:
    schema = columns.replace(" text", " string").replace(" timestamp", " timestamp_ntz")
    read = stream_of(spark, bootstrap, table).selectExpr(
        f"from_json(cast(value AS string), '{schema}') AS row", "timestamp AS _timestamp"
    )
    return read.select("row.*", "_timestamp")


if __name__ == "__main__":
    sys.exit(main())
