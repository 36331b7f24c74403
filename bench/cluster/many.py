"""1,000 partitions with three replicas on three brokers: the cost of an idle cluster, and the time until other brokers lead the
partitions of a broker that was killed or stopped.

No other cluster runs while one is measured. The measured time ends when a live broker reports a leader for every partition, and
these leaders answer for all of them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from bench.cluster.servers import (
    BROKERS,
    Cluster,
    cpu_of,
    create_topic,
    end_offsets,
    leaders_of,
    memory_of,
)
from bench.wire import BadAnswer

TOPICS, PARTITIONS = 5, 200
SETTLE_S, IDLE_S = 5.0, 20.0
POLL_S = 0.02
FAILOVER_TIMEOUT_S = 120.0
KILLED, STOPPED = BROKERS[0], BROKERS[1]
Figures = dict[str, float]


def measure_many(make: Callable[[], Cluster]) -> Figures:
    """The figures of one cluster: seconds, percent of a core, MB."""
    with make() as cluster:
        topics = [f"many-{number}" for number in range(TOPICS)]
        began = time.monotonic()
        for topic in topics:
            create_topic(cluster, topic, PARTITIONS)
        figures = {"made_s": time.monotonic() - began}
        time.sleep(SETTLE_S)
        spent, began = cpu_of(cluster), time.monotonic()
        time.sleep(IDLE_S)
        figures["idle_cpu"] = (cpu_of(cluster) - spent) / (time.monotonic() - began) * 100
        figures["memory_mb"] = memory_of(cluster)
        figures["killed_s"] = _failover(cluster, topics, KILLED, cluster.kill)
        cluster.start_again(KILLED)
        figures["synced_s"] = _wait(lambda: all(None not in leaders_of(cluster, topic) for topic in topics))
        figures["stopped_s"] = _failover(cluster, topics, STOPPED, cluster.shut_down)
        return figures


def _failover(cluster: Cluster, topics: list[str], broker_id: int, end: Callable[[int], None]) -> float:
    """The seconds from the signal until other brokers lead all partitions of a broker."""
    others = {number: address for number, address in cluster.brokers.items() if number != broker_id}
    ended = threading.Thread(target=end, args=(broker_id,))
    began = time.monotonic()
    ended.start()

    def is_over() -> bool:
        for topic in topics:
            leaders = leaders_of(cluster, topic, asked=next(iter(others.values())), in_sync=False)
            if not all(leader in others for leader in leaders):
                return False
            try:
                end_offsets(topic, [others[leader] for leader in leaders if leader is not None])
            except BadAnswer:
                return False
        return True

    _wait(is_over)
    seconds = time.monotonic() - began
    ended.join()
    return seconds


def _wait(condition: Callable[[], bool]) -> float:
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > FAILOVER_TIMEOUT_S:
            raise BadAnswer(f"not over after {FAILOVER_TIMEOUT_S:g} s")
        time.sleep(POLL_S)
    return time.monotonic() - began
