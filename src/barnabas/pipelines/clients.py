"""Clients that a worker process keeps from task to task, since a small micro-batch is shorter than what connecting costs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig

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
