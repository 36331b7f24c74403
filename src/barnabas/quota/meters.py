"""The use of quotas: one meter for each quota and each set of clients that share it.

Rules
  1. After a change of its bound, a meter keeps its debt in bytes, not in time.
  2. Meters without use for an hour are dropped, as in Kafka; if there would be too many, meters without a debt are dropped too.
  3. If there are still too many, further clients with the same bound share one meter: so a client cannot bypass a quota by
     inventing names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from barnabas import limits
from barnabas.quota.bucket import TokenBucket
from barnabas.quota.entities import CONTROLLER_MUTATION_RATE
from barnabas.quota.windows import WindowedRate

FIRST_PART = 0.25  # share of the largest budget that a new client starts with
CROWD = "<others>"  # the key of the shared meter for clients beyond MAX_QUOTA_METERS


class Span(NamedTuple):
    """Windows over which a quota is measured: `*quota.window.num`, `*quota.window.size.seconds`."""

    windows: int
    window_s: int


class MeterKey(NamedTuple):
    """A kind of quota and the clients that share it; for a group the client id is the group."""

    quota: str
    user: str
    client_id: str


class Meter:
    """The use of one quota."""

    __slots__ = ("_bucket", "_rate", "_told_until_ms", "bound", "key", "throttled_ms", "used_ms")

    def __init__(self, key: MeterKey, bound: float, span: Span) -> None:
        self.key = key
        self.bound = bound
        self.used_ms = 0.0  # time of the last use
        self.throttled_ms = 0  # total throttle time sent to the client
        self._told_until_ms = 0.0
        self._rate = WindowedRate(span.windows, span.window_s * 1000)
        saved_s = span.windows * span.window_s if key.quota == CONTROLLER_MUTATION_RATE else span.window_s
        first_s = saved_s if key.quota == CONTROLLER_MUTATION_RATE else saved_s * FIRST_PART
        self._bucket = TokenBucket(saved_s, first_s)

    def take(self, value: float, now_ms: float) -> None:
        """Record a use; a negative value takes it back."""
        self.used_ms = now_ms
        self._rate.record(value, now_ms)
        self._bucket.take(value, self.bound, now_ms)

    def forgive(self, wait_ms: float, now_ms: float) -> None:
        """Reduce the throttle time by `wait_ms`."""
        self._bucket.take(-wait_ms * self.bound / 1000, self.bound, now_ms)

    def throttle_ms(self, now_ms: float) -> int:
        """The throttle time of its users; 0 without a debt."""
        return self._bucket.throttle_ms(self.bound, now_ms)

    def change(self, bound: float) -> None:
        """Change the bound; earlier throttle times were computed from the old bound."""
        if bound != self.bound:
            self.bound, self._told_until_ms = bound, 0.0

    def tell(self, wait_ms: float, now_ms: float) -> None:
        """Record a throttle time that the controller gave to a client; the controller has the debt."""
        self._told_until_ms = max(self._told_until_ms, now_ms + wait_ms)

    def wait_ms(self, now_ms: float) -> int:
        """The wait of a connection's first request: for the debt here, and for an earlier throttle time of its client."""
        return max(self.throttle_ms(now_ms), round(self._told_until_ms - now_ms))

    def per_second(self, now_ms: float) -> float:
        return self._rate.per_second(now_ms)


class Meters:
    """All meters of a broker.

    Args:
        span: windows of clients' quotas.
        mutations: the windows of the quota of metadata changes.
        most: the maximum number of meters, without the shared ones.
    """

    def __init__(self, span: Span, mutations: Span, most: int) -> None:
        self._span = span
        self._mutations = mutations
        self._most = most
        self._meters: dict[MeterKey, Meter] = {}

    def __len__(self) -> int:
        return len(self._meters)

    def __iter__(self) -> Iterator[Meter]:
        return iter(self._meters.values())

    def get(self, key: MeterKey, bound: float, now_ms: float) -> Meter:
        """The meter of `key`, set to this bound."""
        found = self._meters.get(key)
        if found is None and len(self._meters) >= self._most and not self._make_room(now_ms):
            key = MeterKey(key.quota, CROWD, f"{CROWD} {bound}")
            found = self._meters.get(key)
        if found is None:
            span = self._mutations if key.quota == CONTROLLER_MUTATION_RATE else self._span
            found = self._meters[key] = Meter(key, bound, span)
        found.change(bound)
        found.used_ms = now_ms
        return found

    def expire(self, now_ms: float) -> bool:
        """Drop meters without use for an hour; returns whether there were any."""
        return self._forget([m for m in self if now_ms - m.used_ms > limits.QUOTA_METER_IDLE_MS])

    def _make_room(self, now_ms: float) -> bool:
        """Drop meters without a debt."""
        span_ms = self._span.windows * self._span.window_s * 1000
        return self._forget([m for m in self if now_ms - m.used_ms > span_ms and not m.throttle_ms(now_ms)])

    def _forget(self, meters: list[Meter]) -> bool:
        for meter in meters:
            del self._meters[meter.key]
        return bool(meters)
