"""The cost of a follower's fetch that waits for its maximum time and then gets an empty response."""

from __future__ import annotations

import time

from bench.cluster.servers import BROKERS, Ours, cpu_of, create_topic

WAIT_MS = 5  # 1% of the default, so that requests are most of the work of an idle broker
SECONDS = 10.0
SETTLE_S = 3.0


def measure_idle_fetch() -> float:
    """The seconds of CPU of both ends together."""
    with Ours({"replica.fetch.wait.max.ms": str(WAIT_MS)}) as cluster:
        create_topic(cluster, "idle", len(BROKERS))
        time.sleep(SETTLE_S)
        spent, began = cpu_of(cluster), time.monotonic()
        time.sleep(SECONDS)
        requests = len(BROKERS) * (len(BROKERS) - 1) * (time.monotonic() - began) * 1000 / WAIT_MS
        return (cpu_of(cluster) - spent) / requests
