"""Many batches as tables: bytes of rows of numbers of 8 bytes in the machine's order, as `request_scan` makes and reads them, without an
object for each batch."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

ROW = Struct("=5q")
"""A batch: the correlation id of its request, or the number of that among those that arrived together (`multi_partition_scan`), where the
batch begins and ends in what was received, its records, its largest timestamp."""
REQUEST = Struct("=4q")  # correlation id, start after the size field, start of the next request, number of batches
NUMBER = Struct("=i")  # the number of a group; one for each batch, in the order of the requests
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
