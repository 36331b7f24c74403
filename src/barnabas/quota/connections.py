"""Limits on the rate of connections: by address, by listener and for the broker (KIP-612).

Connections of an address above its rate are refused; above the rate of a listener or the broker they wait and are accepted
later. No clock: `now_ms` is an argument.

Rules
  1. An unused rate accumulates over the length of all windows, as in Kafka, because many clients reconnect at the same time.
  2. A refused connection does not count for the listener or the broker.
  3. The listener for connections between brokers does not wait for the rate of the whole broker, unless it is the only listener.
  4. If there are too many addresses, those with an unused rate are dropped.
"""

from __future__ import annotations

from barnabas.quota.bucket import TokenBucket
from barnabas.quota.meters import Span


class ConnectionRate:
    """One rate: a connection is accepted at once if there is a token, otherwise after a wait."""

    def __init__(self, per_second: float, span: Span) -> None:
        self.per_second = per_second
        saved_s = span.windows * span.window_s
        self._bucket = TokenBucket(saved_s, saved_s)

    def has_room(self, now_ms: float) -> bool:
        """Whether a connection is accepted now."""
        return self._bucket.tokens(self.per_second, now_ms) >= 1

    def until_room_ms(self, now_ms: float) -> int:
        """The time in milliseconds until a connection is accepted."""
        missing = 1 - self._bucket.tokens(self.per_second, now_ms)
        return max(round(missing / self.per_second * 1000), 1)

    def is_whole(self, now_ms: float) -> bool:
        """Whether the accumulated rate is at its maximum."""
        return self._bucket.tokens(self.per_second, now_ms) >= self._bucket.most(self.per_second)

    def enter(self, now_ms: float) -> int:
        """Count a connection; returns its wait in milliseconds."""
        self._bucket.take(1, self.per_second, now_ms)
        return self._bucket.throttle_ms(self.per_second, now_ms)


class AddressRates:
    """The rates of addresses.

    Args:
        span: windows of clients' quotas.
        most: the maximum number of addresses.
    """

    def __init__(self, span: Span, most: int) -> None:
        self._span = span
        self._most = most
        self._rates: dict[str, ConnectionRate] = {}  # in the order in which the addresses were first seen

    def __len__(self) -> int:
        return len(self._rates)

    def wait_ms(self, address: str, per_second: float, now_ms: float) -> int:
        """0 if a connection from the address is accepted now (this counts it); otherwise the milliseconds until the next one
        is."""
        rate = self._rates.get(address)
        if rate is None:
            if len(self._rates) >= self._most:
                self._make_room(now_ms)
            rate = self._rates[address] = ConnectionRate(per_second, self._span)
        rate.per_second = per_second
        return rate.enter(now_ms) if rate.has_room(now_ms) else rate.until_room_ms(now_ms)

    def _make_room(self, now_ms: float) -> None:
        """Drop addresses with an unused rate, and one other address if there are still too many."""
        for address in [address for address, rate in self._rates.items() if rate.is_whole(now_ms)]:
            del self._rates[address]
        if len(self._rates) >= self._most:
            del self._rates[next(iter(self._rates))]
