"""Many batches as tables: rows of 8-byte numbers in the machine's byte order, as bytes. `request_scan` makes and reads them, without an
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
    """Good batches of requests that arrived together, as `request_scan.walk_requests` finds them.

    Fields:
        rows: a `ROW` for each batch.
        requests: the number of requests.
        records, size: the number of records, and the bytes of all batches.
        behind: the position of the next request in the received bytes.
        has_producer: the batches are of one idempotent producer and follow each other in its sequence.
    """

    rows: bytes
    requests: int
    records: int
    size: int
    behind: int
    has_producer: bool
