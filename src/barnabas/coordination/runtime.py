"""The asyncio shell of the coordinators: one `GroupShard` for each partition of `__consumer_offsets` that is led here.

Owns which shards are here, the writing of their records and the one timer that wakes them.

Rules
  1. Whatever a shard wants written goes through `_carry_out`: append, replay, wait for the commit, tell the shard, answer.
     Between a shard's decision and the replay of its records nothing else happens to it, so there are no locks.
  2. No answer leaves before every record that it may rest on is committed. A read therefore waits for the end of the log as it
     was when it was read; that is a wait only while replication lags.
  3. If the log refuses records at once, nothing has changed, and the shard is told. If it takes them and then loses them, the
     shard knows too much: it is thrown away and read again from the log.
  4. Whoever gives up waiting (a closed connection) cancels a future, and the shard does not care.
  5. A broken invariant stops the shard: it is unloaded with its story in the log, and its groups find no coordinator here.

Ugly: the log may commit at once or much later, so carrying out is split into a part that runs now and one that may run as a
callback.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol, TypeVar

from barnabas.clock import Clock
from barnabas.coordination.outcome import Caller, GroupConfig, Now, Outcome, response_error_of
from barnabas.coordination.partitioner import partition_of
from barnabas.coordination.records import Record
from barnabas.coordination.shard import GroupShard
from barnabas.errors import ErrorCode, InvariantViolated, KafkaError, MalformedMessage
from barnabas.protocol.messages.describe_groups import DescribedGroup
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.protocol.messages.list_groups import ListedGroup
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

T = TypeVar("T")
log = logging.getLogger(__name__)

RECORDS_BETWEEN_BREATHS = 2_000  # replayed while loading before others get their turn: about 7 ms


class CoordinatorLog(Protocol):
    """`__consumer_offsets` as the coordinators see it; the server makes it of partitions."""

    @property
    def partition_count(self) -> int:
        """How many partitions the topic has, or will have once it is made."""
        ...

    def append(self, partition: int, records: list[Record], now_ms: int) -> Awaitable[None]:
        """Append `records` as one batch. What comes back is done when they are committed.

        A refusal, after which nothing was written, is a KafkaError raised at once or a future that holds it when it is returned.
        A KafkaError that comes later means that what was written may be lost.
        """
        ...

    def read_all(self, partition: int) -> Iterable[Record]:
        """All records of `partition`, oldest first."""
        ...


class Phase(Enum):
    LOADING = "loading"
    ACTIVE = "active"


@dataclass(slots=True, eq=False)
class _Led:
    """A partition that is led here; a new one for each time of loading, so that what belongs to a former one is stale."""

    partition: int
    shard: GroupShard
    phase: Phase = Phase.LOADING
    uncommitted: list[asyncio.Future[None]] = field(default_factory=list)  # appends not yet committed, oldest first


class GroupCoordinator:
    """The groups of one broker.

    Args:
        prepare: makes the topic and loads what is led here; called before the first request when nothing has been loaded.
    """

    def __init__(
        self, log_: CoordinatorLog, config: GroupConfig, clock: Clock, prepare: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self._log = log_
        self._config = config
        self._clock = clock
        self._prepare = prepare
        self._preparing: asyncio.Task[None] | None = None
        self._led: dict[int, _Led] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_ms = 0
        self._closed = False

    # -- which partitions are here --------------------------------------------------------------------------------------

    async def load(self, partition: int, ready: Callable[[], Awaitable[None]] | None = None) -> None:
        """This broker leads `partition` now: read it, and serve its groups from then on.

        Args:
            ready: returns when the log can be read to its end; what it raises ends the loading.
        """
        if partition in self._led or self._closed:
            return
        led = self._led[partition] = _Led(partition, GroupShard(self._config, self._now()))
        read = False
        try:
            if ready is not None:
                await ready()
            if self._led.get(partition) is led:
                await self._replay_all(led)
            read = True
        finally:
            if not read and self._led.get(partition) is led:
                del self._led[partition]  # it cannot be read, and will not be served
        if self._led.get(partition) is not led:
            return  # taken away while loading
        led.phase = Phase.ACTIVE
        for outcome in led.shard.receive_loaded(self._now()):
            self._carry_out_quietly(led, outcome)
        self._arm(led)

    async def _replay_all(self, led: _Led) -> None:
        unreadable = 0
        for count, record in enumerate(self._log.read_all(led.partition), start=1):
            try:
                led.shard.replay(record)
            except MalformedMessage as error:
                unreadable += 1
                log.warning("event=group_record_unreadable partition=%d error=%s", led.partition, error)
            if count % RECORDS_BETWEEN_BREATHS == 0:
                await asyncio.sleep(0)
                if self._led.get(led.partition) is not led:
                    return
        groups = len(led.shard.groups)
        log.info("event=groups_loaded partition=%d groups=%d unreadable=%d", led.partition, groups, unreadable)

    def unload(self, partition: int) -> None:
        """Another broker leads `partition`: whoever waits here is sent there."""
        led = self._led.pop(partition, None)
        if led is None:
            return
        self._answer(led.shard.unload(self._now()))
        led.uncommitted.clear()

    async def prepare(self) -> None:
        """See to it that the topic exists and is loaded, once, whoever asks."""
        if self._prepare is None or self._led or self._closed:
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
        for partition in list(self._led):
            self.unload(partition)
        if self._timer is not None:
            self._timer.cancel()
        for task in [*self._tasks, *([self._preparing] if self._preparing else [])]:
            task.cancel()

    def partition_of(self, group_id: str) -> int:
        return partition_of(group_id, self._log.partition_count)

    @property
    def group_count(self) -> int:
        return sum(len(led.shard.groups) for led in self._led.values())

    def committed_offsets(self) -> Iterator[tuple[str, str, int, int]]:
        """Group, topic, partition and offset of every commit, for those who measure lag."""
        for led in self._led.values():
            yield from led.shard.offsets.all()

    @property
    def shards(self) -> dict[int, GroupShard]:
        """The shards that serve, by partition."""
        return {p: led.shard for p, led in self._led.items() if led.phase is Phase.ACTIVE}

    # -- membership -----------------------------------------------------------------------------------------------------

    async def join(self, request: JoinGroupRequest, caller: Caller) -> JoinGroupResponse:
        await self.prepare()
        led = self._led_for(request.group_id)
        token: asyncio.Future[JoinGroupResponse] = asyncio.get_running_loop().create_future()
        self._carry_out_quietly(led, self._ask(led, lambda: led.shard.join(request, caller, token, self._now())))
        return await token

    async def sync(self, request: SyncGroupRequest) -> SyncGroupResponse:
        led = self._led_for(request.group_id)
        token: asyncio.Future[SyncGroupResponse] = asyncio.get_running_loop().create_future()
        self._carry_out_quietly(led, self._ask(led, lambda: led.shard.sync(request, token, self._now())))
        return await token

    async def heartbeat(self, request: HeartbeatRequest) -> HeartbeatResponse:
        led = self._led_for(request.group_id)
        response = led.shard.heartbeat(request, self._now())
        self._arm(led)
        return response

    async def leave(self, request: LeaveGroupRequest) -> LeaveGroupResponse:
        led = self._led_for(request.group_id)
        outcome = self._ask(led, lambda: led.shard.leave(request, self._now()))
        response: LeaveGroupResponse = await self._perform(led, outcome)
        return response

    # -- offsets --------------------------------------------------------------------------------------------------------

    async def commit_offsets(self, request: OffsetCommitRequest, api_version: int) -> OffsetCommitResponse:
        await self.prepare()
        led = self._led_for(request.group_id)
        response: OffsetCommitResponse = await self._perform(led, led.shard.commit_offsets(request, api_version, self._now()))
        return response

    async def fetch_offsets(self, request: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
        await self.prepare()
        led = self._led_for(request.group_id)
        response = led.shard.fetch_offsets(request)
        await self._settled(led)
        return response

    async def delete_offsets(self, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
        led = self._led_for(request.group_id)
        response: OffsetDeleteResponse = await self._perform(led, led.shard.delete_offsets(request))
        return response

    async def delete_topics(self, names: Iterable[str]) -> None:
        """Topics were deleted: forget the offsets that were committed for them."""
        gone = list(names)
        active = [led for led in self._led.values() if led.phase is Phase.ACTIVE]
        commits = [self._carry_out(led, led.shard.delete_topics(gone)) for led in active]
        for commit in commits:
            if commit is not None:
                await _shielded(commit)

    # -- groups ---------------------------------------------------------------------------------------------------------

    async def delete_group(self, group_id: str) -> None:
        led = self._led_for(group_id)
        await self._perform(led, led.shard.delete_group(group_id))

    async def describe(self, group_id: str) -> DescribedGroup:
        led = self._led_for(group_id)
        described = led.shard.describe(group_id)
        await self._settled(led)
        return described

    async def list_groups(self) -> list[ListedGroup]:
        """Every group that is coordinated here; raises COORDINATOR_LOAD_IN_PROGRESS while any part of them is not known yet."""
        if any(led.phase is Phase.LOADING for led in self._led.values()):
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        leds = list(self._led.values())
        listed = [
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                group_state=group.state_name,
                group_type=group.group_type.value,
            )
            for led in leds
            for group in led.shard.groups.values()
        ]
        for led in leds:
            await self._settled(led)
        return listed

    # -- carrying out ---------------------------------------------------------------------------------------------------

    def _led_for(self, group_id: str) -> _Led:
        if self._closed:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        led = self._led.get(self.partition_of(group_id))
        if led is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        if led.phase is Phase.LOADING:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return led

    def _ask(self, led: _Led, call: Callable[[], T]) -> T:
        """Call the shard; a broken invariant is the end of it."""
        try:
            return call()
        except InvariantViolated as error:
            log.error("event=group_shard_stopped partition=%d error=%s story=%s", led.partition, error, led.shard.story)
            if self._led.get(led.partition) is led:
                self.unload(led.partition)
            raise

    async def _perform(self, led: _Led, outcome: Outcome) -> Any:
        """Carry out, and give the outcome's own response when that may leave."""
        commit = self._carry_out(led, outcome)
        if commit is not None:
            await _shielded(commit)
        return outcome.response

    def _carry_out(self, led: _Led, outcome: Outcome) -> asyncio.Future[None] | None:
        """Do what `outcome` says. A future that is not done yet comes back if its records wait to be committed.

        Raises KafkaError if the records were refused; everybody who waits for this outcome has been told then.
        """
        for note in outcome.notes:
            log.info("event=group %s", note)
        commit: asyncio.Future[None] | None = None
        if outcome.records:
            try:
                commit = self._append(led, outcome)
            except KafkaError as error:
                self._refuse(led, outcome, error.code)
                raise KafkaError(response_error_of(error.code)) from error
        if commit is None:
            self._finish(led, outcome)
        else:
            commit.add_done_callback(lambda done: self._committed(led, outcome, done))
        self._arm(led)
        return commit

    def _append(self, led: _Led, outcome: Outcome) -> asyncio.Future[None] | None:
        """Append and replay; None if everything is committed already. Raises KafkaError if the log took nothing."""
        commit = asyncio.ensure_future(self._log.append(led.partition, outcome.records, self._clock.now_ms()))
        done = commit.done()
        if done:
            commit.result()
        if outcome.replays:
            for record in outcome.records:
                led.shard.replay(record)
        if done:
            return None
        led.uncommitted.append(commit)
        return commit

    def _committed(self, led: _Led, outcome: Outcome, commit: asyncio.Future[None]) -> None:
        if commit in led.uncommitted:
            led.uncommitted.remove(commit)
        if self._led.get(led.partition) is not led:
            self._fail(outcome, KafkaError(ErrorCode.NOT_COORDINATOR))
        elif commit.cancelled() or commit.exception() is not None:
            self._fail(outcome, KafkaError(ErrorCode.NOT_COORDINATOR))
            self._reload(led, "cancelled" if commit.cancelled() else str(commit.exception()))
        else:
            self._finish(led, outcome)

    def _finish(self, led: _Led, outcome: Outcome) -> None:
        self._answer(outcome)
        if outcome.written is not None:
            self._tell(led, outcome, None)

    def _refuse(self, led: _Led, outcome: Outcome, code: ErrorCode) -> None:
        log.warning("event=group_write_refused partition=%d error=%s", led.partition, code.name)
        self._fail(outcome, KafkaError(response_error_of(code)))
        if outcome.written is not None:
            self._tell(led, outcome, code)

    def _tell(self, led: _Led, outcome: Outcome, code: ErrorCode | None) -> None:
        event = outcome.written
        if event is None:
            return
        try:
            follow_up = self._ask(led, lambda: led.shard.receive_written(event, code, self._now()))
        except InvariantViolated:
            return  # logged, and the shard is gone
        self._carry_out_quietly(led, follow_up)

    def _carry_out_quietly(self, led: _Led, outcome: Outcome) -> None:
        """For what nobody waits for, or waits for by token: a refusal has been logged, and the tokens have been answered."""
        try:
            self._carry_out(led, outcome)
        except KafkaError as error:
            log.debug("event=group_follow_up_refused partition=%d error=%s", led.partition, error)

    def _answer(self, outcome: Outcome) -> None:
        for token, response in outcome.replies:
            if isinstance(token, asyncio.Future) and not token.done():
                token.set_result(response)

    def _fail(self, outcome: Outcome, error: KafkaError) -> None:
        for token, _ in outcome.replies:
            if isinstance(token, asyncio.Future) and not token.done():
                token.set_exception(error)

    def _reload(self, led: _Led, reason: str) -> None:
        log.warning("event=group_write_lost partition=%d error=%s", led.partition, reason)
        self.unload(led.partition)
        task = asyncio.ensure_future(self.load(led.partition))
        self._tasks[task] = None
        task.add_done_callback(self._loaded_again)

    def _loaded_again(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and task.exception() is not None:
            log.error("event=groups_not_loaded error=%s", task.exception())

    async def _settled(self, led: _Led) -> None:
        """Wait until what the log holds now is committed; raises NOT_COORDINATOR if it was lost."""
        if led.uncommitted:
            await _shielded(led.uncommitted[-1])

    # -- time -----------------------------------------------------------------------------------------------------------

    def _now(self) -> Now:
        return Now(self._clock.now_ms(), int(self._clock.monotonic_ms()))

    def _arm(self, led: _Led) -> None:
        """See to it that the timer fires no later than `led` has something to do."""
        deadline = led.shard.next_deadline_ms()
        if self._timer is None or deadline < self._timer_at_ms:
            self._set_timer(deadline)

    def _set_timer(self, deadline_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at_ms = deadline_ms
        delay = max(0.0, deadline_ms - self._clock.monotonic_ms()) / 1000
        self._timer = asyncio.get_running_loop().call_later(delay, self._fire)

    def _fire(self) -> None:
        self._timer = None
        now = self._now()
        for led in list(self._led.values()):
            if led.phase is Phase.ACTIVE and led.shard.next_deadline_ms() <= now.steady_ms:
                self._expire(led, now)
        deadlines = [led.shard.next_deadline_ms() for led in self._led.values() if led.phase is Phase.ACTIVE]
        if deadlines:
            self._set_timer(min(deadlines))

    def _expire(self, led: _Led, now: Now) -> None:
        try:
            outcomes = self._ask(led, lambda: led.shard.expire(now))
        except InvariantViolated:
            return  # logged, and the shard is gone; the others still have their timers
        for outcome in outcomes:
            self._carry_out_quietly(led, outcome)


async def _run(prepare: Callable[[], Awaitable[None]]) -> None:
    await prepare()


async def _shielded(commit: asyncio.Future[None]) -> None:
    """Wait for a commit that others wait for too; a log that lost it is another coordinator's business."""
    try:
        await asyncio.shield(commit)
    except KafkaError as error:
        raise KafkaError(ErrorCode.NOT_COORDINATOR) from error
    except asyncio.CancelledError:
        if commit.cancelled():  # and not whoever waits for it
            raise KafkaError(ErrorCode.NOT_COORDINATOR) from None
        raise
