"""Records at intervals, so that others see that a capture of quiet tables is alive; and a statement in the database with each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from barnabas.connect.api import Batch, Config


class Heartbeats:
    """The heartbeats of a capture.

    Args:
        run: runs a statement in the database.
    """

    def __init__(self, config: Config, run: Callable[[str], object]) -> None:
        self._interval_s, self._run, self._last_s = config["heartbeat.interval.ms"] / 1000, run, 0.0
        self._prefix, self._query = config["topic.prefix"], config["heartbeat.action.query"]
        self._topic = f"{config['topic.heartbeat.prefix']}.{self._prefix}"

    def is_due(self) -> bool:
        """Whether it is time for one."""
        return bool(self._interval_s) and time.monotonic() - self._last_s >= self._interval_s

    def beat(self, offset: Mapping[str, Any], partition: Mapping[str, Any]) -> Batch:
        """The record of one. Raises ConnectError: the statement failed."""
        self._last_s = time.monotonic()
        if self._query:
            self._run(self._query)
        key, value = [{"serverName": self._prefix}], [{"ts_ms": time.time_ns() // 1_000_000}]
        rows = pa.table({"key": pa.array(key), "value": pa.array(value)})
        return Batch(rows, offset, partition, topic=self._topic, is_records=True)
