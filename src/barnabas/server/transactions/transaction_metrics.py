"""The metrics of transactions for Prometheus: of coordinators, and of leaders whose partitions wait for the end of a transaction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.coordination.transactions.transaction import State
from barnabas.server.series import Series, in_turns

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from barnabas.clock import Clock
    from barnabas.coordination.transactions.coordinator import TransactionCoordinator
    from barnabas.replication.hosted_partitions import HostedPartitions

NAMES = {
    "barnabas_transactions_committed_total": "Transactions coordinated here whose commit was decided.",
    "barnabas_transactions_aborted_total": "Transactions coordinated here whose abort was decided.",
    "barnabas_transactions_timed_out_total": "Those of them that were aborted because they took too long.",
    "barnabas_transactional_ids": "Transactional ids coordinated here.",
    "barnabas_transactions_open": "Open transactions coordinated here.",
    "barnabas_transactions_two_phase_open": "Those of them that never time out, because somebody else decides them.",
    "barnabas_transactions_ending": "Transactions coordinated here whose end is decided, and not in all of their partitions yet.",
    "barnabas_transactions_oldest_open_seconds": "Age of the oldest open transaction coordinated here.",
    "barnabas_last_stable_offset_lag": "Records of a partition led here that readers of committed records do not get yet.",
    "barnabas_oldest_open_transaction_seconds": "Age of the transaction that holds a partition back, by the producer that it is of.",
}
LABELS = {
    "barnabas_last_stable_offset_lag": ("topic", "partition"),
    "barnabas_oldest_open_transaction_seconds": ("topic", "partition", "producer_id"),
}


class TransactionMetricsBroker(Protocol):
    """The parts of the broker that this module uses."""

    clock: Clock
    partitions: HostedPartitions
    transactions: TransactionCoordinator


def measures(broker: TransactionMetricsBroker, counter: Any, gauge: Any) -> Iterator[Metric | Series | None]:
    """The metrics of `NAMES`, and None at points where the loop may do other work."""
    now_ms = broker.clock.now_ms()
    yield from _coordinated(broker, counter, gauge, now_ms)
    yield from _held_back(broker, now_ms)


def _coordinated(broker: TransactionMetricsBroker, counter: Any, gauge: Any, now_ms: int) -> Iterator[Metric | Series | None]:
    coordinator = broker.transactions
    known = opened = two_phase = ending = 0
    oldest_ms = now_ms
    for hosted in coordinator.runtime:
        known += len(hosted.shard)
        ending += len(hosted.shard.markers)
        for each in in_turns(list(hosted.shard.transactions.values())):
            if each is None:
                yield None
            elif each.state is State.ONGOING:
                opened += 1
                two_phase += each.is_of_two_phases
                oldest_ms = min(oldest_ms, each.start_ms)
    for name, count in (
        ("barnabas_transactions_committed_total", coordinator.counts.committed),
        ("barnabas_transactions_aborted_total", coordinator.counts.aborted),
        ("barnabas_transactions_timed_out_total", coordinator.counts.timed_out),
    ):
        yield counter(name, NAMES[name], value=count)
    for name, value in (
        ("barnabas_transactional_ids", known),
        ("barnabas_transactions_open", opened),
        ("barnabas_transactions_two_phase_open", two_phase),
        ("barnabas_transactions_ending", ending),
        ("barnabas_transactions_oldest_open_seconds", (now_ms - oldest_ms) / 1000),
    ):
        yield gauge(name, NAMES[name], value=value)


def _held_back(broker: TransactionMetricsBroker, now_ms: int) -> Iterator[Metric | Series | None]:
    name, oldest = "barnabas_last_stable_offset_lag", "barnabas_oldest_open_transaction_seconds"
    lag, ages = (Series(each, NAMES[each], LABELS[each]) for each in (name, oldest))
    for partition in in_turns(list(broker.partitions)):
        if partition is None:
            yield None
            continue
        if not partition.is_leader:
            continue
        key = [partition.topic, str(partition.index)]
        lag.add(key, partition.high_watermark - partition.last_stable_offset)
        first = partition.log.reader.first_open_transaction()
        if first is not None:
            began_ms = first.transaction_first_timestamp if first.transaction_first_timestamp >= 0 else first.last_timestamp
            ages.add([*key, str(first.producer_id)], max(now_ms - began_ms, 0) / 1000)
    yield from (lag, ages)
