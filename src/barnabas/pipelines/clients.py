"""Clients that a worker process reuses for later tasks, since connecting takes longer than a small micro-batch.

The driver's processes always come from Spark's own daemon, independent of `spark.python.daemon.module`. When such a process
returns its first client, it gets the two optimisations of our daemon. First, loaded objects are frozen, so the garbage
collector skips them. Spark runs the collector after each call of a worker, and the 30,000 permanent objects of pandas cost 10
ms of CPU each time. Second, from the next call on, data goes to the JVM without delay (`quick_ack`).
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

SPARKS_DAEMON = "pyspark.daemon"  # Spark's own daemon; the daemon of barnabas freezes its objects before it forks workers

_idle: dict[ClientConfig, list[BlockingClient]] = {}


@contextmanager
def borrowed_client(config: ClientConfig) -> Iterator[BlockingClient]:
    """A client for the block; if the block fails, the client is closed and not reused."""
    idle = _idle.setdefault(config, [])
    try:
        client = idle.pop()
    except IndexError:  # asked first, another thread could take the last one
        client = BlockingClient(config)
    try:
        yield client
    except BaseException:
        client.close()
        raise
    idle.append(client)
    _settle_in()


@atexit.register
def close_idle() -> None:
    """Close the kept clients at a normal exit of the process; when Spark kills a worker, this does not run."""
    for clients in _idle.values():
        while clients:
            clients.pop().close()


@cache
def _settle_in() -> None:
    """Apply both optimisations, once in a process. The second one replaces `worker`, which Spark's daemon looks up before each
    call."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if main is not None and spec is not None and spec.name == SPARKS_DAEMON:
        main.worker = acknowledging(main.worker)  # type: ignore[attr-defined]  # the module is `pyspark.daemon`
        gc.freeze()
