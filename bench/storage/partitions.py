"""What partitions cost that nobody uses: memory, and CPU while nothing happens."""

from __future__ import annotations

import time

from bench.servers import cpu_seconds, create_topic, resident_mb
from bench.storage.result import Result
from bench.storage.servers import Ours

COUNTS = (1, 100, 1_000, 5_000)
TOPIC_PARTITIONS = 500
SETTLE_S = 3.0


def measure(_repeat: int, *, quick: bool) -> list[Result]:
    """One broker for each number, idle after its topics were made."""
    idle_s = 5.0 if quick else 30.0
    memory: dict[str, list[float]] = {}
    cpu: dict[str, list[float]] = {}
    for count in COUNTS:
        with Ours() as server:
            for start in range(0, count, TOPIC_PARTITIONS):  # a request for all of them would be waited for too long
                create_topic(server, f"idle-{start}", min(TOPIC_PARTITIONS, count - start))
            time.sleep(SETTLE_S)
            before, began = cpu_seconds(server.pid), time.monotonic()
            time.sleep(idle_s)
            label = f"{count:,} partitions"
            cpu[label] = [(cpu_seconds(server.pid) - before) / (time.monotonic() - began) * 100]
            memory[label] = [resident_mb(server.pid)]
    return [
        Result("partitions", "resident memory", "MB", memory),
        Result("partitions", "CPU while idle", "% of a core", cpu),
    ]
