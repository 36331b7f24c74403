"""Many batches as tables: bytes of rows of numbers of 8 bytes in the machine's order, as `walk` makes and reads them, without an object for
each batch."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

ROW = Struct(
    "=5q"
)  # a request: correlation id, where its batch begins and ends in what was received, its records, its largest timestamp
DESCRIBED = Struct("=3q")  # a stored batch: last offset, size, largest timestamp


class Run(NamedTuple):
    """Good batches of requests that arrived together, as `walk.walk_requests` finds them.

    Fields:
        rows: a `ROW` for each.
        requests: how many.
        records, size: how many records, and the bytes of all batches.
        behind: where the next request begins in what was received.
        has_producer: they are of one idempotent producer and follow each other in its sequence.
    """

    rows: bytes
    requests: int
    records: int
    size: int
    behind: int
    has_producer: bool
