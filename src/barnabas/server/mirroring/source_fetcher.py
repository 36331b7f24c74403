"""Fetches copies from one broker of a source cluster, on a connection of its own, and appends what comes.

Each link has a few of these for each broker of the source. They share the partitions, so a request is on its way while another's answer
is appended, and a large distance costs less throughput.

Rules
  1. It asks as a consumer does that reads uncommitted records: any cluster that speaks Kafka's protocol can be a source.
  2. One request is in flight, with at most `FETCH_BYTES` in its answer. This bounds the memory.
  3. A partition with an error rests; the others continue.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from barnabas.client.errors import ClientError
from barnabas.client.operations import LAST_VERSION_WITH_NAMES
from barnabas.client.plans import Call
from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.mirror.link import FETCH_BYTES
from barnabas.mirror.partition_copy import NO_EPOCH, PartitionCopy, SourceAnswer, Step
from barnabas.mirror.rate_limit import RateLimit
from barnabas.protocol.base_message import ZERO_UUID
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from barnabas.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

if TYPE_CHECKING:
    from uuid import UUID

    from barnabas.client.asynchronous import AsyncClient
    from barnabas.server.logs.log_start_offsets import LogStartOffsets
    from barnabas.server.services import Services

logger = logging.getLogger(__name__)
MAX_WAIT_MS = 500  # the source holds a fetch without records for so long
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 1.0
IDLE_S = 0.5  # until the next look for partitions to fetch, if nothing wakes the fetcher
REST_S = 0.1  # of a partition after an error
LATEST, EARLIEST = -1, -2
NO_RECORDS = memoryview(b"")


class SourceLink(Protocol):
    """The parts of a link that a fetcher uses."""

    limit: RateLimit

    def copies_at(self, lane: int, leader: int) -> list[tuple[PartitionCopy, UUID, int]]:
        """The copies to fetch now: each with the topic's id and the leader epoch in the source."""
        ...

    def reached(self) -> None:
        """The source has answered."""
        ...

    def failed(self, error: ClientError) -> None:
        """The source cannot be reached."""
        ...

    def end_transactions(self) -> None:
        """End the open transactions of copies that are promoted and have everything; raises StorageError."""
        ...

    def look_again(self) -> None:
        """Read the metadata of the source soon."""
        ...


Asked = dict[tuple[str, int], tuple[PartitionCopy, int, "UUID", int]]  # copy, position, id and epoch by name and partition


def _rotated(asked: Asked, turns: int) -> Asked:
    """The same, beginning with another partition: a source fills its answer from the first one on."""
    items = list(asked.items())
    first = turns % len(items)
    return dict(items[first:] + items[:first])


class SourceFetcher:
    """Fetches from one broker until `close`.

    Args:
        log_start_offsets: writes the checkpoints of a log that is cut.
        lane: the number of this fetcher among those of the same broker.
    """

    def __init__(
        self,
        services: Services,
        log_start_offsets: LogStartOffsets,
        link: SourceLink,
        client: AsyncClient,
        lane: int,
        leader: int,
    ) -> None:
        self._services = services
        self._log_start_offsets = log_start_offsets
        self._link = link
        self._client = client
        self._lane, self._leader = lane, leader
        self._awake = asyncio.Event()
        self._resting: dict[PartitionCopy, float] = {}
        self._turns = 0
        self._task = services.loop.create_task(self._run(), name=f"mirror-fetcher-{lane}-of-{leader}")

    def wake(self) -> None:
        """Look for partitions to fetch."""
        self._awake.set()

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                await self._turn()
                pause_s = FIRST_PAUSE_S
                continue
            except ClientError as error:
                self._link.failed(error)
            except Exception:  # a fault of the broker must not end mirroring
                logger.exception("event=mirror-fetch-failed leader=%d", self._leader)
            self._link.look_again()
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def _turn(self) -> None:
        now_s = self._services.loop.time()
        self._resting = {copy: until_s for copy, until_s in self._resting.items() if until_s > now_s}
        asked = {
            (copy.source_topic, copy.partition.index): (copy, copy.position, topic_id, epoch)
            for copy, topic_id, epoch in self._link.copies_at(self._lane, self._leader)
            if copy not in self._resting and copy.wants_records
        }
        if not asked:
            self._awake.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._awake.wait(), REST_S if self._resting else IDLE_S)
            return
        if (wait_s := self._link.limit.wait_s(now_s)) > 0:
            await asyncio.sleep(wait_s)
            return
        answer: FetchResponse = await self._client.request(self._call(_rotated(asked, self._turns)))
        self._link.reached()
        size = sum(len(data.records or b"") for topic in answer.responses for data in topic.partitions)
        self._link.limit.took(size, self._services.loop.time())
        self._turns += size > 0  # there may be more, and the next answer begins with another partition
        if answer.error_code:
            logger.info("event=mirror-fetch-refused leader=%d error_code=%s", self._leader, ErrorCode(answer.error_code).name)
            self._link.look_again()
            await asyncio.sleep(REST_S)
            return
        names = {topic_id: name for (name, _), (_, _, topic_id, _) in asked.items()}
        for topic in answer.responses:
            name = topic.topic or names.get(topic.topic_id, "")
            for data in topic.partitions:
                found = asked.get((name, data.partition_index))
                if found is not None:
                    await self._take(found[0], found[1], data)

    def _call(self, asked: Asked) -> Call:
        topics: dict[str, FetchTopic] = {}
        has_ids = True
        fetch_bytes = self._link.limit.most(FETCH_BYTES)
        for (name, index), (copy, position, topic_id, epoch) in asked.items():
            has_ids = has_ids and topic_id != ZERO_UUID
            item = FetchPartition(
                partition=index,
                current_leader_epoch=epoch,
                fetch_offset=position,
                last_fetched_epoch=copy.source_epoch if copy.source_epoch != NO_EPOCH else -1,
                partition_max_bytes=copy.fetch_bytes or fetch_bytes,
            )
            topic = topics.setdefault(name, FetchTopic(topic=name, topic_id=topic_id, partitions=[]))
            topic.partitions = [*topic.partitions, item]
        request = FetchRequest(
            max_wait_ms=MAX_WAIT_MS, min_bytes=1, max_bytes=fetch_bytes, isolation_level=0, topics=list(topics.values())
        )
        return Call(request, self._leader, None if has_ids else LAST_VERSION_WITH_NAMES)

    async def _take(self, copy: PartitionCopy, position: int, data: PartitionData) -> None:
        services = self._services
        records = NO_RECORDS if data.records is None else memoryview(data.records)
        diverging = data.diverging_epoch
        answer = SourceAnswer(
            ErrorCode(data.error_code),
            data.high_watermark,
            data.log_start_offset,
            records,
            diverging is not None and diverging.end_offset >= 0,
        )
        was_stopped = copy.is_stopped
        try:
            step = copy.receive(position, answer, services.clock.now_ms())
            if step is Step.TAKE:
                for _ in copy.take(records, services.clock.now_ms()):
                    await asyncio.sleep(0)
            elif step is Step.ASK_RANGE:
                step = await self._ask_range(copy)
            if step is Step.CUT:
                step = await self._cut(copy)
            if copy.is_at_source_end:
                self._link.end_transactions()
        except KafkaError as error:
            copy.stop(f"{error.code.name}: {error.message or 'the records of the source cannot be taken'}")
            step = Step.STOP
        except StorageError as error:
            services.faults.report(error)
            copy.reason = "the disk does not take the records"
            step = Step.WAIT
        if step in {Step.FIND_LEADER, Step.WAIT}:
            self._resting[copy] = services.loop.time() + REST_S
        if step is Step.FIND_LEADER:
            self._link.look_again()
        if step is Step.STOP and (not was_stopped or copy.has_compared):
            partition = copy.partition
            logger.error("event=mirror-stopped topic=%s partition=%d reason=%r", partition.topic, partition.index, copy.reason)

    async def _cut(self, copy: PartitionCopy) -> Step:
        """Cut off what the source does not have. The checkpoints are written before and after, as when a follower is cut."""
        services, partition = self._services, copy.partition
        if not copy.may_cut():
            await self._log_start_offsets.keep([partition.log])
        rewind = copy.plan_cut()
        if rewind is not None:
            await services.loop.run_in_executor(services.io_threads, rewind.run)
        end = partition.log.log_end_offset
        count = copy.cut(rewind)
        if not count:
            return Step.WAIT
        logger.warning("event=mirror-log-cut topic=%s partition=%d end_before=%d end=%d offsets=%d",
                       partition.topic, partition.index, end, partition.log.log_end_offset, count)  # fmt: skip
        await self._log_start_offsets.keep([partition.log])
        return Step.FETCH

    async def _ask_range(self, copy: PartitionCopy) -> Step:
        """Ask for the log of a partition whose position is outside of it."""
        found = []
        for timestamp in (EARLIEST, LATEST):
            wanted = ListOffsetsPartition(
                partition_index=copy.partition.index, current_leader_epoch=NO_EPOCH, timestamp=timestamp
            )
            topics = [ListOffsetsTopic(name=copy.source_topic, partitions=[wanted])]
            answer = await self._client.request(Call(ListOffsetsRequest(replica_id=-1, topics=topics), self._leader))
            item = answer.topics[0].partitions[0]
            if item.error_code:
                copy.reason = f"the source answers {ErrorCode(item.error_code).name}"
                return Step.FIND_LEADER
            found.append(item.offset)
        return copy.receive_range(*found)
