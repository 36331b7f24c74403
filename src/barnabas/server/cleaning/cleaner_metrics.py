"""The metrics of compaction for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from barnabas.clock import Clock
    from barnabas.server.cleaning.cleaner import LogCleaner

NAMES = {
    "barnabas_cleaner_runs_total": "Logs compacted since the start.",
    "barnabas_cleaner_failures_total": "Compactions that failed.",
    "barnabas_cleaner_bytes_read_total": "Bytes of logs that compaction read; dirty ones twice.",
    "barnabas_cleaner_bytes_written_total": "Bytes of cleaned segments that compaction wrote.",
    "barnabas_cleaner_records_removed_total": "Records that compaction left out of cleaned segments.",
    "barnabas_cleaner_running": "Logs that are being compacted.",
    "barnabas_cleaner_max_dirty_ratio": "Dirty share of the dirtiest compacted log, when they were last looked at.",
    "barnabas_cleaner_uncleanable_partitions": "Compacted logs that are left alone because they cannot be read.",
    "barnabas_cleaner_uncleanable_bytes": "Bytes of these logs.",
    "barnabas_cleaner_since_last_run_seconds": "Time since compacted logs were last looked at.",
}


class CleanerMetricsBroker(Protocol):
    """The parts of the broker that this module uses."""

    cleaner: LogCleaner
    clock: Clock


def measures(broker: CleanerMetricsBroker, counter: Any, gauge: Any) -> Iterator[Metric]:
    """The metrics of `NAMES`."""
    cleaner, counts = broker.cleaner, broker.cleaner.statistics
    for name, count in (
        ("barnabas_cleaner_runs_total", counts.runs),
        ("barnabas_cleaner_failures_total", counts.failures),
        ("barnabas_cleaner_bytes_read_total", counts.bytes_read),
        ("barnabas_cleaner_bytes_written_total", counts.bytes_written),
        ("barnabas_cleaner_records_removed_total", counts.records_removed),
    ):
        yield counter(name, NAMES[name], value=count)
    for name, value in (
        ("barnabas_cleaner_running", cleaner.running),
        ("barnabas_cleaner_max_dirty_ratio", counts.max_dirty_ratio),
        ("barnabas_cleaner_uncleanable_partitions", len(cleaner.uncleanable)),
        ("barnabas_cleaner_uncleanable_bytes", cleaner.uncleanable_bytes),
        ("barnabas_cleaner_since_last_run_seconds", (broker.clock.monotonic_ms() - counts.last_run_ms) / 1000),
    ):
        yield gauge(name, NAMES[name], value=value)
