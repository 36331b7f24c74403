"""Fetches copies from one broker of a source cluster, on a connection of its own, and appends what comes.

Each link has a few of these for each broker of the source. They share the partitions, so a request is on its way while another's answer
arrives.

Rules
  1. It asks as a consumer does that reads uncommitted records: any cluster that speaks Kafka's protocol can be a source.
  2. One request is in flight. Its answer is appended while it arrives, in pieces, so its size costs no memory (`client/streamed_fetch.py`).
  3. An answer is as large as the line carries in `ANSWER_S`. So a round trip costs little, on a fast line and on a slow one, and
     partitions of one fetcher do not wait long for each other.
  4. A partition with an error rests; the others continue.
  5. All partitions are looked at when something has changed or once in `SCAN_S`; otherwise only those of the last answer.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from barnabas.client.errors import ClientError
from barnabas.client.operations import LAST_VERSION_WITH_NAMES
from barnabas.client.plans import Call
from barnabas.client.streamed_fetch import FIRST_VERSION, FetchStream
from barnabas.config.mirror_settings import MIRRORING
from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.mirror.fetch_times import FetchTimes, Part
from barnabas.mirror.link import FIRST_FETCH_BYTES, LEAST_FETCH_BYTES, MOST_FETCH_BYTES
from barnabas.mirror.partition_copy import PartitionCopy, SourceAnswer, Step
from barnabas.mirror.rate_limit import RateLimit
from barnabas.mirror.source_session import Key, SourceSession, Wanted
from barnabas.mirror.status import refusal
from barnabas.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.server.mirroring.answer_receiver import NO_RECORDS, AnswerReceiver

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from uuid import UUID

    from barnabas.client.asynchronous import AsyncClient
    from barnabas.server.logs.log_start_offsets import LogStartOffsets
    from barnabas.server.services import Services

logger = logging.getLogger(__name__)
MAX_WAIT_MS = 500  # the source holds a fetch without records for so long
ANSWER_S = 0.5
LEAST_MEASURED_BYTES = 256 * 1024  # the rate of a smaller answer says nothing
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 1.0
IDLE_S = 0.5  # until the next look for partitions to fetch, if nothing wakes the fetcher
REST_S = 0.1  # of a partition after an error
SCAN_S = 1.0
LATEST, EARLIEST = -1, -2
OF_SESSION = frozenset(
    {ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR}
)


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
        self._copies: dict[Key, tuple[PartitionCopy, UUID, int]] = {}
        self._session = SourceSession()
        self._scanned_s = -SCAN_S
        self._answer_bytes = FIRST_FETCH_BYTES
        self.times = FetchTimes(services.clock.monotonic_ms() / 1000)
        self._task = services.loop.create_task(self._run(), name=f"mirror-fetcher-{lane}-of-{leader}")

    @property
    def copies(self) -> Iterator[PartitionCopy]:
        """The copies that it fetches, or that rest."""
        return (copy for copy, _, _ in self._copies.values())

    def _now_s(self) -> float:
        """For measurements; the loop's time is not exact within one turn."""
        return self._services.clock.monotonic_ms() / 1000

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
            self._session.restart()
            self._link.look_again()
            self.times.failed()
            await self._pause(pause_s, Part.ERROR)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def _pause(self, seconds: float, part: Part) -> None:
        await asyncio.sleep(seconds)
        self.times.add(part, seconds, self._now_s())

    async def _turn(self) -> None:
        now_s = self._services.loop.time()
        if self._awake.is_set() or now_s >= self._scanned_s + (REST_S if self._resting else SCAN_S):
            self._scan(now_s)
        if not len(self._session):
            is_blocked = any(copy.partition.is_under_min_isr for copy in self.copies)
            part = Part.TARGET if is_blocked else Part.ERROR if self._resting else Part.IDLE
            began_s = self._now_s()
            with suppress(TimeoutError):
                async with asyncio.timeout(REST_S if self._resting else IDLE_S):
                    await self._awake.wait()
            self.times.add(part, self._now_s() - began_s, self._now_s())
            self._awake.set()
            return
        await self._fetch()

    # The partitions

    def _scan(self, now_s: float) -> None:
        """Look at all copies of this fetcher."""
        self._awake.clear()
        self._scanned_s = now_s
        self._resting = {copy: until_s for copy, until_s in self._resting.items() if until_s > now_s}
        found = {
            (copy.source_topic, copy.partition.index): (copy, topic_id, epoch)
            for copy, topic_id, epoch in self._link.copies_at(self._lane, self._leader)
        }
        for key in self._copies.keys() - found.keys():
            self._session.leave(key)
        self._copies = found
        for key in found:
            self._ask(key)

    def _ask(self, key: Key) -> None:
        """Fetch a partition at its position, unless it wants no records."""
        known = self._copies.get(key)
        if known is None:
            return
        copy, topic_id, epoch = known
        if copy in self._resting or not copy.wants_records:
            self._session.leave(key)
            return
        most_bytes = copy.divergence.fetch_bytes or MOST_FETCH_BYTES
        self._session.ask(key, Wanted(topic_id, epoch, copy.position, copy.source_epoch, most_bytes))

    # One request

    async def _fetch(self) -> None:
        services, session, limit = self._services, self._session, self._link.limit
        if (wait_s := limit.wait_s(services.loop.time())) > 0:
            await self._pause(wait_s, Part.LIMIT)
            return
        request, named = session.next_request()
        request.min_bytes, request.max_bytes = 1, limit.most(self._answer_bytes)
        is_behind, special = False, []
        for key in session:
            copy = self._copies[key][0]
            is_behind = is_behind or copy.is_behind
            if copy.state != MIRRORING:
                special.append(key)
        request.max_wait_ms = int(REST_S * 1000) if self._resting or special else MAX_WAIT_MS
        receiver = AnswerReceiver(services, session, self._copies)
        call = Call(request, self._leader, None if session.uses_ids else LAST_VERSION_WITH_NAMES, FIRST_VERSION)
        stream = FetchStream(receiver)
        began_s = self._now_s()
        try:
            await self._client.request_streamed(call, stream)
        finally:
            receiver.close()
            limit.took(receiver.size, services.loop.time())
        self._measure(receiver, began_s, is_behind=is_behind)
        self._link.reached()
        if stream.error_code:
            await self._refused(ErrorCode(stream.error_code))
            return
        session.receive(stream.session_id)
        await self._after_answer(receiver, (*named, *special))
        if receiver.failure is not None:
            raise receiver.failure
        if stream.throttle_ms > 0:
            await self._pause(stream.throttle_ms / 1000, Part.LIMIT)

    async def _after_answer(self, receiver: AnswerReceiver, expected: Sequence[Key]) -> None:
        """Do the next step of each partition.

        Args:
            expected: partitions that must learn of the answer, also if it leaves them out.
        """
        steps = receiver.steps
        if receiver.failure is None:
            for key in expected:
                if key not in steps and key in self._copies:
                    steps[key] = self._nothing_new(self._copies[key][0], is_limited=receiver.size > 0)
        now_ms = self._services.clock.now_ms()
        for key in self._session:
            if key not in steps:
                self._copies[key][0].heard(now_ms)
        asked = [key for key, step in steps.items() if step is not Step.FIND_LEADER and self._copies[key][0].must_ask_end]
        steps.update(await self._ask_ends(asked))
        for key, step in steps.items():
            await self._follow(key, step)

    async def _refused(self, error: ErrorCode) -> None:
        """The source has answered with an error."""
        self._session.restart()
        if error in OF_SESSION:  # as after a restart of the source, or when others have taken the place of the session
            logger.info("event=mirror-fetch-session-ended leader=%d error_code=%s", self._leader, error.name)
            return
        logger.info("event=mirror-fetch-refused leader=%d error_code=%s", self._leader, error.name)
        self.times.failed()
        self._link.look_again()
        await self._pause(REST_S, Part.ERROR)

    def _nothing_new(self, copy: PartitionCopy, *, is_limited: bool) -> Step:
        """An answer of a session leaves out a partition without news."""
        answer = SourceAnswer(ErrorCode.NONE, copy.source_end, copy.source_start, NO_RECORDS, is_limited=is_limited)
        return copy.receive(copy.position, answer, self._services.clock.now_ms())

    async def _follow(self, key: Key, step: Step) -> None:
        """Do the step of a partition, and ask for it again."""
        copy = self._copies[key][0]
        try:
            if step is Step.ASK_RANGE:
                step = await self._ask_range(copy)
                if step is Step.WAIT:  # as in `_cut`: before a log starts again elsewhere, its start must be written
                    await self._log_start_offsets.keep([copy.partition.log])
            if step is Step.CUT:
                step = await self._cut(copy)
            if copy.is_at_source_end:
                self._link.end_transactions()
        except KafkaError as error:
            copy.stop(f"{error.code.name}: {error.message or 'the log cannot be cut'}")
            step = Step.STOP
        except StorageError as error:
            self._services.faults.report(error)
            copy.reason = "the disk does not take the records"
            step = Step.WAIT
        if step in {Step.FIND_LEADER, Step.WAIT}:
            self._resting[copy] = self._services.loop.time() + REST_S
        if step is Step.FIND_LEADER:
            self.times.failed()
            self._link.look_again()
        if step is Step.STOP and key in self._session:
            partition = copy.partition
            logger.error("event=mirror-stopped topic=%s partition=%d reason=%r", partition.topic, partition.index, copy.reason)
        self._ask(key)

    def _measure(self, receiver: AnswerReceiver, began_s: float, *, is_behind: bool) -> None:
        """Note where the time of an answer went, and choose the size of the next one."""
        now_s = self._now_s()
        first_s = receiver.first_byte_s or now_s
        if is_behind:
            self.times.waited(first_s - began_s, now_s)
        else:
            self.times.add(Part.IDLE, first_s - began_s, now_s)
        self.times.add(Part.TARGET, receiver.appending_s, now_s)
        self.times.add(Part.LINE, max(now_s - first_s - receiver.appending_s, 0.0), now_s)
        if receiver.size:
            self.times.answered(receiver.size, now_s)
        if receiver.size >= LEAST_MEASURED_BYTES and now_s > first_s:
            wanted = int(receiver.size / (now_s - first_s) * ANSWER_S)
            self._answer_bytes = min(max(wanted, LEAST_FETCH_BYTES), MOST_FETCH_BYTES)

    async def _cut(self, copy: PartitionCopy) -> Step:
        """Cut off what the source does not have. The checkpoints are written before and after, as when a follower is cut."""
        services, partition = self._services, copy.partition
        if not copy.divergence.may_cut():
            await self._log_start_offsets.keep([partition.log])
        rewind = copy.divergence.plan_cut()
        if rewind is not None:
            await services.loop.run_in_executor(services.io_threads, rewind.run)
        end = partition.log.log_end_offset
        count = copy.divergence.cut(rewind)
        if not count:
            return Step.WAIT
        logger.warning("event=mirror-log-cut topic=%s partition=%d end_before=%d end=%d offsets=%d",
                       partition.topic, partition.index, end, partition.log.log_end_offset, count)  # fmt: skip
        await self._log_start_offsets.keep([partition.log])
        return Step.FETCH

    async def _ask_range(self, copy: PartitionCopy) -> Step:
        """Ask for the log of a partition whose position is outside of it."""
        found: list[int] = []
        for timestamp in (EARLIEST, LATEST):
            offsets = await self._list_offsets([(copy.source_topic, copy.partition.index)], timestamp)
            if not offsets:
                return Step.FIND_LEADER
            found += offsets.values()
        return copy.receive_range(*found)

    async def _ask_ends(self, keys: Sequence[Key]) -> dict[Key, Step]:
        """Ask for the ends that promoted copies must reach; returns the step of those of which the broker does not tell it."""
        if not keys:
            return {}
        ends = await self._list_offsets(keys, LATEST)
        for key, end in ends.items():
            self._copies[key][0].receive_end(end)
        return {key: Step.FIND_LEADER for key in keys if key not in ends}

    async def _list_offsets(self, keys: Sequence[Key], timestamp: int) -> dict[Key, int]:
        """Offsets of partitions by ListOffsets. One that the broker does not tell is left out, with the reason in its copy."""
        asked = {key: self._copies[key] for key in keys}
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for (name, index), (_, _, epoch) in asked.items():
            wanted = ListOffsetsPartition(partition_index=index, current_leader_epoch=epoch, timestamp=timestamp)
            topics.setdefault(name, []).append(wanted)
        named = [ListOffsetsTopic(name=name, partitions=partitions) for name, partitions in topics.items()]
        answer = await self._client.request(Call(ListOffsetsRequest(replica_id=-1, topics=named), self._leader))
        items = [((topic.name, item.partition_index), item) for topic in answer.topics for item in topic.partitions]
        found: dict[Key, int] = {}
        for key, item in items:
            if key not in asked:
                continue
            if item.error_code:
                asked[key][0].reason = refusal(item.error_code)
            else:
                found[key] = item.offset
        return found
