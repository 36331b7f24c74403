"""Clients that a worker process keeps from task to task, since a small micro-batch is shorter than what connecting costs.

The driver's processes come from Spark's own daemon, whatever `spark.python.daemon.module` says. When the first client comes back in
one, they get what our daemon gives its workers: what is loaded is kept out of the sight of the collector, which Spark runs after
all that a worker did (30,000 objects with pandas, of which nothing is ever free, at 10 ms of CPU each time), and from the next call
on they hand over to the JVM without delay.
"""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.pipelines.quick_ack import acknowledging

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
    _settle_in()


@atexit.register
def close_idle() -> None:
    """Close what is kept, where the process ends in order; workers of Spark are ended without."""
    for clients in _idle.values():
        while clients:
            clients.pop().close()


@cache
def _settle_in() -> None:
    """Once in a process. Spark's daemon looks its `worker` up before each call."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if main is not None and spec is not None and spec.name == SPARKS_DAEMON:
        main.worker = acknowledging(main.worker)  # type: ignore[attr-defined]  # it is `pyspark.daemon`
        gc.freeze()
