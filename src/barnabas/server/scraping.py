"""The page for Prometheus: it gives names, types and help texts to the counters of the broker.

The first scrape imports the Prometheus library, because a broker without an endpoint should not pay for it.

The page is made in several turns of the loop, because a broker may have hundreds of thousands of partitions and offsets of groups. So its
numbers do not all belong to the same moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.protocol.messages import APIS
from barnabas.server import old_requests
from barnabas.server.cleaning import cleaner_metrics as cleaning
from barnabas.server.mirroring import mirror_metrics as mirroring
from barnabas.server.quotas import quota_metrics as quotas
from barnabas.server.replication import replica_metrics as replication
from barnabas.server.series import Series, in_turns
from barnabas.server.transactions import transaction_metrics as transactions

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from barnabas.coordination.group_coordinator import GroupCoordinator
    from barnabas.replication.hosted_partitions import HostedPartitions
    from barnabas.server.authentication.sasl_listeners import SaslListeners
    from barnabas.server.connection import Connection
    from barnabas.server.fetching.session_cache import FetchSessionCache
    from barnabas.server.logs.log_dir_moves import LogDirMoves
    from barnabas.server.metrics import Metrics
    from barnabas.server.old_requests import OldRequests
    from barnabas.server.receiver import Receiver
    from barnabas.server.replication.isr_changes import IsrChanges
    from barnabas.server.replication.throttles import Throttles
    from barnabas.storage.manager import LogManager

# Name -> help text and value of a broker. `Any`, because the broker imports this module before its own types are known.
Measures = Mapping[str, tuple[str, Callable[[Any], float]]]

COUNTERS: Measures = {
    "barnabas_bytes_in_total": (
        "Bytes of record batches taken from producers.",
        lambda broker: broker.metrics.bytes_in,
    ),
    "barnabas_bytes_out_total": (
        "Bytes of record batches given to fetchers.",
        lambda broker: broker.metrics.bytes_out,
    ),
    "barnabas_connections_opened_total": (
        "Connections accepted since the start.",
        lambda broker: broker.metrics.connections_opened,
    ),
    "barnabas_connections_refused_total": (
        "Connections refused for a limit.",
        lambda broker: broker.metrics.connections_refused,
    ),
    "barnabas_logins_total": (
        "Connections that logged in by SASL.",
        lambda broker: broker.sasl_listeners.counts.successes,
    ),
    "barnabas_failed_logins_total": (
        "Log-ins by SASL that failed.",
        lambda broker: broker.sasl_listeners.counts.failures,
    ),
    "barnabas_renewed_logins_total": (
        "Log-ins by SASL of connections that were logged in.",
        lambda broker: broker.sasl_listeners.counts.renewals,
    ),
    "barnabas_expired_sessions_closed_total": (
        "Connections closed because they went on after the end of their SASL session.",
        lambda broker: broker.sasl_listeners.counts.expired_closed,
    ),
    "barnabas_tls_handshakes_total": (
        "TLS handshakes that came about.",
        lambda broker: broker.metrics.tls_handshakes,
    ),
    "barnabas_tls_handshakes_failed_total": (
        "TLS handshakes that did not: refused, broken off, or not made in time.",
        lambda broker: broker.metrics.tls_handshakes_failed,
    ),
    "barnabas_log_dir_moves_finished_total": (
        "Partitions that were moved to another log directory.",
        lambda broker: broker.log_dir_moves.finished,
    ),
    "barnabas_log_dir_moves_failed_total": (
        "Moves to another log directory that a disk ended.",
        lambda broker: broker.log_dir_moves.failed,
    ),
    "barnabas_log_dir_moved_bytes_total": (
        "Bytes copied from one log directory to another.",
        lambda broker: broker.log_dir_moves.bytes_copied,
    ),
    "barnabas_corrupt_stretches_total": (
        "Stretches of log files that were found damaged when they were read.",
        lambda broker: broker.metrics.corrupt_stretches,
    ),
    "barnabas_flushed_partitions_total": (
        "Partitions flushed in rounds of group commit.",
        lambda broker: broker.metrics.flushed_partitions,
    ),
    "barnabas_storage_refusals_total": (
        "Writes refused because space, descriptors or memory had run out.",
        lambda broker: broker.metrics.storage_refusals,
    ),
    "barnabas_read_errors_total": (
        "Reads of logs that the disk refused.",
        lambda broker: broker.metrics.read_errors,
    ),
    "barnabas_replicated_bytes_in_total": (
        "Bytes of record batches taken from leaders.",
        lambda broker: broker.metrics.replicated_bytes_in,
    ),
    "barnabas_throttled_bytes_in_total": (
        "Bytes of record batches taken from leaders for replicas that are throttled.",
        lambda broker: broker.throttles.fetching.passed,
    ),
    "barnabas_throttled_bytes_out_total": (
        "Bytes of record batches sent to followers for replicas that are throttled.",
        lambda broker: broker.throttles.sending.passed,
    ),
    "barnabas_isr_shrinks_total": (
        "Changes by which replicas left the in-sync set of a partition led here.",
        lambda broker: broker.isr.shrinks,
    ),
    "barnabas_isr_expands_total": (
        "Changes by which replicas joined the in-sync set of a partition led here.",
        lambda broker: broker.isr.expands,
    ),
    "barnabas_isr_failed_updates_total": (
        "Changes of in-sync sets that the controller refused.",
        lambda broker: broker.isr.failed_updates,
    ),
}

GAUGES: Measures = {
    "barnabas_connections": (
        "Connections open now.",
        lambda broker: len(broker.connections),
    ),
    "barnabas_loop_lag_seconds": (
        "How late the event loop ran its last timer.",
        lambda broker: broker.metrics.loop_lag_ms / 1000,
    ),
    "barnabas_loop_lag_max_seconds": (
        "How late the event loop ran a timer at worst.",
        lambda broker: broker.metrics.loop_lag_max_ms / 1000,
    ),
    "barnabas_partitions": (
        "Partitions that this broker has a replica of.",
        lambda broker: len(broker.partitions),
    ),
    "barnabas_fetch_sessions": (
        "Incremental fetch sessions.",
        lambda broker: len(broker.fetch_sessions),
    ),
    "barnabas_queued_request_bytes": (
        "Memory of request frames that are not complete.",
        lambda broker: broker.receiver.queued_bytes,
    ),
    "barnabas_log_dir_moves": (
        "Partitions on their way to another log directory.",
        lambda broker: len(broker.log_dir_moves),
    ),
    "barnabas_open_segments": (
        "Segments with an open file.",
        lambda broker: len(broker.logs.open_files or ()),
    ),
    "barnabas_groups": (
        "Consumer groups.",
        lambda broker: broker.groups.group_count,
    ),
    "barnabas_log_directories_offline": (
        "Log directories that failed and are out of use until the next start.",
        lambda broker: len(broker.logs.failed_directories),
    ),
    "barnabas_partitions_offline": (
        "Partitions that are refused because their log directory failed.",
        lambda broker: broker.partitions.offline_count,
    ),
}

TEXTS = {
    "barnabas_log_size_bytes": "Bytes of a partition's log.",
    "barnabas_log_start_offset": "First offset of a partition.",
    "barnabas_log_end_offset": "Offset after the last record of a partition.",
    "barnabas_group_lag": "Records between a group's committed offset and the high watermark.",
    "barnabas_request_seconds": "Time from a request's frame to its answer, by API; waiting of long polls is not counted.",
    "barnabas_flush_round_seconds": "Time of a round of group commit, in which all partitions that wait for the disk are flushed.",
}

_LABELS: Mapping[str, tuple[str, ...]] = {
    "barnabas_log_size_bytes": ("topic", "partition"),
    "barnabas_log_start_offset": ("topic", "partition"),
    "barnabas_log_end_offset": ("topic", "partition"),
    "barnabas_group_lag": ("group", "topic", "partition"),
    "barnabas_request_seconds": ("api",),
}
HISTOGRAMS = frozenset({"barnabas_request_seconds", "barnabas_flush_round_seconds"})

LABELS = {**_LABELS, **transactions.LABELS, **quotas.LABELS, **mirroring.LABELS, **old_requests.LABELS}
NAMES = {
    **{name: text for name, (text, _) in {**COUNTERS, **GAUGES}.items()},
    **TEXTS,
    **replication.NAMES,
    **cleaning.NAMES,
    **transactions.NAMES,
    **quotas.NAMES,
    **mirroring.NAMES,
    **old_requests.NAMES,
}


class ScrapedBroker(
    replication.ReplicaMetricsBroker,
    cleaning.CleanerMetricsBroker,
    transactions.TransactionMetricsBroker,
    quotas.QuotaBroker,
    mirroring.MirrorMetricsBroker,
    Protocol,
):
    """The parts of the broker that this page uses."""

    connections: dict[Connection, None]
    fetch_sessions: FetchSessionCache
    groups: GroupCoordinator
    isr: IsrChanges
    log_dir_moves: LogDirMoves
    logs: LogManager
    metrics: Metrics
    old_requests: OldRequests
    partitions: HostedPartitions
    receiver: Receiver
    sasl_listeners: SaslListeners
    throttles: Throttles


def kind_of(name: str) -> str:
    """The name of a metric's kind in Prometheus."""
    if name in HISTOGRAMS:
        return "histogram"
    return "counter" if name.endswith("_total") else "gauge"


def _measures(broker: ScrapedBroker) -> Iterator[Metric | Series | None]:
    """All metrics; a None between them marks a point where the loop may do other work."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

    for measures, family in ((COUNTERS, CounterMetricFamily), (GAUGES, GaugeMetricFamily)):
        for name, (text, read) in measures.items():
            yield family(name, text, value=read(broker))
    yield from replication.measures(broker, GaugeMetricFamily)
    yield from cleaning.measures(broker, CounterMetricFamily, GaugeMetricFamily)
    yield from transactions.measures(broker, CounterMetricFamily, GaugeMetricFamily)
    yield from quotas.measures(broker, CounterMetricFamily, GaugeMetricFamily)
    yield from mirroring.measures(broker, CounterMetricFamily, GaugeMetricFamily)
    yield from old_requests.measures(broker.old_requests, CounterMetricFamily)
    yield from _times(broker, HistogramMetricFamily)
    yield from _partitions(broker)
    yield from _group_lag(broker)


def _times(broker: ScrapedBroker, family: Any) -> Iterator[Metric]:
    metrics = broker.metrics
    latency: Any = family(
        "barnabas_request_seconds", TEXTS["barnabas_request_seconds"], labels=LABELS["barnabas_request_seconds"]
    )
    for api_key, histogram in sorted(metrics.requests.items()):
        latency.add_metric([APIS[api_key][1]], histogram.cumulative(), histogram.sum_ns / 1e9)
    rounds: Any = family("barnabas_flush_round_seconds", TEXTS["barnabas_flush_round_seconds"])
    rounds.add_metric([], metrics.flush_rounds.cumulative(), metrics.flush_rounds.sum_ns / 1e9)
    yield from (latency, rounds)


def _partitions(broker: ScrapedBroker) -> Iterator[Series | None]:
    size, start, end = (
        Series(name, TEXTS[name], LABELS[name])
        for name in ("barnabas_log_size_bytes", "barnabas_log_start_offset", "barnabas_log_end_offset")
    )
    for partition in in_turns(list(broker.partitions)):
        if partition is None:
            yield None
            continue
        key = [partition.topic, str(partition.index)]
        size.add(key, partition.log.size_bytes)
        start.add(key, partition.log.log_start_offset)
        end.add(key, partition.log.log_end_offset)
    yield from (size, start, end)


def _group_lag(broker: ScrapedBroker) -> Iterator[Series | None]:
    lag = Series("barnabas_group_lag", TEXTS["barnabas_group_lag"], LABELS["barnabas_group_lag"])
    for each in in_turns(broker.groups.committed_offsets()):
        if each is None:
            yield None
            continue
        group, topic, index, offset = each
        partition = broker.partitions.get(topic, index)
        if partition is not None:
            lag.add([group, topic, str(index)], max(partition.high_watermark - offset, 0))
    yield lag


class _One:
    """A metric in the form of the library."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> list[Metric]:
        return [self._metric]


def pieces(broker: ScrapedBroker) -> Iterator[bytes]:
    """The page in Prometheus' text format, in pieces. After each piece the loop may do other work."""
    from prometheus_client import generate_latest

    for each in _measures(broker):
        if each is None:
            yield b""
        elif isinstance(each, Series):
            yield from each.pieces()
        else:
            yield generate_latest(_One(each))


async def render_in_turns(broker: ScrapedBroker) -> list[bytes]:
    """The page in pieces, made in several turns of the loop."""
    made = []
    for piece in pieces(broker):
        made.append(piece)
        await asyncio.sleep(0)
    return made
