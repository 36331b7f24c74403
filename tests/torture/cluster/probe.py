"""`python -m tests.torture.cluster.probe`: the times at which a partition could be written.

It is a producer without patience. To every partition of a topic it sends one record with acks=all again and again, in short intervals. It
uses a connection to the leader with the highest leader epoch in any broker's metadata. Without an answer in half a second it gives the
request up and tries again. So it measures the cluster, not the timeouts and backoffs of a client.

Prints a line for each acknowledged record: the time of the system's monotonic clock, the partition.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence

from barnabas.protocol.messages.metadata import MetadataResponse
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from barnabas.protocol.records.batch import Record, build_batch
from tests.torture.cluster.wire import ALL_TOPICS, METADATA, Address, Line, Seen, framed

PRODUCE = (0, 9)
INTERVAL_S = 0.05
PATIENCE_S = 0.5
METADATA_PATIENCE_S = 0.3
LOST = (OSError, EOFError)


class Prober:
    """See the module."""

    def __init__(self, addresses: Sequence[Address], topic: str, partitions: int) -> None:
        self._addresses, self._topic, self._partitions = addresses, topic, partitions
        self._leaders: dict[int, tuple[int, Address]] = {}  # by partition: leader epoch and address of the leader
        self._looking: asyncio.Task[None] | None = None

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for index in range(self._partitions):
                tasks.create_task(self._probe(index))

    async def _probe(self, index: int) -> None:
        records = build_batch([Record(0, int(time.time() * 1000), None, b"probe", ())])
        topics = [TopicProduceData(name=self._topic, partition_data=[PartitionProduceData(index=index, records=records)])]
        request = framed(PRODUCE, ProduceRequest(acks=-1, timeout_ms=int(PATIENCE_S * 1000), topic_data=topics))
        line: Line | None = None
        at: Address | None = None
        while True:
            began = time.monotonic()
            try:
                _, address = self._leaders[index]
                if line is None or address != at:
                    line, at = await Line.open(address, PATIENCE_S), address
                answer = await line.ask(PRODUCE, request, ProduceResponse, PATIENCE_S)
                error = answer.responses[0].partition_responses[0].error_code
            except (*LOST, KeyError):
                error = -1
            if error == 0:
                print(f"{time.monotonic():.4f} {index}", flush=True)
            else:
                if line is not None and error < 0:
                    line.close()
                    line = None
                await self._look()
            await asyncio.sleep(max(0.0, began + INTERVAL_S - time.monotonic()))

    async def _look(self) -> None:
        """Ask all brokers who leads; one look at a time serves all that wait for one."""
        if self._looking is None:
            self._looking = asyncio.ensure_future(self._look_at_all())
        looking = self._looking
        await looking
        if self._looking is looking:
            self._looking = None

    async def _look_at_all(self) -> None:
        found: dict[int, tuple[int, Address]] = {}
        for seen in await asyncio.gather(*map(_ask, self._addresses)):
            if seen is None:
                continue
            for each in seen.partitions:
                newest = found.get(each.index, (-1, None))[0]
                if each.topic == self._topic and each.leader in seen.brokers and each.leader_epoch > newest:
                    found[each.index] = each.leader_epoch, seen.brokers[each.leader]
        self._leaders.update(found)


async def _ask(address: Address) -> Seen | None:
    try:
        line = await Line.open(address, METADATA_PATIENCE_S)
    except OSError:
        return None
    try:
        return Seen.of(await line.ask(METADATA, framed(METADATA, ALL_TOPICS), MetadataResponse, METADATA_PATIENCE_S))
    except LOST:
        return None
    finally:
        line.close()


def main(arguments: Sequence[str]) -> None:
    bootstrap, topic, partitions = arguments
    addresses = [(host, int(port)) for host, _, port in (each.rpartition(":") for each in bootstrap.split(","))]
    asyncio.run(Prober(addresses, topic, int(partitions)).run())


if __name__ == "__main__":
    main(sys.argv[1:])
