"""The counters of the broker: plain integers that the loop increments. `scraping.py` gives them names for each scrape."""

from __future__ import annotations

LATENCY_BUCKETS = 28  # powers of two of microseconds, from under 1 us to over a minute
LOOP_LAG_INTERVAL_MS = 100
IDLE_LOOP_LAG_INTERVAL_MS = 1_000  # while the loop is almost idle


class Histogram:
    """A histogram of microseconds with powers of two as bounds."""

    __slots__ = ("buckets", "sum_ns")

    def __init__(self) -> None:
        self.buckets = [0] * LATENCY_BUCKETS
        self.sum_ns = 0

    def observe(self, nanoseconds: int, count: int = 1) -> None:
        """Count `count` values whose sum is `nanoseconds`."""
        self.sum_ns += nanoseconds
        power = (nanoseconds // (1000 * count)).bit_length()
        self.buckets[power if power < LATENCY_BUCKETS else LATENCY_BUCKETS - 1] += count

    @property
    def count(self) -> int:
        return sum(self.buckets)

    def cumulative(self) -> list[tuple[str, float]]:
        """Pairs of an upper bound in seconds and a count, as in Prometheus."""
        total, result = 0, []
        for power, count in enumerate(self.buckets[:-1]):
            total += count
            result.append((repr(2**power / 1e6), float(total)))
        return [*result, ("+Inf", float(self.count))]


class Metrics:
    """The counters of one broker. Only the loop writes them."""

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
        """Count `count` handled requests, which took `nanoseconds` together."""
        found = self.requests.get(api_key)
        if found is None:
            found = self.requests[api_key] = Histogram()
        found.observe(nanoseconds, count)

    @property
    def worked_ns(self) -> int:
        """The total time of all requests so far, in nanoseconds."""
        return sum(histogram.sum_ns for histogram in self.requests.values())

    def observe_flush(self, partitions: int, seconds: float) -> None:
        self.flushed_partitions += partitions
        self.flush_rounds.observe(int(seconds * 1e9))

    def observe_loop_lag(self, lag_ms: float) -> None:
        self.loop_lag_ms = lag_ms
        self.loop_lag_max_ms = max(self.loop_lag_max_ms, lag_ms)
