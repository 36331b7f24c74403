"""The cases of `bench.cluster`: each is one measurement of one cluster.

A *producer* is like a client library: it has one connection to each broker, and each connection writes to one partition there.
*Bulk* batches have 16 kB, the `batch.size` of Kafka's producer; *large* ones have 256 kB.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from bench import memory
from bench.cluster.end_to_end import measure
from bench.cluster.servers import BROKERS, Cluster, cpu_of, create_topic, delete_topic, wait_committed
from bench.load import Pattern, produce_to
from bench.wire import record_batch

Figures = dict[str, float]
BATCH_BYTES, LARGE_BYTES = 16_384, 262_144
RATE = 5_000
LEADER, ALL = 1, -1
LARGE = "large"  # these cases write 1 GB/s
FRESH_S = 2.0  # the page cache for three replicas lasts this long; a longer load would measure the machine


@dataclass(frozen=True, slots=True)
class Lengths:
    """The seconds of a measurement, and of each warm-up load of a case without latency."""

    warm_up_s: float
    load_s: float
    latency_s: float


FULL = Lengths(warm_up_s=4.0, load_s=5.0, latency_s=15.0)
QUICK = Lengths(warm_up_s=2.0, load_s=2.0, latency_s=4.0)


@dataclass(frozen=True, slots=True)
class ClusterCase:
    """Like `bench.cases.Case`, for clusters: `figure` names the figure to compare, `target` is the wanted ratio."""

    name: str
    title: str
    figure: str
    unit: str
    higher_is_better: bool
    target: float | None
    run: Callable[[Cluster, float], Figures]
    limit: float | None = None
    is_latency: bool = False
    fresh_mb: float = 0.0  # free page cache that the written records need (`bench.memory`)

    def seconds(self, lengths: Lengths) -> float:
        seconds = lengths.latency_s if self.is_latency else lengths.load_s
        return min(seconds, FRESH_S) if self.fresh_mb else seconds

    def warm_up_seconds(self, lengths: Lengths) -> float:
        """The seconds of one warm-up load: brokers that have just started compile much code and fall far behind a rate, and
        need time to catch up."""
        return lengths.latency_s if self.is_latency else lengths.warm_up_s


_numbers = count()


def _produce_case(
    kind: str, producers: int, acks: int, value_bytes: int, pattern: Callable[[int, int, int], Pattern], target: float
) -> ClusterCase:
    partitions = producers * len(BROKERS)
    name = f"{kind}-{value_bytes}-{'all' if acks == ALL else acks}-{producers}"

    def run(cluster: Cluster, seconds: float) -> Figures:
        topic = f"bench-{name}-{next(_numbers)}"
        leaders = create_topic(cluster, topic, partitions)
        before = cpu_of(cluster)
        load = produce_to(leaders, topic, pattern(partitions, acks, value_bytes), seconds)
        wait_committed(cluster, topic, leaders, load.records)
        spent = cpu_of(cluster) - before
        delete_topic(cluster, topic)
        return {
            "records_per_s": load.records_per_s,
            "requests_per_s": load.requests / load.seconds,
            "cpu_s_per_million": spent / load.records * 1e6,
            "records": float(load.records),
        }

    many = "one producer" if producers == 1 else f"{producers} producers"
    what = {"one": "one record a request", "fifty": "50 records a batch", "bulk": "bulk", LARGE: "large batches"}[kind]
    size = "1 kB" if value_bytes == 1_000 else f"{value_bytes} B"
    title = f"{what}, {size}, acks={'all' if acks == ALL else acks}, {many}"
    fresh_mb = memory.MOST if kind == LARGE else 0.0
    return ClusterCase(name, title, "records_per_s", "records/s", True, target, run, fresh_mb=fresh_mb)


def _one(connections: int, acks: int, value_bytes: int) -> Pattern:
    return Pattern(connections, record_batch(1, value_bytes), 1, acks, 64, 16)


def _fifty(connections: int, acks: int, value_bytes: int) -> Pattern:
    return Pattern(connections, record_batch(50, value_bytes), 50, acks, 64, 16)


def _bulk(connections: int, acks: int, value_bytes: int) -> Pattern:
    return _full(BATCH_BYTES, connections, acks, value_bytes)


def _large(connections: int, acks: int, value_bytes: int) -> Pattern:
    return _full(LARGE_BYTES, connections, acks, value_bytes)


def _full(batch_bytes: int, connections: int, acks: int, value_bytes: int) -> Pattern:
    records = batch_bytes // len(record_batch(1, value_bytes)[61:])
    return Pattern(connections, record_batch(records, value_bytes), records, acks, 10, 5)


def _latency_case(acks: int) -> ClusterCase:
    name = f"end-to-end-{'all' if acks == ALL else acks}"

    def run(cluster: Cluster, seconds: float) -> Figures:
        topic = f"bench-{name}-{next(_numbers)}"
        leaders = create_topic(cluster, topic, 3 * len(BROKERS))
        before = cpu_of(cluster)
        found = measure(leaders, topic, acks=acks, rate=RATE, seconds=seconds)
        spent = cpu_of(cluster) - before
        delete_topic(cluster, topic)
        return {**found.figures(), "cpu_s_per_million": spent / len(found.consumed) * 1e6}

    title = f"end to end at {RATE:,} messages/s, acks={'all' if acks == ALL else acks}"
    return ClusterCase(name, title, "p50_ms", "ms (median)", False, 2.0, run, is_latency=True)


@dataclass(frozen=True, slots=True)
class ManyCase:
    """A figure of `many.measure_many`; that measures all its figures together."""

    name: str
    title: str
    figure: str
    unit: str
    higher_is_better: bool = False
    target: float | None = None
    limit: float | None = None


MANY = "many"
MANY_CASES = (
    ManyCase("many-made", "time to make them", "made_s", "s"),
    ManyCase("many-idle", "CPU of all processes while idle", "idle_cpu", "% of a core"),
    ManyCase("many-memory", "resident memory of all processes", "memory_mb", "MB"),
    ManyCase("many-killed", "until all is led after kill -9 of a broker", "killed_s", "s"),
    ManyCase("many-synced", "until all is in sync after it started again", "synced_s", "s"),
    ManyCase("many-stopped", "until all is led after SIGTERM of a broker", "stopped_s", "s"),
)
CASES = (
    *(_produce_case("one", producers, acks, 100, _one, 3.0) for acks in (ALL, LEADER) for producers in (1, 3)),
    _produce_case("one", 3, ALL, 1_000, _one, 3.0),
    *(_produce_case("fifty", producers, ALL, 100, _fifty, 2.5) for producers in (1, 3)),
    *(
        _produce_case("bulk", producers, acks, size, _bulk, 1.5)
        for size in (100, 1_000)
        for acks in (ALL, LEADER)
        for producers in (1, 3)
    ),
    _produce_case(LARGE, 3, ALL, 100, _large, 1.5),
    *(_latency_case(acks) for acks in (ALL, LEADER)),
)
