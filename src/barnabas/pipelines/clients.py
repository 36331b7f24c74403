"""Clients that a worker process keeps from task to task, since a small micro-batch is shorter than what connecting costs.

Spark's daemon runs the collector in a worker after everything it did. When the first client comes back, all is loaded that will be needed
here, and is kept out of the collector's sight: 30,000 objects with pandas, of which nothing is ever free, at 10 ms of CPU each time.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig

SPARKS_DAEMON = "pyspark.daemon"  # ours has frozen what it loaded before any worker was there

_idle: dict[ClientConfig, list[BlockingClient]] = {}


@contextmanager
def borrowed_client(config: ClientConfig) -> Iterator[BlockingClient]:
    """A client for the length of the block; one that failed in it is closed and not used again."""
    idle = _idle.setdefault(config, [])
    client = idle.pop() if idle else BlockingClient(config)
    try:
        yield client
    except BaseException:
        client.close()
        raise
    idle.append(client)
    _spare_the_collector()


@cache
def _spare_the_collector() -> None:
    """Once in a process."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    if main is not None and main.name == SPARKS_DAEMON:
        gc.freeze()
