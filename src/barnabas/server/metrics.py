"""What the broker counts, and its page for Prometheus.

Counting is adding to plain integers on the loop; the names, types and help texts are put to them only when somebody asks. The
Prometheus library is imported with the first scrape endpoint, since a broker without one should not pay for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from barnabas.protocol.messages import APIS
from barnabas.server.quotas import measures as quotas
from barnabas.server.transactions import measures as transactions

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from barnabas.server.broker import Broker

LATENCY_BUCKETS = 28  # powers of two of microseconds, from under 1 us to over a minute
LOOP_LAG_INTERVAL_MS = 100


class Histogram:
    """Counts by power of two of microseconds."""

    __slots__ = ("buckets", "sum_ns")

    def __init__(self) -> None:
        self.buckets = [0] * LATENCY_BUCKETS
        self.sum_ns = 0

    def observe(self, nanoseconds: int, count: int = 1) -> None:
        """`count` times, `nanoseconds` in all."""
        self.sum_ns += nanoseconds
        power = (nanoseconds // (1000 * count)).bit_length()
        self.buckets[power if power < LATENCY_BUCKETS else LATENCY_BUCKETS - 1] += count

    @property
    def count(self) -> int:
        return sum(self.buckets)

    def cumulative(self) -> list[tuple[str, float]]:
        """Pairs of upper bound in seconds and count, as Prometheus has them."""
        total, result = 0, []
        for power, count in enumerate(self.buckets[:-1]):
            total += count
            result.append((repr(2**power / 1e6), float(total)))
        return [*result, ("+Inf", float(self.count))]


class Metrics:
    """The counters of one broker; written by the loop only."""

    def __init__(self) -> None:
        self.bytes_in = 0
        self.bytes_out = 0
        self.replicated_bytes_in = 0
        self.connections_opened = 0
        self.connections_refused = 0
        self.tls_handshakes = 0
        self.tls_handshakes_failed = 0
        self.corrupt_stretches = 0
        self.loop_lag_ms = 0.0
        self.loop_lag_max_ms = 0.0
        self.requests: dict[int, Histogram] = {}
        self.flush_rounds = Histogram()
        self.flushed_partitions = 0
        self.storage_refusals = 0
        self.read_errors = 0

    def observe_request(self, api_key: int, nanoseconds: int, count: int = 1) -> None:
        """`count` requests were worked on, in `nanoseconds` all together."""
        found = self.requests.get(api_key)
        if found is None:
            found = self.requests[api_key] = Histogram()
        found.observe(nanoseconds, count)

    def observe_flush(self, partitions: int, seconds: float) -> None:
        self.flushed_partitions += partitions
        self.flush_rounds.observe(int(seconds * 1e9))

    def observe_loop_lag(self, lag_ms: float) -> None:
        self.loop_lag_ms = lag_ms
        self.loop_lag_max_ms = max(self.loop_lag_max_ms, lag_ms)


NAMES = {
    "barnabas_bytes_in_total": "Bytes of record batches taken from producers.",
    "barnabas_bytes_out_total": "Bytes of record batches given to fetchers.",
    "barnabas_connections_opened_total": "Connections accepted since the start.",
    "barnabas_connections_refused_total": "Connections refused for a limit.",
    "barnabas_logins_total": "Connections that logged in by SASL.",
    "barnabas_failed_logins_total": "Log-ins by SASL that failed.",
    "barnabas_renewed_logins_total": "Log-ins by SASL of connections that were logged in.",
    "barnabas_expired_sessions_closed_total": "Connections closed because they went on after the end of their SASL session.",
    "barnabas_tls_handshakes_total": "TLS handshakes that came about.",
    "barnabas_tls_handshakes_failed_total": "TLS handshakes that did not: refused, broken off, or not made in time.",
    "barnabas_corrupt_stretches_total": "Stretches of log files that were found damaged when they were read.",
    "barnabas_connections": "Connections open now.",
    "barnabas_request_seconds": "Time from a request's frame to its answer, by API; waiting of long polls is not counted.",
    "barnabas_loop_lag_seconds": "How late the event loop ran its last timer.",
    "barnabas_loop_lag_max_seconds": "How late the event loop ran a timer at worst.",
    "barnabas_partitions": "Partitions that this broker has a replica of.",
    "barnabas_replicated_bytes_in_total": "Bytes of record batches taken from leaders.",
    "barnabas_throttled_bytes_in_total": "Bytes of record batches taken from leaders for replicas that are throttled.",
    "barnabas_throttled_bytes_out_total": "Bytes of record batches sent to followers for replicas that are throttled.",
    "barnabas_isr_shrinks_total": "Changes by which replicas left the in-sync set of a partition led here.",
    "barnabas_isr_expands_total": "Changes by which replicas joined the in-sync set of a partition led here.",
    "barnabas_isr_failed_updates_total": "Changes of in-sync sets that the controller refused.",
    "barnabas_leaders": "Partitions that this broker leads.",
    "barnabas_under_replicated_partitions": "Partitions led here of which not all replicas are in sync.",
    "barnabas_under_min_isr_partitions": "Partitions led here with fewer replicas in sync than min.insync.replicas.",
    "barnabas_at_min_isr_partitions": "Partitions led here with just as many replicas in sync as min.insync.replicas asks for.",
    "barnabas_replica_max_lag": "Records that the follower furthest behind lacks, of all partitions led here.",
    "barnabas_replica_fetchers": "Connections on which this broker follows others.",
    "barnabas_fetch_sessions": "Incremental fetch sessions.",
    "barnabas_queued_request_bytes": "Memory of request frames that are not complete.",
    "barnabas_flush_round_seconds": "Time of a round of group commit, in which all partitions that wait for the disk are flushed.",
    "barnabas_flushed_partitions_total": "Partitions flushed in rounds of group commit.",
    "barnabas_log_directories_offline": "Log directories that failed and are out of use until the next start.",
    "barnabas_partitions_offline": "Partitions that are refused because their log directory failed.",
    "barnabas_storage_refusals_total": "Writes refused because space, descriptors or memory had run out.",
    "barnabas_read_errors_total": "Reads of logs that the disk refused.",
    "barnabas_log_dir_moves": "Partitions on their way to another log directory.",
    "barnabas_log_dir_moves_finished_total": "Partitions that were moved to another log directory.",
    "barnabas_log_dir_moves_failed_total": "Moves to another log directory that a disk ended.",
    "barnabas_log_dir_moved_bytes_total": "Bytes copied from one log directory to another.",
    "barnabas_open_segments": "Segments with an open file.",
    "barnabas_log_size_bytes": "Bytes of a partition's log.",
    "barnabas_log_start_offset": "First offset of a partition.",
    "barnabas_log_end_offset": "Offset after the last record of a partition.",
    "barnabas_group_lag": "Records between a group's committed offset and the high watermark.",
    "barnabas_groups": "Consumer groups.",
    "barnabas_cleaner_runs_total": "Logs compacted since the start.",
    "barnabas_cleaner_failures_total": "Compactions that failed.",
    "barnabas_cleaner_bytes_read_total": "Bytes of logs that compaction read; dirty ones twice.",
    "barnabas_cleaner_bytes_written_total": "Bytes of cleaned segments that compaction wrote.",
    "barnabas_cleaner_records_removed_total": "Records that compaction left out of cleaned segments.",
    "barnabas_cleaner_running": "Logs that are being compacted.",
    "barnabas_cleaner_max_dirty_ratio": "Dirty share of the dirtiest compacted log, when they were last looked at.",
    "barnabas_cleaner_uncleanable_partitions": "Compacted logs that are left alone because they cannot be read.",
    "barnabas_cleaner_uncleanable_bytes": "Bytes of these logs.",
    "barnabas_controller": "1 where this broker is the controller of its cluster.",
    "barnabas_brokers": "Live brokers of the cluster, as this one sees it.",
    "barnabas_stood_down": "1 while this broker leads nothing, because its session with the cluster's metadata is in doubt.",
    "barnabas_leaderless_partitions": "Partitions with a replica here that nobody leads.",
    "barnabas_lost_partitions": "Leaderless partitions here of which all that were in sync may have lost records, see cluster.md.",
    "barnabas_moving_partitions": "Partitions led here that are being moved to other brokers.",
    "barnabas_cleaner_since_last_run_seconds": "Time since compacted logs were last looked at.",
    **transactions.NAMES,
    **quotas.NAMES,
}


class BrokerCollector:
    """Turns a broker's counters into Prometheus metrics when scraped."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        broker, metrics = self._broker, self._broker.metrics
        for name, count in (
            ("barnabas_bytes_in_total", metrics.bytes_in),
            ("barnabas_bytes_out_total", metrics.bytes_out),
            ("barnabas_connections_opened_total", metrics.connections_opened),
            ("barnabas_connections_refused_total", metrics.connections_refused),
            ("barnabas_logins_total", broker.doors.counts.successes),
            ("barnabas_failed_logins_total", broker.doors.counts.failures),
            ("barnabas_renewed_logins_total", broker.doors.counts.renewals),
            ("barnabas_expired_sessions_closed_total", broker.doors.counts.expired_closed),
            ("barnabas_tls_handshakes_total", metrics.tls_handshakes),
            ("barnabas_tls_handshakes_failed_total", metrics.tls_handshakes_failed),
            ("barnabas_log_dir_moves_finished_total", broker.moves.finished),
            ("barnabas_log_dir_moves_failed_total", broker.moves.failed),
            ("barnabas_log_dir_moved_bytes_total", broker.moves.bytes_copied),
            ("barnabas_corrupt_stretches_total", metrics.corrupt_stretches),
            ("barnabas_flushed_partitions_total", metrics.flushed_partitions),
            ("barnabas_storage_refusals_total", metrics.storage_refusals),
            ("barnabas_read_errors_total", metrics.read_errors),
            ("barnabas_replicated_bytes_in_total", metrics.replicated_bytes_in),
            ("barnabas_throttled_bytes_in_total", broker.throttles.fetching.passed),
            ("barnabas_throttled_bytes_out_total", broker.throttles.sending.passed),
            ("barnabas_isr_shrinks_total", broker.isr.shrinks),
            ("barnabas_isr_expands_total", broker.isr.expands),
            ("barnabas_isr_failed_updates_total", broker.isr.failed_updates),
        ):
            yield CounterMetricFamily(name, NAMES[name], value=count)
        for name, value in (
            ("barnabas_connections", float(len(broker.connections))),
            ("barnabas_loop_lag_seconds", metrics.loop_lag_ms / 1000),
            ("barnabas_loop_lag_max_seconds", metrics.loop_lag_max_ms / 1000),
            ("barnabas_partitions", float(len(broker.partitions))),
            ("barnabas_fetch_sessions", float(len(broker.fetch_sessions))),
            ("barnabas_queued_request_bytes", float(broker.receiver.queued_bytes)),
            ("barnabas_log_dir_moves", float(len(broker.moves))),
            ("barnabas_open_segments", float(len(broker.logs.open_files or ()))),
            ("barnabas_groups", float(broker.groups.group_count)),
            ("barnabas_log_directories_offline", float(len(broker.logs.failed_directories))),
            ("barnabas_partitions_offline", float(broker.partitions.offline_count)),
        ):
            yield GaugeMetricFamily(name, NAMES[name], value=value)
        yield from self._replication(GaugeMetricFamily)
        yield from self._cleaner(CounterMetricFamily, GaugeMetricFamily)
        yield from self._cluster(GaugeMetricFamily)
        yield from transactions.measures(broker, CounterMetricFamily, GaugeMetricFamily)
        yield from quotas.measures(broker, CounterMetricFamily, GaugeMetricFamily)
        latency = HistogramMetricFamily("barnabas_request_seconds", NAMES["barnabas_request_seconds"], labels=["api"])
        for api_key, histogram in sorted(metrics.requests.items()):
            latency.add_metric([APIS[api_key][1]], histogram.cumulative(), histogram.sum_ns / 1e9)
        yield latency
        rounds = HistogramMetricFamily("barnabas_flush_round_seconds", NAMES["barnabas_flush_round_seconds"])
        rounds.add_metric([], metrics.flush_rounds.cumulative(), metrics.flush_rounds.sum_ns / 1e9)
        yield rounds
        yield from self._partitions(GaugeMetricFamily)
        yield self._group_lag(GaugeMetricFamily)

    def _replication(self, gauge: Any) -> Iterator[Metric]:
        leaders = under_replicated = under_minimum = at_minimum = max_lag = 0
        for partition in self._broker.partitions:
            leaders += partition.is_leader
            followers = partition.followers
            if followers is None:
                continue
            all_followers, in_sync = followers.replicas.followers(), len(followers.replicas.isr)
            minimum = min(partition.log.config.min_insync_replicas, len(all_followers) + 1)
            under_replicated += in_sync <= len(all_followers)
            under_minimum += in_sync < minimum
            at_minimum += in_sync == minimum
            behind = min((max(follower.end_offset, 0) for follower in all_followers.values()), default=0)
            max_lag = max(max_lag, partition.log.log_end_offset - behind)
        for name, value in (
            ("barnabas_leaders", leaders),
            ("barnabas_under_replicated_partitions", under_replicated),
            ("barnabas_under_min_isr_partitions", under_minimum),
            ("barnabas_at_min_isr_partitions", at_minimum),
            ("barnabas_replica_max_lag", max_lag),
            ("barnabas_replica_fetchers", len(self._broker.fetchers)),
        ):
            yield gauge(name, NAMES[name], value=value)

    def _cleaner(self, counter: Any, gauge: Any) -> Iterator[Metric]:
        cleaner, counts = self._broker.cleaner, self._broker.cleaner.statistics
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
            ("barnabas_cleaner_since_last_run_seconds", (self._broker.clock.monotonic_ms() - counts.last_run_ms) / 1000),
        ):
            yield gauge(name, NAMES[name], value=value)

    def _cluster(self, gauge: Any) -> Iterator[Metric]:
        broker, image = self._broker, self._broker.metadata
        leaderless = lost = moving = 0
        for partition in broker.partitions:
            state = image.partition(partition.topic, partition.index)
            if state is not None:
                leaderless += state.leader < 0
                lost += state.is_lost
                moving += state.is_moving and state.leader == broker.config.broker_id
        for name, value in (
            ("barnabas_controller", broker.controller.is_controller),
            ("barnabas_brokers", len(image.brokers)),
            ("barnabas_stood_down", broker.member is not None and broker.member.is_down),
            ("barnabas_leaderless_partitions", leaderless),
            ("barnabas_lost_partitions", lost),
            ("barnabas_moving_partitions", moving),
        ):
            yield gauge(name, NAMES[name], value=value)

    def _partitions(self, family: Any) -> Iterator[Metric]:
        labels = ["topic", "partition"]
        size, start, end = (
            family(name, NAMES[name], labels=labels)
            for name in ("barnabas_log_size_bytes", "barnabas_log_start_offset", "barnabas_log_end_offset")
        )
        for partition in self._broker.partitions:
            key = [partition.topic, str(partition.index)]
            size.add_metric(key, partition.log.size_bytes)
            start.add_metric(key, partition.log.log_start_offset)
            end.add_metric(key, partition.log.log_end_offset)
        yield from (size, start, end)

    def _group_lag(self, family: Any) -> Metric:
        lag: Any = family("barnabas_group_lag", NAMES["barnabas_group_lag"], labels=["group", "topic", "partition"])
        for group, topic, index, offset in self._broker.groups.committed_offsets():
            partition = self._broker.partitions.get(topic, index)
            if partition is not None:
                lag.add_metric([group, topic, str(index)], max(partition.high_watermark - offset, 0))
        return cast("Metric", lag)


def render(broker: Broker) -> bytes:
    """The page that Prometheus scrapes, in its text format."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(BrokerCollector(broker))
    return generate_latest(registry)
