"""A small wire client: raw record batches in and out, and the requests that find, make and describe topics.

Reading order: `wire` (frames and versions of one connection), `plans` (what a client does, as generators without I/O), `cluster`
(what is known of brokers and topics), `operations` (the plans themselves), and the two shells that run plans:
`blocking` for Spark tasks and scripts, `asynchronous` for whoever has an event loop.
"""

from __future__ import annotations

from barnabas.client.config import ClientConfig
from barnabas.client.errors import ConnectionFailed, PartitionError, TimedOut
from barnabas.client.results import EARLIEST, LATEST, MAX_TIMESTAMP, Fetched, ListedOffset

__all__ = [
    "ClientConfig",
    "ConnectionFailed",
    "PartitionError",
    "TimedOut",
    "EARLIEST",
    "LATEST",
    "MAX_TIMESTAMP",
    "Fetched",
    "ListedOffset",
]
