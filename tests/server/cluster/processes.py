"""Three broker processes on a ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from uuid import uuid4

from barnabas.testing import Broker
from barnabas.testing.zookeeper import ZooKeeper


@contextmanager
def three_brokers(settings: Mapping[str, str | int | bool], shared: ZooKeeper | None = None) -> Iterator[list[Broker]]:
    """Brokers 1, 2 and 3, started at the same time; below a root of their own on the shared server, or with a server of their own."""
    server = nullcontext(shared) if shared else ZooKeeper(longest_session_ms=60_000)
    with server as zookeeper, ThreadPoolExecutor(3) as threads:
        common = {"zookeeper.connect": f"{zookeeper.hosts}/{uuid4().hex}", **settings}
        processes = [Broker({**common, "node.id": number}) for number in (1, 2, 3)]
        try:
            list(threads.map(Broker.start, processes))
            yield processes
        finally:
            list(threads.map(Broker.close, processes))
