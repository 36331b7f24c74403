"""The asyncio shell of a coordinator: one shard, a core without I/O, for each partition of its internal topic that is led here.

Owns which shards are here, the writing of their records and the one timer that wakes them. What coordinators ask of it is what they do
to a name: `write`, `post` (the answer comes later) and `read`, as in Kafka's coordinator runtime; `write_at_once` and `read_at_once` for
who has no task to wait in.

Rules
  1. Whatever a shard wants written goes through `carry_out`: append, replay, wait for the commit, tell the shard, answer.
     Between a shard's decision and the replay of its records nothing else happens to it, so there are no locks.
  2. No answer leaves before every record that it may rest on is committed. A read therefore waits for the end of the log as it
     was when it was read (`settled`); that is a wait only while replication lags. Who has waited for `timeout_ms` is told
     COORDINATOR_NOT_AVAILABLE: his records may be committed all the same.
  3. If the log refuses records at once, nothing has changed, and the shard is told. If it takes them and then loses them, the
     shard knows too much: it is thrown away and read again from the log. So it is if it cannot take what the log took.
  4. Whoever gives up waiting (a closed connection) cancels a future, and the shard does not care.
  5. A broken invariant stops the shard: it is unloaded with its story in the log, and whoever asks finds no coordinator here.

Ugly: the log may commit at once or much later, so carrying out is split into a part that runs now and one that may run as a
callback.
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
    """What a shard has decided.

    Fields:
        commit: what is to be waited for (`wait_for`) before the response may leave, if anything is.
        follow: has the shard go on, as its records are committed; to be called, when the response has left or before.
    """

    response: Any
    commit: asyncio.Future[None] | None
    follow: Callable[[], None] | None


class CoordinatorRuntime(Generic[S]):
    """The shards of one coordinator on this broker.

    Args:
        kind: of what the shards are, for the lines of the log: "group".
        make: makes the empty shard of a partition.
        timeout_ms: how long one request waits for a commit.
        prepare: makes the topic and loads what is led here; called before the first request when nothing has been loaded.
        changed: told of a shard after each outcome that was carried out.
        loaded: told of a shard that has been read, before it serves.
        is_coming: whether a partition that is not here is about to be loaded.
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

    # -- which partitions are here --------------------------------------------------------------------------------------

    async def load(self, partition: int, ready: Callable[[], Awaitable[None]] | None = None) -> None:
        """This broker leads `partition` now: read it, and serve it from then on.

        Args:
            ready: returns when the log can be read to its end; what it raises ends the loading.
        """
        if partition in self._hosted or self._closed:
            return
        hosted = self._hosted[partition] = HostedShard(partition, self._make(partition, self.now()))
        read = False
        try:
            if ready is not None:
                await ready()
            async with self._reading:  # fifty at a time would be fifty times as much in a turn of the loop
                if self.is_hosted(hosted):
                    await read_into(hosted, self._log, self._kind, lambda: self.is_hosted(hosted))
            read = True
        finally:
            if not read and self._hosted.get(partition) is hosted:
                del self._hosted[partition]  # it cannot be read, and will not be served
        if self._hosted.get(partition) is not hosted:
            return  # taken away while loading
        hosted.phase = Phase.ACTIVE
        for outcome in hosted.shard.receive_loaded(self.now()):
            self.carry_out_quietly(hosted, outcome)
        if self._loaded is not None:
            self._loaded(hosted)
        self.arm(hosted)

    def unload(self, partition: int) -> None:
        """Another broker leads `partition`: whoever waits here is sent there."""
        hosted = self._hosted.pop(partition, None)
        if hosted is None:
            return
        self._answer(hosted.shard.unload(self.now()))
        hosted.uncommitted.clear()

    async def prepare(self) -> None:
        """See to it that the topic exists and is loaded, once, whoever asks."""
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
        """Send everybody away; nothing of this object runs afterwards."""
        self._closed = True
        for partition in list(self._hosted):
            self.unload(partition)
        self._timer.close()
        for task in [*self._tasks, *([self._preparing] if self._preparing else [])]:
            task.cancel()

    def partition_of(self, name: str) -> int:
        return partition_of(name, self._log.partition_count)

    def __len__(self) -> int:
        """How many groups, or transactional ids, are known here."""
        return sum(len(hosted.shard) for hosted in self._hosted.values())

    def is_hosted(self, hosted: HostedShard[S]) -> bool:
        """Whether this is not stale."""
        return self._hosted.get(hosted.partition) is hosted

    def __iter__(self) -> Iterator[HostedShard[S]]:
        """What is led here, loading or not."""
        return iter(list(self._hosted.values()))

    def active(self) -> dict[int, S]:
        """The shards that serve, by partition."""
        return {p: hosted.shard for p, hosted in self._hosted.items() if hosted.phase is Phase.ACTIVE}

    # -- carrying out ---------------------------------------------------------------------------------------------------

    def hosted_for(self, name: str) -> HostedShard[S]:
        """Where a group or a transactional id is coordinated.

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
        """Call the shard; a broken invariant is the end of it."""
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
        """Have the shard of a group or a transactional id decide, and answer when what it wants written is committed.

        Raises:
            KafkaError: as `hosted_for`, what the shard refuses with, and what the log refuses the records with.
            InvariantViolated: as `ask`.
        """
        hosted = self.hosted_for(name)
        return await self.perform(hosted, self.ask(hosted, lambda: call(hosted.shard, self.now())))

    def decide(self, name: str, call: Callable[[S, Now], CoordinatorResult]) -> Decision:
        """As `write`, for who has no task to wait in, or would answer before he has the shard go on."""
        hosted = self.hosted_for(name)
        outcome = self.ask(hosted, lambda: call(hosted.shard, self.now()))
        commit = self.carry_out(hosted, outcome, tells=False)
        if commit is None and not outcome.records and hosted.uncommitted:
            commit = hosted.uncommitted[-1]  # as in `settled`
        follow = partial(self._tell, hosted, outcome, None) if commit is None and outcome.written is not None else None
        return Decision(outcome.response, commit, follow)

    async def post(self, name: str, token: asyncio.Future[T], call: Callable[[S, Now], CoordinatorResult]) -> T:
        """As `write` where the answer comes by `token`, with this outcome or a later one."""
        hosted = self.hosted_for(name)
        self.carry_out_quietly(hosted, self.ask(hosted, lambda: call(hosted.shard, self.now())))
        return await token

    async def read(self, name: str, call: Callable[[S], T]) -> T:
        """Look something up in the shard of a group or a transactional id; what it rests on is committed when it is answered."""
        hosted = self.hosted_for(name)
        found = call(hosted.shard)
        await self.settled(hosted)
        return found

    def write_at_once(self, name: str, call: Callable[[S, Now], CoordinatorResult]) -> bool:
        """As `write`, but False where that would wait for a commit: the shard is to be asked again then, by `write`."""
        hosted = self.hosted_for(name)
        outcome = self.ask(hosted, lambda: call(hosted.shard, self.now()))
        return self.carry_out(hosted, outcome) is None and not hosted.uncommitted

    def read_at_once(self, name: str, call: Callable[[S], T]) -> T | None:
        """As `read`, but None where that would wait for a commit."""
        hosted = self.hosted_for(name)
        return None if hosted.uncommitted else call(hosted.shard)

    async def perform(self, hosted: HostedShard[S], outcome: CoordinatorResult) -> Any:
        """Carry out, and give the outcome's own response when that may leave."""
        commit = self.carry_out(hosted, outcome)
        if commit is not None:
            await self.wait_for(commit)
        elif not outcome.records:
            await self.settled(hosted)
        return outcome.response

    def end_transaction(self, partition: int, marker: EndMarker) -> asyncio.Future[None] | None:
        """The coordinator of a transaction that has records in `partition` has decided its end: write that down.

        As `CoordinatorLog.append_marker`; what comes back is to be waited for `shielded`.

        Raises:
            KafkaError: NOT_COORDINATOR and COORDINATOR_LOAD_IN_PROGRESS as `hosted_for`, and what the log refuses the marker with.
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
        """Do what `outcome` says. A future that is not done yet comes back if its records wait to be committed.

        Args:
            tells: the shard is told of records that are committed at once; else the caller does.

        Raises KafkaError if the records were refused; everybody who waits for this outcome has been told then.
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
        """Have the shard take what the log took."""
        producer_id = NO_PRODUCER if outcome.producer is None else outcome.producer.producer_id
        try:
            for record in outcome.records:
                hosted.shard.replay(record, producer_id)
        except Exception as error:
            self._part(hosted, outcome, error)
            raise

    def _part(self, hosted: HostedShard[S], outcome: CoordinatorResult, error: Exception) -> None:
        """A shard has failed to take what the log took: it is not to be asked any more."""
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
            return  # logged, and the shard is gone
        if follow_up is not None:
            self.carry_out_quietly(hosted, follow_up)

    def carry_out_quietly(self, hosted: HostedShard[S], outcome: CoordinatorResult) -> asyncio.Future[None] | None:
        """For what nobody waits for, or waits for by token: a refusal has been logged, and the tokens have been answered."""
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
        """Wait until what the log holds now is committed.

        Raises:
            KafkaError: NOT_COORDINATOR if it was lost, COORDINATOR_NOT_AVAILABLE if it takes too long.
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
        """See to it that the timer fires no later than `hosted` has something to do."""
        self._timer.fire_by(hosted.shard.next_deadline_ms())

    def wake(self) -> None:
        """Do what has become due, and set the timer for what will."""
        now = self.now()
        for hosted in list(self._hosted.values()):
            if hosted.phase is Phase.ACTIVE and hosted.shard.next_deadline_ms() <= now.steady_ms:
                self._expire(hosted, now)
        deadlines = [hosted.shard.next_deadline_ms() for hosted in self._hosted.values() if hosted.phase is Phase.ACTIVE]
        if deadlines:
            self._timer.fire_by(min(deadlines))

    def _expire(self, hosted: HostedShard[S], now: Now) -> None:
        def expire() -> None:
            for outcome in hosted.shard.expire(now):  # which may go on with what is due between two outcomes
                self.carry_out_quietly(hosted, outcome)

        with suppress(InvariantViolated):  # logged, and the shard is gone; the others still have their timers
            self.ask(hosted, expire)


async def _run(prepare: Callable[[], Awaitable[None]]) -> None:
    await prepare()
