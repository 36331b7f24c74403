"""Which brokers that came back get their preferred leaderships back, and when.

A broker that was found dead, or that was restarted, leads nothing when it is back. To let it wait for the next round of balancing leaves
its share to the others for minutes; to give it everything at once moves leaderships back and forth with a broker that comes and goes.

Rules
  1. A broker is due when it has been ACTIVE for `STABLE_MS` without a break, and is in sync in every partition that it is to lead.
  2. With each loss within `FORGIVEN_MS` of the one before it has to be ACTIVE twice as long, up to `LONGEST_MS`. Until then it is on
     probation: nothing is given back to it, by the rounds of balancing neither. So leaderships go back and forth a few times at most,
     however often it goes.
  3. Every registration has an epoch of its own, so that a loss is seen though the broker was back before anybody looked.
  4. Every broker keeps this book, and who is controller acts by it: a controller that goes is followed by one that knows as much.
"""

from __future__ import annotations

from msgspec import Struct

from barnabas.cluster.metadata.image import MetadataImage

STABLE_MS = 10_000
LONGEST_MS = 15 * 60_000
FORGIVEN_MS = 30 * 60_000
MOVED_AT_ONCE = 100  # partitions, each second


class _Seen(Struct):
    """What is known of one broker."""

    epoch: int
    losses: int = 0  # one soon after the other
    lost_at_ms: int = 0
    is_gone: bool = False
    active_since_ms: int | None = None
    is_settled: bool = False  # it has what it is to lead, or did when it was looked at

    @property
    def stable_for_ms(self) -> int:
        """How long it has to be ACTIVE before it is trusted."""
        doublings = max(self.losses - 1, 0)
        return LONGEST_MS if doublings > LONGEST_MS // STABLE_MS else min(STABLE_MS * 2**doublings, LONGEST_MS)

    def is_trusted(self, now_ms: int) -> bool:
        return self.active_since_ms is not None and now_ms - self.active_since_ms >= self.stable_for_ms


class ReturnedBrokers:
    """The book of one broker."""

    def __init__(self) -> None:
        self._seen: dict[int, _Seen] = {}

    def look(self, image: MetadataImage, now_ms: int) -> frozenset[int]:
        """Take note of who came and went since the last time; the brokers that are due by rule 1, if they are in sync."""
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
        """The brokers that nothing is given back to yet."""
        return frozenset(broker_id for broker_id, seen in self._seen.items() if not seen.is_trusted(now_ms))

    def settle(self, broker_id: int) -> None:
        """It has all that it is to lead."""
        self._seen[broker_id].is_settled = True

    def put_off(self, broker_id: int, now_ms: int) -> None:
        """It is not in sync everywhere: the time that it has to be ACTIVE begins anew."""
        self._seen[broker_id].active_since_ms = now_ms


def _lose(seen: _Seen, now_ms: int) -> None:
    is_soon = seen.losses and now_ms - seen.lost_at_ms <= FORGIVEN_MS
    seen.losses = seen.losses + 1 if is_soon else 1
    seen.lost_at_ms = now_ms
    seen.active_since_ms = None
    seen.is_settled = False
