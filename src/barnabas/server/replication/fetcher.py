"""One fetcher: fetches the records of followed partitions from one leader, and gives them to the partitions.

Rules
  1. One request waits at the leader. A second is sent before its answer only if more partitions are followed in the meantime, so that
     these need not wait; the leader then answers the first at once.
  2. A partition with an error is left out for a while, longer each time, up to `replica.fetch.backoff.ms`; the others continue.
  3. The fetcher handles a large answer in pieces, so that the loop does not stop for all of it.
  4. A throttled partition that is behind is left out while its rate is used up.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING

from barnabas.client.errors import ClientError
from barnabas.errors import BarnabasError, ErrorCode, KafkaError, StorageError
from barnabas.protocol.messages.fetch import FetchResponse, PartitionData, ReplicaState
from barnabas.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.replication.follower_state import DivergingEpoch, LeadersAnswer, Next, Position
from barnabas.replication.in_sync import UNKNOWN_BROKER_EPOCH
from barnabas.server.cluster.peers import peers_of
from barnabas.server.replication.leader_session import LeaderSession
from barnabas.tuples import new_tuple

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator
    from typing import Any

    from barnabas.replication.follower_partition import FollowerPartition
    from barnabas.server.cluster.peers import Peers
    from barnabas.server.logs.log_start_offsets import LogStartOffsets
    from barnabas.server.replication.throttles import Throttles
    from barnabas.server.services import Services

logger = logging.getLogger(__name__)
FIRST_PAUSE_MS = 20  # after the first error; doubles after each further error
CONNECTION_PAUSE_MS, CONNECTION_PAUSE_MAX_MS = 50, 1_000
BYTES_PER_TURN = 512 * 1024  # appended before the loop gets a turn
LATEST, EARLIEST = -1, -2
NO_RECORDS = b""
REQUESTS_IN_FLIGHT = 2


class Fetcher:
    """Follows one leader, until `close`.

    Args:
        requests: connections for requests other than Fetch.
        number: the number of this fetcher among those of the same leader.
    """

    def __init__(
        self,
        services: Services,
        throttles: Throttles,
        log_start_offsets: LogStartOffsets,
        requests: Peers,
        leader_id: int,
        number: int,
    ) -> None:
        config = services.config
        self._services = services
        self._throttles = throttles
        self._log_start_offsets = log_start_offsets
        self._requests = requests
        self._leader_id = leader_id
        self._peers = peers_of(  # own connections, so that nothing else waits behind a waiting fetch
            lambda: services.metadata,
            services,
            f"fetcher-{number}",
            request_timeout_ms=max(config.replica_socket_timeout_ms, 2 * config.replica_fetch_wait_max_ms),
        )
        self._session = LeaderSession()
        self._broker_epoch = UNKNOWN_BROKER_EPOCH
        self._partitions: dict[FollowerPartition, None] = {}
        self._pauses: dict[FollowerPartition, int] = {}  # the last pause in milliseconds
        self._held_back: set[FollowerPartition] = set()  # partitions that a throttle holds back, each with a timer
        # partitions whose log start offset is being written, or whose log is about to be cut
        self._busy: set[FollowerPartition] = set()
        self._jobs: set[asyncio.Task[None]] = set()
        self._in_flight: deque[tuple[int, asyncio.Future[FetchResponse]]] = deque()
        self._is_in_hurry = False  # partitions were added while a request waits
        self._awake = asyncio.Event()
        self._is_parked = False  # the task waits for `_awake`
        self._has_failed = False  # an error outside of the task, which must start again
        self._task = services.loop.create_task(self._run(), name=f"fetcher-{number}-of-{leader_id}")

    def __len__(self) -> int:
        return len(self._partitions)

    def add(self, partition: FollowerPartition) -> None:
        """Fetch a partition, from its position on."""
        self._partitions[partition] = None
        self._pauses.pop(partition, None)
        partition.on_ready = lambda: self._became_ready(partition)
        self._resume(partition)

    def remove(self, partition: FollowerPartition) -> None:
        if partition in self._partitions:
            del self._partitions[partition]
            self._pauses.pop(partition, None)
            partition.on_ready = None
            self._session.leave(partition)

    async def close(self) -> None:
        self._is_parked = False  # ignore answers from now on
        tasks: list[asyncio.Future[Any]] = [self._task, *self._jobs, *(answer for _, answer in self._in_flight)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._peers.close()

    # --- requests

    async def _run(self) -> None:
        pause_ms = CONNECTION_PAUSE_MS
        while True:
            try:
                await self._turn()
                if not self._has_failed:
                    pause_ms = CONNECTION_PAUSE_MS
                    continue
            except ClientError as error:
                logger.info(
                    "event=fetch-failed leader=%d partitions=%d error=%r", self._leader_id, len(self._partitions), str(error)
                )
            except Exception:  # a fault of the broker must not end replication
                logger.exception("event=fetch-failed leader=%d", self._leader_id)
            self._has_failed = False
            await self._drop_requests()
            self._session.restart()
            await asyncio.sleep(pause_ms / 1000)
            pause_ms = min(pause_ms * 2, CONNECTION_PAUSE_MAX_MS)

    async def _turn(self) -> None:
        """Send a request if one is due, and handle one answer."""
        in_flight = self._in_flight
        self._send_if_due()
        if not in_flight or not in_flight[0][1].done():
            self._awake.clear()
            self._is_parked = True
            try:
                await self._awake.wait()
            finally:
                self._is_parked = False
        if not self._has_failed and in_flight and in_flight[0][1].done():
            number, answer = in_flight.popleft()
            for _ in self._take(number, answer.result()):
                await asyncio.sleep(0)

    def _turn_at_once(self) -> bool:
        """Do the same as `_turn` for an answer that has come, without waking the task; False if the task must handle it."""
        number, answer = self._in_flight[0]
        if not answer.done() or answer.cancelled() or answer.exception() is not None:
            return False
        response = answer.result()
        if sum(len(data.records or NO_RECORDS) for topic in response.responses for data in topic.partitions) >= BYTES_PER_TURN:
            return False
        self._in_flight.popleft()
        for _ in self._take(number, response):
            raise AssertionError("so few bytes are taken in without a pause")
        self._send_if_due()
        return True

    def _send_if_due(self) -> None:
        in_flight = self._in_flight
        may_hurry = self._is_in_hurry and self._session.is_open and len(in_flight) < REQUESTS_IN_FLIGHT
        if len(self._session) and (not in_flight or may_hurry):
            self._send()

    def _send(self) -> None:
        self._is_in_hurry = False
        services = self._services
        config = services.config
        own = services.metadata.brokers.get(config.broker_id)
        # otherwise keep the last epoch: the leader would accept an unknown epoch for any registration
        if own is not None:
            self._broker_epoch = own.epoch
        replica = ReplicaState(replica_id=config.broker_id, replica_epoch=self._broker_epoch)
        may_wait = self._session.may_wait
        number, request = self._session.next_request(replica, partition_max_bytes=config.replica_fetch_max_bytes)
        request.max_wait_ms = config.replica_fetch_wait_max_ms if may_wait else 0
        request.min_bytes = config.replica_fetch_min_bytes
        request.max_bytes = config.replica_fetch_response_max_bytes
        answer = self._peers.send_at_once(self._leader_id, request)
        if answer is None:
            answer = services.loop.create_task(self._peers.send(self._leader_id, request))
        answer.add_done_callback(self._answered)
        self._in_flight.append((number, answer))

    def _answered(self, _: object) -> None:
        """Handle a small answer at once, because waking the task takes two more turns of the loop."""
        try:
            if self._is_parked and not self._awake.is_set() and self._in_flight and self._turn_at_once():
                return
        except Exception:  # as in `_run`
            logger.exception("event=fetch-failed leader=%d", self._leader_id)
            self._has_failed = True
        self._awake.set()

    async def _drop_requests(self) -> None:
        dropped = [task for _, task in self._in_flight]
        self._in_flight.clear()
        for task in dropped:
            task.cancel()
        await asyncio.gather(*dropped, return_exceptions=True)
        if dropped:
            self._peers.disconnect(self._leader_id)  # an answer that still arrives would match no request

    # --- answers

    def _take(self, number: int, answer: FetchResponse) -> Iterator[None]:
        """Handle an answer; each yield lets the loop do other work."""
        if answer.error_code:
            logger.info("event=fetch-session-ended leader=%d error_code=%s", self._leader_id, ErrorCode(answer.error_code).name)
            self._session.restart()
            return
        if not self._session.receive(number, answer.session_id):
            return
        taken = 0
        for topic in answer.responses:
            for data in topic.partitions:
                key = topic.topic_id.int, data.partition_index
                partition = self._session.find(key)
                asked = self._session.position_told(key, number)
                if partition is None or asked is None or partition.closed:
                    continue
                self._receive(partition, asked, data)
                taken += 0 if data.records is None else len(data.records)
                if taken >= BYTES_PER_TURN:
                    taken = 0
                    yield

    def _receive(self, partition: FollowerPartition, asked: Position, data: PartitionData) -> None:
        epoch, epoch_end = data.diverging_epoch.epoch, data.diverging_epoch.end_offset
        diverging = None if epoch < 0 and epoch_end < 0 else DivergingEpoch(epoch, epoch_end)
        records = NO_RECORDS if data.records is None else data.records
        told = new_tuple(
            LeadersAnswer,
            (
                ErrorCode(data.error_code),
                data.high_watermark,
                data.log_start_offset,
                records,
                diverging,
            ),
        )
        end = partition.log.log_end_offset
        try:
            step = partition.receive(asked, told, self._services.clock.now_ms())
        except KafkaError as error:
            logger.error(
                "event=records-refused topic=%s partition=%d leader=%d error=%r", *_name(partition), self._leader_id, str(error)
            )
            self._pause(partition)
            return
        except StorageError as error:
            self._services.faults.report(error)
            self._pause(partition)
            return
        if step is Next.CUT or partition.log.log_end_offset < end:
            logger.info(
                "event=log-diverges topic=%s partition=%d leader=%d diverging=%r is_cut=%s end_before=%d end=%d",
                *_name(partition), self._leader_id, told.diverging, step is not Next.CUT, end, partition.log.log_end_offset,
            )  # fmt: skip
        self._services.metrics.replicated_bytes_in += len(records)
        self._throttles.received(partition, len(records))
        self._go_on(partition, step, told.error)

    async def _keep_start(self, partition: FollowerPartition) -> None:
        """Write the checkpoints of the log before the next fetch tells the leader its start. So records that DeleteRecords deleted stay
        deleted after a crash, and records after a truncation stay in the log.
        """
        try:
            await self._log_start_offsets.keep([partition.log])
        except StorageError as error:
            self._services.faults.report(error)
            self._pause(partition)
            return
        finally:
            self._busy.discard(partition)
        self._resume(partition)

    async def _cut(self, partition: FollowerPartition) -> None:
        """Truncate the log at the leader's end, after a thread has found the producer state at that offset."""
        follower_state, end = partition.follower_state, partition.log.log_end_offset
        cut = follower_state.planned
        assert cut is not None, "the answer that asked for it planned it"
        try:
            await self._services.loop.run_in_executor(self._services.io_threads, cut.rewind.run)
        finally:
            self._busy.discard(partition)
        if partition.closed or partition.follower_state is not follower_state:
            self._resume(partition)
            return
        try:
            partition.cut(cut)
        except StorageError as error:
            self._services.faults.report(error)
            self._pause(partition)
            return
        logger.info(
            "event=log-cut topic=%s partition=%d leader=%d end_before=%d end=%d",
            *_name(partition), self._leader_id, end, partition.log.log_end_offset,
        )  # fmt: skip
        self._resume(partition)

    def _may_ask(self, partition: FollowerPartition) -> bool:
        """Whether the next fetch may include the partition. If not, it resumes after its flush, its checkpoints, its truncation, or the
        throttle's wait.
        """
        if partition in self._busy or not partition.is_ready:
            return False
        return self._is_start_kept(partition) and not self._is_held_back(partition)

    def _is_start_kept(self, partition: FollowerPartition) -> bool:
        """Whether the checkpoints of the log are written; if not, start to write them."""
        if partition.log.is_written_down:
            return True
        self._busy.add(partition)
        self._spawn(self._keep_start(partition))
        return False

    def _go_on(self, partition: FollowerPartition, step: Next, error: ErrorCode) -> None:
        match step:
            case Next.FETCH:
                self._pauses.pop(partition, None)
                if self._may_ask(partition):
                    self._session.ask(partition)
                else:
                    self._session.leave(partition)
            case Next.WAIT:
                logger.debug(
                    "event=fetch-refused topic=%s partition=%d leader=%d error_code=%s",
                    *_name(partition),
                    self._leader_id,
                    error.name,
                )
                self._pause(partition)
            case Next.ASK_RANGE:
                self._session.leave(partition)
                self._spawn(self._ask_range(partition))
            case Next.CUT:
                self._session.leave(partition)
                self._busy.add(partition)
                self._spawn(self._cut(partition))
            case Next.STOP:
                logger.info(
                    "event=fetch-ended topic=%s partition=%d leader=%d error_code=%s",
                    *_name(partition),
                    self._leader_id,
                    error.name,
                )
                self._session.leave(partition)

    # --- pauses

    def _pause(self, partition: FollowerPartition) -> None:
        """Leave a partition out for a while."""
        self._session.leave(partition)
        longest = self._services.config.replica_fetch_backoff_ms
        pause_ms = min(max(self._pauses.get(partition, 0) * 2, FIRST_PAUSE_MS), longest)
        self._pauses[partition] = pause_ms
        self._services.loop.call_later(pause_ms / 1000, self._resume, partition)

    def _became_ready(self, partition: FollowerPartition) -> None:
        """Resume a partition after its flush. If a fetch asks for it already, another request would only make the leader send the same
        data again.
        """
        if not self._session.asks_for(partition):
            self._resume(partition)

    def _resume(self, partition: FollowerPartition) -> None:
        if partition in self._partitions and not partition.closed and self._may_ask(partition):
            self._session.ask(partition)
            self._is_in_hurry = True
            self._awake.set()

    def _is_held_back(self, partition: FollowerPartition) -> bool:
        """Whether a throttle delays the partition; it then resumes by itself."""
        wait_ms = self._throttles.fetching_wait_ms(partition)
        if wait_ms and partition not in self._held_back:
            self._held_back.add(partition)
            self._services.loop.call_later(wait_ms / 1000, self._let_go, partition)
        return wait_ms > 0

    def _let_go(self, partition: FollowerPartition) -> None:
        self._held_back.discard(partition)
        self._resume(partition)

    def _spawn(self, job: Coroutine[Any, Any, None]) -> None:
        task = self._services.loop.create_task(job)
        self._jobs.add(task)
        task.add_done_callback(self._jobs.discard)

    async def _ask_range(self, partition: FollowerPartition) -> None:
        """Ask for the start and end of the leader's log, because the position is outside of it."""
        epoch = partition.leader_epoch
        try:
            start = await self._ask_offset(partition, EARLIEST)
            end = await self._ask_offset(partition, LATEST)
        except BarnabasError as error:
            logger.info("event=leaders-range-unknown topic=%s partition=%d error=%r", *_name(partition), str(error))
            self._pause(partition)
            return
        if partition.closed or partition not in self._partitions or partition.leader_epoch != epoch:
            return
        before = partition.log.log_end_offset
        try:
            step = partition.reset(start, end)
        except StorageError as error:
            self._services.faults.report(error)
            step = Next.WAIT
        logger.info(
            "event=position-outside-of-leaders-log topic=%s partition=%d leader_start=%d leader_end=%d end_before=%d end=%d",
            *_name(partition), start, end, before, partition.log.log_end_offset,
        )  # fmt: skip
        if step is Next.FETCH:
            self._resume(partition)
        else:
            self._pause(partition)

    async def _ask_offset(self, partition: FollowerPartition, timestamp: int) -> int:
        wanted = ListOffsetsPartition(
            partition_index=partition.index, current_leader_epoch=partition.leader_epoch, timestamp=timestamp
        )
        topics = [ListOffsetsTopic(name=partition.topic, partitions=[wanted])]
        request = ListOffsetsRequest(replica_id=self._services.config.broker_id, topics=topics)
        answer = await self._requests.send(self._leader_id, request)
        found = answer.topics[0].partitions[0]
        if found.error_code:
            raise KafkaError(ErrorCode(found.error_code))
        return int(found.offset)


def _name(partition: FollowerPartition) -> tuple[str, int]:
    return partition.topic, partition.index
