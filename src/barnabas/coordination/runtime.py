"""The asyncio shell of a coordinator: one shard, a core without I/O, for each partition of its internal topic that this broker
leads.

Owns the set of local shards, the writing of their records and the one timer that wakes them. Coordinators call it with the name
of a group or transactional id: `write`, `post` (the answer comes later) and `read`, as in Kafka's coordinator runtime;
`write_at_once` and `read_at_once` are for callers without a task.

Rules
  1. All records of a shard go through `carry_out`: append, replay, wait for the commit, notify the shard, answer. Between a
     shard's decision and the replay of its records no other call reaches the shard, so there are no locks.
  2. A response is sent only after every record that it may depend on is committed. A read therefore waits until the log end at
     the time of the read is committed (`settled`); this takes time only while replication lags. After `timeout_ms` the client
     gets COORDINATOR_NOT_AVAILABLE, although its records may still be committed.
  3. If the log refuses records at once, nothing has changed, and the shard is notified. If the log accepts them and then loses
     them, the shard has lost records in its state: it is discarded and loaded again. The same happens if it cannot replay
     accepted records.
  4. A caller that gives up waiting (a closed connection) cancels a future; this does not affect the shard.
  5. A broken invariant stops the shard: it is unloaded, its last events are logged, and its clients find no coordinator here.

Ugly: the log may commit at once or much later. So `carry_out` has a part that runs at once, and one that may run as a callback.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from barnabas.clock import Clock
from barnabas.coordination.hosted_shard import HostedShard, Phase, S, read_into, shielded
from barnabas.coordination.interfaces import CoordinatorLog, EndMarker
from barnabas.coordination.loop_timer import LoopTimer
from barnabas.coordination.partitioner import partition_of
from barnabas.coordination.result import NO_PRODUCER, CoordinatorResult, Now, response_error_of
from barnabas.errors import ErrorCode, InvariantViolated, KafkaError
from barnabas.tuples import new_tuple

T = TypeVar("T")
logger = logging.getLogger(__name__)


class Decision(NamedTuple):
    """The decision of a shard.

    Fields:
        commit: awaited (`wait_for`) before the response is sent, if not None.
        follow: lets the shard continue after its records are committed; call it before or after the response.
    """

    response: Any
    commit: asyncio.Future[None] | None
    follow: Callable[[], None] | None


class CoordinatorRuntime(Generic[S]):
    """The shards of one coordinator on this broker.

    Args:
        kind: type of the shards for log lines, such as "group".
        make: creates the empty shard of a partition.
        timeout_ms: how long one request waits for a commit.
        prepare: creates the topic and loads the partitions that this broker leads; called before the first request if nothing
            is loaded.
        changed: called with a shard after each executed outcome.
        loaded: called with a loaded shard, before it serves.
        is_coming: whether a missing partition is about to be loaded.
    """

    def __init__(
        self,
        kind: str,
        log_: CoordinatorLog,
        clock: Clock,
        make: Callable[[int, Now], S],
        timeout_ms: int,
        prepare: Callable[[], Awaitable[None]] | None = None,
        changed: Callable[[HostedShard[S]], None] | None = None,
        loaded: Callable[[HostedShard[S]], None] | None = None,
        is_coming: Callable[[int], bool] | None = None,
    ) -> None:
        self._kind = kind
        self._log = log_
        self._clock = clock
        self._make = make
        self._timeout_ms = timeout_ms
        self._prepare = prepare
        self._changed = changed
        self._loaded = loaded
        self._is_coming = is_coming
        self._preparing: asyncio.Task[None] | None = None
        self._hosted: dict[int, HostedShard[S]] = {}
        self._reading = asyncio.Lock()
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._timer = LoopTimer(clock, self.wake)
        self._closed = False

    # -- hosted partitions ----------------------------------------------------------------------------------------------

    async def load(self, partition: int, ready: Callable[[], Awaitable[None]] | None = None) -> None:
        """This broker became leader of `partition`: read it, then serve it.

        Args:
            ready: returns when the log can be read to its end; an exception ends the loading.
        """
        if partition in self._hosted or self._closed:
            return
        hosted = self._hosted[partition] = HostedShard(partition, self._make(partition, self.now()))
        read = False
        try:
            if ready is not None:
                await ready()
            async with self._reading:  # one load at a time: fifty concurrent loads would block the loop fifty times as long
                if self.is_hosted(hosted):
                    await read_into(hosted, self._log, self._kind, lambda: self.is_hosted(hosted))
            read = True
        finally:
            if not read and self._hosted.get(partition) is hosted:
                del self._hosted[partition]  # the log cannot be read, so this broker does not serve the partition
        if self._hosted.get(partition) is not hosted:
            return  # the partition was taken away while it was loading
        hosted.phase = Phase.ACTIVE
        for outcome in hosted.shard.receive_loaded(self.now()):
            self.carry_out_quietly(hosted, outcome)
        if self._loaded is not None:
            self._loaded(hosted)
        self.arm(hosted)

    def unload(self, partition: int) -> None:
        """Another broker leads `partition`: waiting requests get NOT_COORDINATOR."""
        hosted = self._hosted.pop(partition, None)
        if hosted is None:
            return
        self._answer(hosted.shard.unload(self.now()))
        hosted.uncommitted.clear()

    async def prepare(self) -> None:
        """Ensure that the topic exists and is loaded; concurrent calls share one attempt."""
        if self._prepare is None or self._hosted or self._closed:
            return
        if self._preparing is None:
            self._preparing = asyncio.ensure_future(_run(self._prepare))
        try:
            await asyncio.shield(self._preparing)
        finally:
            if self._preparing is not None and self._preparing.done():
                self._preparing = None

    def close(self) -> None:
        """Refuse all waiting requests and stop."""
        self._closed = True
        for partition in list(self._hosted):
            self.unload(partition)
        self._timer.close()
        for task in [*self._tasks, *([self._preparing] if self._preparing else [])]:
            task.cancel()

    def partition_of(self, name: str) -> int:
        return partition_of(name, self._log.partition_count)

    def __len__(self) -> int:
        """The number of groups or transactional ids on this broker."""
        return sum(len(hosted.shard) for hosted in self._hosted.values())

    def is_hosted(self, hosted: HostedShard[S]) -> bool:
        """Whether this object is current."""
        return self._hosted.get(hosted.partition) is hosted

    def __iter__(self) -> Iterator[HostedShard[S]]:
        """The partitions that this broker leads, loaded or not."""
        return iter(list(self._hosted.values()))

    def active(self) -> dict[int, S]:
        """The loaded shards by partition."""
        return {p: hosted.shard for p, hosted in self._hosted.items() if hosted.phase is Phase.ACTIVE}

    # -- results of shards ----------------------------------------------------------------------------------------------

    def hosted_for(self, name: str) -> HostedShard[S]:
        """The hosted shard of a group or a transactional id.

        Raises:
            KafkaError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE.
        """
        if self._closed:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return self._hosted_in(self.partition_of(name))

    def _hosted_in(self, partition: int) -> HostedShard[S]:
        hosted = self._hosted.get(partition)
        if hosted is None:
            is_coming = self._is_coming is not None and self._is_coming(partition)
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_coming else ErrorCode.NOT_COORDINATOR)
        if hosted.phase is Phase.LOADING:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return hosted

    def ask(self, hosted: HostedShard[S], call: Callable[[], T]) -> T:
        """Call the shard; a broken invariant stops it."""
        try:
            return call()
        except InvariantViolated as error:
            logger.error(
                "event=shard-stopped kind=%s partition=%d error=%r story=%r",
                self._kind,
                hosted.partition,
                str(error),
                "; ".join(hosted.shard.story),
            )
            if self._hosted.get(hosted.partition) is hosted:
                self.unload(hosted.partition)
            raise

    async def write(self, name: str, call: Callable[[S, Now], CoordinatorResult]) -> Any:
        """Let the shard of a group or a transactional id decide; returns the response when its records are committed.

        Raises:
            KafkaError: as `hosted_for`, an error of the shard, or an error of the log.
            InvariantViolated: as `ask`.
        """
        hosted = self.hosted_for(name)
        return await self.perform(hosted, self.ask(hosted, lambda: call(hosted.shard, self.now())))

    def decide(self, name: str, call: Callable[[S, Now], CoordinatorResult]) -> Decision:
        """Like `write`, for callers without a task, or callers that answer before the shard continues."""
        hosted = self.hosted_for(name)
        outcome = self.ask(hosted, lambda: call(hosted.shard, self.now()))
        commit = self.carry_out(hosted, outcome, tells=False)
        if commit is None and not outcome.records and hosted.uncommitted:
            commit = hosted.uncommitted[-1]  # the response waits for the current log end, as in `settled`
        follow = partial(self._tell, hosted, outcome, None) if commit is None and outcome.written is not None else None
        return Decision(outcome.response, commit, follow)

    async def post(self, name: str, token: asyncio.Future[T], call: Callable[[S, Now], CoordinatorResult]) -> T:
        """Like `write`, but the answer goes to `token`, with this outcome or a later one."""
        hosted = self.hosted_for(name)
        self.carry_out_quietly(hosted, self.ask(hosted, lambda: call(hosted.shard, self.now())))
        return await token

    async def read(self, name: str, call: Callable[[S], T]) -> T:
        """Read from the shard of a group or a transactional id; returns when the records behind the result are committed."""
        hosted = self.hosted_for(name)
        found = call(hosted.shard)
        await self.settled(hosted)
        return found

    def write_at_once(self, name: str, call: Callable[[S, Now], CoordinatorResult]) -> bool:
        """Like `write`, but False if that would wait for a commit: then call `write`."""
        hosted = self.hosted_for(name)
        outcome = self.ask(hosted, lambda: call(hosted.shard, self.now()))
        return self.carry_out(hosted, outcome) is None and not hosted.uncommitted

    def read_at_once(self, name: str, call: Callable[[S], T]) -> T | None:
        """Like `read`, but None if that would wait for a commit."""
        hosted = self.hosted_for(name)
        return None if hosted.uncommitted else call(hosted.shard)

    async def perform(self, hosted: HostedShard[S], outcome: CoordinatorResult) -> Any:
        """Execute an outcome, and return its own response when it may be sent."""
        commit = self.carry_out(hosted, outcome)
        if commit is not None:
            await self.wait_for(commit)
        elif not outcome.records:
            await self.settled(hosted)
        return outcome.response

    def end_transaction(self, partition: int, marker: EndMarker) -> asyncio.Future[None] | None:
        """Append the end of a transaction with records in `partition`, as its coordinator decided.

        Like `CoordinatorLog.append_marker`; wait for the returned future by `shielded`.

        Raises:
            KafkaError: NOT_COORDINATOR and COORDINATOR_LOAD_IN_PROGRESS as `hosted_for`, and an error of the log.
        """
        hosted = self._hosted_in(partition)
        commit = self._log.append_marker(partition, marker, self._clock.now_ms())
        if commit is not None:
            hosted.uncommitted.append(commit)
            commit.add_done_callback(lambda done: self._committed(hosted, CoordinatorResult(), done))
        try:
            hosted.shard.replay_end(marker.producer.producer_id, commit=marker.commit)
        except Exception as error:
            self._part(hosted, CoordinatorResult(), error)
            raise
        return commit

    def carry_out(self, hosted: HostedShard[S], outcome: CoordinatorResult, *, tells: bool = True) -> asyncio.Future[None] | None:
        """Execute `outcome`. Returns a pending future if its records wait to be committed.

        Args:
            tells: notify the shard of records that are committed at once; otherwise the caller does.

        Raises KafkaError if the records were refused; then all waiting requests of this outcome got the error.
        """
        for note in outcome.notes:
            logger.info("event=shard-note kind=%s note=%r", self._kind, note)
        commit: asyncio.Future[None] | None = None
        if outcome.records:
            try:
                commit = self._log.append(hosted.partition, outcome.records, self._clock.now_ms(), outcome.producer)
            except KafkaError as error:
                self._refuse(hosted, outcome, error.code)
                raise KafkaError(response_error_of(error.code)) from error
            if commit is not None:
                hosted.uncommitted.append(commit)
                commit.add_done_callback(lambda done: self._committed(hosted, outcome, done))
            if outcome.replays:
                self._replay(hosted, outcome)
        if commit is None:
            self._answer(outcome)
            if tells:
                self._tell(hosted, outcome, None)
        self.arm(hosted)
        if self._changed is not None:
            self._changed(hosted)
        return commit

    def _replay(self, hosted: HostedShard[S], outcome: CoordinatorResult) -> None:
        """Replay the accepted records in the shard."""
        producer_id = NO_PRODUCER if outcome.producer is None else outcome.producer.producer_id
        try:
            for record in outcome.records:
                hosted.shard.replay(record, producer_id)
        except Exception as error:
            self._part(hosted, outcome, error)
            raise

    def _part(self, hosted: HostedShard[S], outcome: CoordinatorResult, error: Exception) -> None:
        """A shard failed to replay accepted records: discard it and load it again."""
        self._fail(outcome, KafkaError(ErrorCode.NOT_COORDINATOR))
        self._reload(hosted, f"the shard does not take it: {error}")

    def _committed(self, hosted: HostedShard[S], outcome: CoordinatorResult, commit: asyncio.Future[None]) -> None:
        if commit in hosted.uncommitted:
            hosted.uncommitted.remove(commit)
        error = "cancelled" if commit.cancelled() else commit.exception()
        if self._hosted.get(hosted.partition) is not hosted:
            self._fail(outcome, KafkaError(ErrorCode.NOT_COORDINATOR))
        elif error is not None:
            self._fail(outcome, KafkaError(ErrorCode.NOT_COORDINATOR))
            self._reload(hosted, str(error))
        else:
            self._finish(hosted, outcome)

    def _finish(self, hosted: HostedShard[S], outcome: CoordinatorResult) -> None:
        self._answer(outcome)
        self._tell(hosted, outcome, None)

    def _refuse(self, hosted: HostedShard[S], outcome: CoordinatorResult, code: ErrorCode) -> None:
        logger.warning("event=shard-write-refused kind=%s partition=%d error_code=%s", self._kind, hosted.partition, code.name)
        self._fail(outcome, KafkaError(response_error_of(code)))
        self._tell(hosted, outcome, code)

    def _tell(self, hosted: HostedShard[S], outcome: CoordinatorResult, code: ErrorCode | None) -> None:
        event = outcome.written
        if event is None:
            return
        try:
            follow_up = self.ask(hosted, lambda: hosted.shard.receive_written(event, code, self.now()))
        except InvariantViolated:
            return  # the error is logged, and the shard is removed
        if follow_up is not None:
            self.carry_out_quietly(hosted, follow_up)

    def carry_out_quietly(self, hosted: HostedShard[S], outcome: CoordinatorResult) -> asyncio.Future[None] | None:
        """Execute an outcome that no caller waits for: a refusal is logged, and its tokens get the error."""
        try:
            return self.carry_out(hosted, outcome)
        except KafkaError as error:
            logger.debug("event=shard-follow-up-refused kind=%s partition=%d error=%r", self._kind, hosted.partition, str(error))
            return None

    def _answer(self, outcome: CoordinatorResult) -> None:
        for token, response in outcome.replies:
            if isinstance(token, asyncio.Future) and not token.done():
                token.set_result(response)

    def _fail(self, outcome: CoordinatorResult, error: KafkaError) -> None:
        for token, _ in outcome.replies:
            if isinstance(token, asyncio.Future) and not token.done():
                token.set_exception(error)

    def _reload(self, hosted: HostedShard[S], reason: str) -> None:
        logger.warning("event=shard-write-lost kind=%s partition=%d error=%r", self._kind, hosted.partition, reason)
        self.unload(hosted.partition)
        task = asyncio.ensure_future(self.load(hosted.partition))
        self._tasks[task] = None
        task.add_done_callback(self._loaded_again)

    def _loaded_again(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and task.exception() is not None:
            logger.error("event=shard-not-loaded kind=%s error=%r", self._kind, str(task.exception()))

    async def settled(self, hosted: HostedShard[S]) -> None:
        """Wait until the current log end is committed.

        Raises:
            KafkaError: NOT_COORDINATOR if the log lost it, COORDINATOR_NOT_AVAILABLE if the commit takes too long.
        """
        if hosted.uncommitted:
            await self.wait_for(hosted.uncommitted[-1])

    async def wait_for(self, commit: asyncio.Future[None]) -> None:
        """Wait for a commit.

        Raises:
            KafkaError: as `settled`.
        """
        done, _ = await asyncio.wait((commit,), timeout=self._timeout_ms / 1000)
        if not done:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        await shielded(commit)

    # -- time -----------------------------------------------------------------------------------------------------------

    def now(self) -> Now:
        return new_tuple(Now, (self._clock.now_ms(), int(self._clock.monotonic_ms())))

    def arm(self, hosted: HostedShard[S]) -> None:
        """Set the timer so that it fires not later than the next work of `hosted`."""
        self._timer.fire_by(hosted.shard.next_deadline_ms())

    def wake(self) -> None:
        """Execute due deadlines, and set the timer for the next one."""
        now = self.now()
        for hosted in list(self._hosted.values()):
            if hosted.phase is Phase.ACTIVE and hosted.shard.next_deadline_ms() <= now.steady_ms:
                self._expire(hosted, now)
        deadlines = [hosted.shard.next_deadline_ms() for hosted in self._hosted.values() if hosted.phase is Phase.ACTIVE]
        if deadlines:
            self._timer.fire_by(min(deadlines))

    def _expire(self, hosted: HostedShard[S], now: Now) -> None:
        def expire() -> None:
            for outcome in hosted.shard.expire(now):  # other callbacks may run between two outcomes
                self.carry_out_quietly(hosted, outcome)

        with suppress(InvariantViolated):  # the error is logged, and the shard is removed; other shards keep their timers
            self.ask(hosted, expire)


async def _run(prepare: Callable[[], Awaitable[None]]) -> None:
    await prepare()
