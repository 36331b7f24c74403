"""Three broker processes with a ZooKeeper of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from barnabas.testing import Broker
from barnabas.testing.zookeeper import ZooKeeper


@contextmanager
def three_brokers(settings: Mapping[str, str | int | bool]) -> Iterator[list[Broker]]:
    """Brokers 1, 2 and 3, started at the same time."""
    with ZooKeeper(longest_session_ms=60_000) as zookeeper, ThreadPoolExecutor(3) as threads:
        common = {"zookeeper.connect": f"{zookeeper.hosts}/test", **settings}
        processes = [Broker({**common, "node.id": number}) for number in (1, 2, 3)]
        try:
            list(threads.map(Broker.start, processes))
            yield processes
        finally:
            list(threads.map(Broker.close, processes))
