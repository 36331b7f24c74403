"""The quotas of one client, and how much of them it may still use; handlers of requests ask for it.

A client is told to wait by `throttle_time_ms`, and its connection is not read meanwhile (KIP-219), so that it has to.

Rules
  1. Bytes that were produced are paid when they have come; the answer says how long to wait until they are paid back.
  2. Bytes that are consumed are paid by `server/quotas/allowance.py`.
  3. Time for requests is paid by what the loop spent on them. The wait is a window at most, as Kafka's is; what is owed
     beyond is forgiven, for a slow request is as often the broker's doing as the client's.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.quota.meters import Meter


class Budget:
    """The quotas of one client id of one user; None for those that it does not have.

    Args:
        longest_ms: most that a request for time is told to wait.
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
        """A request of so many bytes has come and took so long; how long to wait for the next."""
        wait_ms = self.spent(spent_ns, now_ms)
        meter = self.producer
        if meter is None:
            return wait_ms
        meter.take(size, now_ms)
        bytes_ms = meter.throttle_ms(now_ms)
        meter.throttled_ms += bytes_ms
        return max(wait_ms, bytes_ms)

    def spent(self, spent_ns: int, now_ms: float) -> int:
        """A request took so long of the loop; how long to wait for the next."""
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
    """Bytes that a connection may take without paying again."""

    meters: tuple[Meter, ...]
    size: int

    def give_back(self, now_ms: float) -> None:
        take_all(self.meters, -self.size, now_ms)


def take_all(meters: tuple[Meter, ...], size: int, now_ms: float) -> None:
    """`size` of what each of the meters measures was used."""
    for meter in meters:
        meter.take(size, now_ms)
