"""Decides when a broker that came back gets its preferred leaderships again.

A broker that was found dead or restarted leads nothing when it is back. If it waited for the next round of balancing, the other
brokers would carry its load for minutes. If it got everything at once, leaderships would move back and forth with an unstable
broker.

Rules
  1. A broker is due if it has been ACTIVE for `STABLE_MS` without a break, and is in sync in every partition that it should
     lead.
  2. Each loss within `FORGIVEN_MS` of the previous one doubles the time that the broker must be ACTIVE, up to `LONGEST_MS`.
     Until then the broker is on probation: the rounds of balancing give it no leaderships either. So leaderships move back and
     forth only a few times, however often the broker fails.
  3. Every registration has a unique epoch, so a loss is detected even if the broker was back before the next check.
  4. Every broker keeps this record, and the controller uses it: the next controller then knows the same.
"""

from __future__ import annotations

from msgspec import Struct

from barnabas.cluster.metadata.image import MetadataImage

STABLE_MS = 10_000
LONGEST_MS = 15 * 60_000
FORGIVEN_MS = 30 * 60_000
MOVED_AT_ONCE = 100  # partitions per second


class _Seen(Struct):
    """The record of one broker."""

    epoch: int
    losses: int = 0  # losses in quick succession
    lost_at_ms: int = 0
    is_gone: bool = False
    active_since_ms: int | None = None
    is_settled: bool = False  # it had all its preferred leaderships at the last check

    @property
    def stable_for_ms(self) -> int:
        """How long the broker must be ACTIVE before it gets leaderships."""
        doublings = max(self.losses - 1, 0)
        return LONGEST_MS if doublings > LONGEST_MS // STABLE_MS else min(STABLE_MS * 2**doublings, LONGEST_MS)

    def is_trusted(self, now_ms: int) -> bool:
        return self.active_since_ms is not None and now_ms - self.active_since_ms >= self.stable_for_ms


class ReturnedBrokers:
    """The records that one broker keeps."""

    def __init__(self) -> None:
        self._seen: dict[int, _Seen] = {}

    def look(self, image: MetadataImage, now_ms: int) -> frozenset[int]:
        """Record the brokers that came and went since the last call; returns the brokers that are due by rule 1 if they are in
        sync."""
        for broker_id, seen in list(self._seen.items()):
            if broker_id not in image.brokers:
                if not seen.is_gone:
                    _lose(seen, now_ms)
                    seen.is_gone = True
                elif now_ms - seen.lost_at_ms > FORGIVEN_MS:
                    del self._seen[broker_id]
        for broker_id, registered in image.brokers.items():
            seen = self._seen.setdefault(broker_id, _Seen(registered.epoch))
            if seen.epoch != registered.epoch and not seen.is_gone:
                _lose(seen, now_ms)
            seen.epoch, seen.is_gone = registered.epoch, False
            if not registered.is_active:
                seen.active_since_ms = None
            elif seen.active_since_ms is None:
                seen.active_since_ms = now_ms
        return frozenset(each for each, seen in self._seen.items() if not seen.is_settled and seen.is_trusted(now_ms))

    def on_probation(self, now_ms: int) -> frozenset[int]:
        """The brokers that get no leaderships yet."""
        return frozenset(broker_id for broker_id, seen in self._seen.items() if not seen.is_trusted(now_ms))

    def settle(self, broker_id: int) -> None:
        """Record that a broker has all its preferred leaderships."""
        self._seen[broker_id].is_settled = True

    def put_off(self, broker_id: int, now_ms: int) -> None:
        """Restart the time that a broker must be ACTIVE, because it is not in sync everywhere."""
        self._seen[broker_id].active_since_ms = now_ms


def _lose(seen: _Seen, now_ms: int) -> None:
    is_soon = seen.losses and now_ms - seen.lost_at_ms <= FORGIVEN_MS
    seen.losses = seen.losses + 1 if is_soon else 1
    seen.lost_at_ms = now_ms
    seen.active_since_ms = None
    seen.is_settled = False
