"""The effect of a copy on clients, while a replica is copied to another broker: without a copy, with a copy, and with a
throttled copy.

Each partition of a topic of `BYTES` gets a third replica, so every broker sends a third of that and receives a third. During
the copy, messages of another topic are timed from end to end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import count

from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from bench import wire
from bench.cluster.end_to_end import measure
from bench.cluster.servers import BROKERS, Cluster, Ours, Theirs, create_topic, delete_topic, leaders_of, led, replicas_of
from bench.load import Pattern, produce_to
from bench.storage.result import Result, ratio
from bench.wire import BadAnswer, record_batch

BYTES = 600_000_000
THROTTLE = 20_000_000  # bytes per second that a broker may send, and receive
RATE = 1_000  # messages per second
MEASURED_S = 4.0
TIMEOUT_S = 120.0
BULK = "resync"
TWO = [[BROKERS[(p + i) % 3] for i in range(2)] for p in range(3)]
THREE = [[BROKERS[(p + i) % 3] for i in range(3)] for p in range(3)]
TOPIC, BROKER = 2, 4  # resource types
SET, DELETE = 0, 1
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
REPLICAS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


def measure_resync(repeat: int) -> list[Result]:
    """Measure both clusters, one after the other."""
    makers: tuple[Callable[[], Cluster], ...] = (Ours, Theirs)
    results = []
    for make in makers:
        with make() as cluster:
            results += _measure(cluster, repeat)
    return results


def _measure(cluster: Cluster, repeat: int) -> list[Result]:
    fill(cluster)
    latencies: dict[str, list[float]] = {"alone": [], "beside re-sync": [], "beside re-sync with a throttle": []}
    rates: dict[str, list[float]] = {"without a throttle": [], f"allowed are {THROTTLE // 10**6} MB/s": []}
    for _ in range(repeat):
        latencies["alone"].append(_p99(cluster))
        for label, rate, throttle in zip(list(latencies)[1:], rates, (None, THROTTLE), strict=True):
            set_throttle(cluster, throttle)
            began = time.monotonic()
            reassign(cluster, THREE)
            latencies[label].append(_p99(cluster))
            _wait(lambda: None not in leaders_of(cluster, BULK) and replicas_of(cluster, BULK) == 9)
            rates[rate].append(BYTES / 3 / (time.monotonic() - began) / 1e6)
            set_throttle(cluster, None)
            reassign(cluster, TWO)
            _wait(lambda: replicas_of(cluster, BULK) == 6)
    timed = Result("resync", f"p99 end to end at {RATE:,}/s, {cluster.name}", "ms", latencies)
    timed.ratio = ratio(timed, "beside re-sync with a throttle", "alone")
    return [timed, Result("resync-rate", f"what a broker takes of a re-sync, {cluster.name}", "MB/s", rates)]


_numbers = count()


def _p99(cluster: Cluster) -> float:
    topic = f"timed-{next(_numbers)}"
    leaders = create_topic(cluster, topic, 9)
    found = measure(leaders, topic, acks=-1, rate=RATE, seconds=MEASURED_S).figures()["p99_ms"]
    delete_topic(cluster, topic)
    return found


def fill(cluster: Cluster) -> None:
    """Create a topic of BYTES with two replicas of each partition."""
    assignments = [CreatableReplicaAssignment(partition_index=p, broker_ids=ids) for p, ids in enumerate(TWO)]
    topic = CreatableTopic(name=BULK, num_partitions=-1, replication_factor=-1, assignments=assignments)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
    _no_error(wire.call(_any(cluster), wire.CREATE_TOPICS, 5, request, CreateTopicsResponse).topics[0].error_code)
    leaders = led(cluster, BULK, len(TWO))
    batch = record_batch(900, 1_000)
    pattern = Pattern(3, batch, 900, -1, 4, 1)
    sent = 0
    while sent < BYTES:
        sent += produce_to(leaders, BULK, pattern, 0.5).requests * len(batch)


def reassign(cluster: Cluster, replicas: Sequence[Sequence[int]]) -> None:
    partitions = [ReassignablePartition(partition_index=p, replicas=ids) for p, ids in enumerate(replicas)]
    request = AlterPartitionReassignmentsRequest(timeout_ms=30_000, topics=[ReassignableTopic(name=BULK, partitions=partitions)])
    answer = wire.call(_any(cluster), wire.ALTER_PARTITION_REASSIGNMENTS, 0, request, AlterPartitionReassignmentsResponse)
    for code in [answer.error_code, *(p.error_code for topic in answer.responses for p in topic.partitions)]:
        _no_error(code)


def set_throttle(cluster: Cluster, rate: int | None) -> None:
    """Set the throttle like kafka-reassign-partitions, for all replicas; None removes it. The settings of a broker are sent to
    this broker."""
    operation, replicas = (DELETE, None) if rate is None else (SET, "*")
    of_topic = AlterConfigsResource(
        resource_type=TOPIC,
        resource_name=BULK,
        configs=[AlterableConfig(name=name, config_operation=operation, value=replicas) for name in REPLICAS],
    )
    value = None if rate is None else str(rate)
    rates = [AlterableConfig(name=name, config_operation=operation, value=value) for name in RATES]
    _alter(_any(cluster), of_topic)
    for number, address in cluster.brokers.items():
        _alter(address, AlterConfigsResource(resource_type=BROKER, resource_name=str(number), configs=rates))


def _alter(address: tuple[str, int], resource: AlterConfigsResource) -> None:
    request = IncrementalAlterConfigsRequest(resources=[resource])
    answer = wire.call(address, wire.INCREMENTAL_ALTER_CONFIGS, 1, request, IncrementalAlterConfigsResponse)
    _no_error(answer.responses[0].error_code)


def _any(cluster: Cluster) -> tuple[str, int]:
    return next(iter(cluster.brokers.values()))


def _no_error(code: int) -> None:
    if code:
        raise BadAnswer(f"refused with error code {code}")


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline:
            raise BadAnswer(f"not so after {TIMEOUT_S:g} s")
        time.sleep(0.05)
