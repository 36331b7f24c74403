"""Records for the source, and the moment when the target has them."""

from __future__ import annotations

import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from barnabas.client.blocking import BlockingClient
from barnabas.client.errors import ClientError
from barnabas.client.results import LATEST
from barnabas.protocol.records.batch import split_batches
from bench.load import Pattern, produce
from bench.peers.peer import PeerUnavailable
from bench.servers import Barnabas
from bench.wire import record_batch

VALUE_BYTES = 200
RECORDS_PER_BATCH = 80  # with 200 B these are the 16 kB that a producer's batch has by default
POLL_S = 0.005
WITHIN_S = 600.0


def fill(server: Barnabas, topic: str, partitions: int, records: int, value_bytes: int = VALUE_BYTES) -> int:
    """Write about this many records; returns how many there are."""
    batch = record_batch(RECORDS_PER_BATCH, value_bytes)
    connections = min(partitions, 8)
    pattern = Pattern(connections, batch, RECORDS_PER_BATCH, 1, 64, 16)
    return produce(server.address, topic, connections, pattern, WITHIN_S, records / RECORDS_PER_BATCH * len(batch)).records


def wait(holds: Callable[[], bool], within_s: float = WITHIN_S) -> float:
    """Wait until a condition holds; returns the moment. Raises PeerUnavailable."""
    deadline_s = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline_s:
            raise PeerUnavailable("it did not come about in time")
        time.sleep(POLL_S)
    return time.perf_counter()


class Ends:
    """The number of records in a topic, on one connection."""

    def __init__(self, server: Barnabas, topic: str, partitions: int) -> None:
        self._client = BlockingClient.to(server.bootstrap)
        self._wanted = {(topic, index): LATEST for index in range(partitions)}
        self._topic, self._partitions = topic, partitions

    def __call__(self) -> int:
        """0 as long as the topic has not all of its partitions."""
        try:
            found = self._client.topics_by_name([self._topic]).get(self._topic)
            if found is None or len(found.partitions) < self._partitions:
                return 0
            return sum(each.offset for each in self._client.list_offsets(self._wanted).values())
        except ClientError:  # its partitions have no leader yet
            return 0

    def close(self) -> None:
        self._client.close()


def lags_ms(source: Barnabas, target: Barnabas, topic: str, partitions: int, rate: float, seconds: float) -> list[float]:
    """Write at a fixed rate to the source; returns for each batch the milliseconds from the moment when it was due to be
    written, until a consumer of the target had it.

    Raises:
        PeerUnavailable: the target does not get everything.
    """
    batch = record_batch(RECORDS_PER_BATCH, VALUE_BYTES)
    sent: list[deque[tuple[int, float]]] = [deque() for _ in range(partitions)]
    found: list[float] = []
    offsets = [0] * partitions
    ended = threading.Event()

    def read(index: int) -> None:
        with BlockingClient.to(target.bootstrap) as client:
            position = client.list_offsets({(topic, index): LATEST})[topic, index].offset
            offsets[index] = position
            started.wait(WITHIN_S)
            while not (ended.is_set() and not sent[index]):
                fetched = client.fetch(topic, index, position)
                now = time.perf_counter()
                position = max((header.last_offset + 1 for _, header in split_batches(fetched.records)), default=position)
                while sent[index] and sent[index][0][0] <= position:
                    found.append((now - sent[index].popleft()[1]) * 1000)

    started = threading.Barrier(partitions + 1)
    readers = [threading.Thread(target=read, args=(index,), daemon=True) for index in range(partitions)]
    for reader in readers:
        reader.start()
    with BlockingClient.to(source.bootstrap) as client:
        started.wait(WITHIN_S)
        began, pause_s = time.perf_counter(), RECORDS_PER_BATCH / rate
        for number in range(int(seconds * rate / RECORDS_PER_BATCH)):
            due = began + number * pause_s
            if (ahead := due - time.perf_counter()) > 0:
                time.sleep(ahead)
            index = number % partitions
            offsets[index] += RECORDS_PER_BATCH
            sent[index].append((offsets[index], due))
            client.produce(topic, index, batch, acks=1)
    ended.set()
    for reader in readers:
        reader.join(30)
    if any(sent):
        raise PeerUnavailable("the target does not get everything that is written")
    return found


def percentile(numbers: Sequence[float], percent: int) -> float:
    return statistics.quantiles(numbers, n=100, method="inclusive")[percent - 1]
