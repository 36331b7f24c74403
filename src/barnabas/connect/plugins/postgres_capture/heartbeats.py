"""Records at intervals, so that others see that a capture of quiet tables is alive; and a statement in the database with each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from barnabas.connect.api import Batch
from barnabas.connect.plugins.postgres_capture.catalog import Catalog
from barnabas.connect.plugins.postgres_capture.settings import Settings


class Heartbeats:
    """The heartbeats of a capture."""

    def __init__(self, settings: Settings, catalog: Catalog) -> None:
        self._settings, self._catalog, self._last_s = settings, catalog, 0.0

    def is_due(self, now_s: float) -> bool:
        """Whether it is time for one."""
        interval_s = self._settings.heartbeat_s
        return bool(interval_s) and now_s - self._last_s >= interval_s

    def beat(self, offset: Mapping[str, Any], partition: Mapping[str, Any], now_us: int, now_s: float) -> Batch:
        """The record of one. Raises ConnectError: the statement failed."""
        self._last_s = now_s
        if self._settings.heartbeat_query:
            self._catalog.run(self._settings.heartbeat_query, None)
        rows = pa.table(
            {
                "key": pa.array([{"serverName": self._settings.prefix}]),
                "value": pa.array([{"ts_ms": now_us // 1000}]),
            }
        )
        return Batch(rows, offset, partition, topic=self._settings.heartbeat_topic, is_records=True)
