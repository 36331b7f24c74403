"""Offers of micro-batches on their way from the thread of a query to the thread of a job."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import NamedTuple

import pyarrow as pa

from barnabas.engine.driver.position import StreamOffset


class Offer(NamedTuple):
    """The records between two offsets.

    Args:
        taken: is set when the job has them, will not take them, or has a newer offer.
    """

    start: StreamOffset
    end: StreamOffset
    records: pa.Table
    taken: Future[None]


class Mailbox:
    """The newest offer for a job. Invariant: every offer is settled, by the mailbox or by the one to whom `wait` gave it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._offer: Offer | None = None
        self._takes = False
        self.is_closed = False

    def put(self, offer: Offer) -> None:
        """Replace the offer that waits, if there is one."""
        with self._changed:
            missed, self._offer = (self._offer, offer) if self._takes else (offer, None)
            self._changed.notify()
        _settle(missed)

    def wait(self) -> Offer | None:
        """Take the next offer, and settle it later; None when the mailbox is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._offer is not None or self.is_closed)
            offer, self._offer = self._offer, None
            return offer

    def open(self) -> None:
        """Take offers, unless it was closed."""
        with self._changed:
            self._takes = not self.is_closed

    def shut(self) -> None:
        """Take no offers until `open`."""
        with self._changed:
            missed, self._offer, self._takes = self._offer, None, False
        _settle(missed)

    def close(self) -> None:
        """Take no more offers, and let `wait` return."""
        with self._changed:
            self.is_closed = True
            self._changed.notify()
        self.shut()


def _settle(offer: Offer | None) -> None:
    if offer is not None:
        offer.taken.set_result(None)
