"""How fast connections may come: from an address, by a listener, in all (KIP-612).

An address over its rate is refused; a listener or a broker over theirs lets connections wait, so that whoever comes does come in.
No clock: `now_ms` is an argument.

Rules
  1. What is not used is saved up for as long as all windows take, as Kafka's rates allow it: clients reconnect all at once.
  2. A refused connection is not counted for the listener nor the broker.
  3. The listener that brokers use among themselves does not wait for the rate of the whole broker, if it is not the only one.
  4. An address is forgotten once nothing of its rate is used up, where there are many.
"""

from __future__ import annotations

from barnabas.quota.bucket import TokenBucket
from barnabas.quota.meters import Span


class ConnectionRate:
    """One rate: connections come in while they can be paid, or each after the time that its place asks for."""

    def __init__(self, per_second: float, span: Span) -> None:
        self.per_second = per_second
        saved_s = span.windows * span.window_s
        self._bucket = TokenBucket(saved_s, saved_s)

    def has_room(self, now_ms: float) -> bool:
        """Whether one may come in now."""
        return self._bucket.tokens(self.per_second, now_ms) >= 1

    def until_room_ms(self, now_ms: float) -> int:
        """How long until one may come in."""
        missing = 1 - self._bucket.tokens(self.per_second, now_ms)
        return max(round(missing / self.per_second * 1000), 1)

    def is_whole(self, now_ms: float) -> bool:
        """Whether as much is saved up as there can be."""
        return self._bucket.tokens(self.per_second, now_ms) >= self._bucket.most(self.per_second)

    def enter(self, now_ms: float) -> int:
        """One comes in; for how long it has to wait."""
        self._bucket.take(1, self.per_second, now_ms)
        return self._bucket.throttle_ms(self.per_second, now_ms)


class AddressRates:
    """The rates of addresses.

    Args:
        span: windows of clients' quotas.
        most: addresses at once.
    """

    def __init__(self, span: Span, most: int) -> None:
        self._span = span
        self._most = most
        self._rates: dict[str, ConnectionRate] = {}  # those seen first first

    def __len__(self) -> int:
        return len(self._rates)

    def wait_ms(self, address: str, per_second: float, now_ms: float) -> int:
        """0 where a connection may come from there now, and is counted; else how long until the next may."""
        rate = self._rates.get(address)
        if rate is None:
            if len(self._rates) >= self._most:
                self._make_room(now_ms)
            rate = self._rates[address] = ConnectionRate(per_second, self._span)
        rate.per_second = per_second
        return rate.enter(now_ms) if rate.has_room(now_ms) else rate.until_room_ms(now_ms)

    def _make_room(self, now_ms: float) -> None:
        """Forget those of which nothing is known that matters, and one of the others where there are too many all the same."""
        for address in [address for address, rate in self._rates.items() if rate.is_whole(now_ms)]:
            del self._rates[address]
        if len(self._rates) >= self._most:
            del self._rates[next(iter(self._rates))]
