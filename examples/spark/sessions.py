"""Custom state (`transformWithState`): three failed logins in a row raise an alarm.

For each user the processor keeps the failures since the last success, and nothing for users without any. RocksDB holds the state, on the
disk of the executors and in the checkpoint, so that there may be more users than memory.

With timeMode ProcessingTime (timers, or state that expires) Spark makes batches without data as long as the query runs, so that one with
availableNow never ends; EventTime and None end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from examples.spark.common import main, stream

ALARM_AFTER = 3


class FailedLogins(StatefulProcessor):
    """Counts failures in a row; a row (user, failures, at) for each that makes it three or more."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._failures = handle.getValueState("failures", "count int")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:
        state = self._failures.get()
        count = state[0] if state is not None else 0
        for row in sorted(rows, key=lambda row: row.at):
            count = 0 if row.ok else count + 1
            if count >= ALARM_AFTER:
                yield Row(user=key[0], failures=count, at=row.at)
        if count:
            self._failures.update((count,))
        else:
            self._failures.clear()

    def close(self) -> None: ...


def alarms(spark: SparkSession, servers: str, logins: str) -> DataFrame:
    """The alarms, as they are raised."""
    rows = stream(spark, servers, logins, "user string, at timestamp, ok boolean")
    return rows.groupBy("user").transformWithState(
        FailedLogins(), outputStructType="user string, failures int, at timestamp", outputMode="Append", timeMode="None"
    )


if __name__ == "__main__":
    main("alarms", {"logins": "logins"}, alarms, key="user")
