"""The quotas of one client; handlers of requests record its use and get its throttle times.

`throttle_time_ms` tells a client to wait. During this time the broker does not read its connection (KIP-219), so the client
must wait.

Rules
  1. Produced bytes count when they have arrived; the response has the time until this debt is paid back.
  2. `server/quotas/allowance.py` counts consumed bytes.
  3. Time for requests is the time that the event loop spent on them. The wait is at most one window, as in Kafka. The debt
     above that is forgiven, because the broker causes a slow request as often as the client does.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.quota.meters import Meter


class Budget:
    """The quotas of one client id of one user; None for each quota that it does not have.

    Args:
        longest_ms: the longest throttle time for the time of requests, in milliseconds.
    """

    __slots__ = ("_longest_ms", "client_id", "consumer", "mutations", "producer", "request")

    def __init__(
        self,
        client_id: str,
        *,
        producer: Meter | None,
        consumer: Meter | None,
        request: Meter | None,
        mutations: Meter | None,
        longest_ms: int,
    ) -> None:
        self.client_id = client_id
        self.producer = producer
        self.consumer = consumer
        self.request = request
        self.mutations = mutations
        self._longest_ms = longest_ms

    @property
    def is_free_to_produce(self) -> bool:
        return self.producer is None and self.request is None

    def produced(self, size: int, spent_ns: int, now_ms: float) -> int:
        """Record a produce request of `size` bytes that took `spent_ns`; returns the throttle time in milliseconds."""
        wait_ms = self.spent(spent_ns, now_ms)
        meter = self.producer
        if meter is None:
            return wait_ms
        meter.take(size, now_ms)
        bytes_ms = meter.throttle_ms(now_ms)
        meter.throttled_ms += bytes_ms
        return max(wait_ms, bytes_ms)

    def spent(self, spent_ns: int, now_ms: float) -> int:
        """Record a request that took `spent_ns` of the event loop; returns the throttle time in milliseconds."""
        meter = self.request
        if meter is None:
            return 0
        meter.take(spent_ns / 1e7, now_ms)  # percent of one second
        wait_ms = meter.throttle_ms(now_ms)
        if wait_ms > self._longest_ms:
            meter.forgive(wait_ms - self._longest_ms, now_ms)
            wait_ms = self._longest_ms
        meter.throttled_ms += wait_ms
        return wait_ms


class Paid(NamedTuple):
    """Bytes that a connection has paid for and may still use."""

    meters: tuple[Meter, ...]
    size: int

    def give_back(self, now_ms: float) -> None:
        take_all(self.meters, -self.size, now_ms)


def take_all(meters: tuple[Meter, ...], size: int, now_ms: float) -> None:
    """Record a use of `size` in every meter."""
    for meter in meters:
        meter.take(size, now_ms)
