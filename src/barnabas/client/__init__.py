"""A small wire client: reads and writes raw record batches, and sends the requests that find, create and describe topics.

Reading order: `wire` (frames and versions of one connection), `plans` (the operations of a client as generators without I/O),
`cluster` (metadata of brokers and topics), `operations` (the plans themselves), and the two shells that run plans: `blocking`
for Spark tasks and scripts, `asynchronous` for code with an event loop.
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
