"""The cost of unused partitions: the time to create them, their memory, and the CPU of the idle broker."""

from __future__ import annotations

import time

from bench.servers import cpu_seconds, create_topic, resident_mb
from bench.storage.result import Result
from bench.storage.servers import Ours, Theirs

COUNTS = (1, 100, 1_000, 5_000)
TOPIC_PARTITIONS = 500
SETTLE_S = 3.0


def measure(_repeat: int, *, quick: bool) -> list[Result]:
    """Measure one broker of each kind for each number of partitions: idle, after its topics are created. A topic counts as
    created when all its partitions have leaders."""
    idle_s = 5.0 if quick else 30.0
    memory: dict[str, list[float]] = {}
    cpu: dict[str, list[float]] = {}
    made: dict[str, list[float]] = {}
    for count, make in ((count, make) for count in COUNTS for make in (Ours, Theirs)):
        with make() as server:
            made_at = time.perf_counter()
            for start in range(0, count, TOPIC_PARTITIONS):  # one request for all topics would take longer than its timeout
                create_topic(server, f"idle-{start}", min(TOPIC_PARTITIONS, count - start))
            label = f"{count:,} partitions, {server.name}"
            made[label] = [time.perf_counter() - made_at]
            time.sleep(SETTLE_S)
            before, began = cpu_seconds(server.pid), time.monotonic()
            time.sleep(idle_s)
            cpu[label] = [(cpu_seconds(server.pid) - before) / (time.monotonic() - began) * 100]
            memory[label] = [resident_mb(server.pid)]
    return [
        Result("partitions", "time to make them", "s", made),
        Result("partitions", "resident memory", "MB", memory),
        Result("partitions", "CPU while idle", "% of a core", cpu),
    ]
