"""A broker's part in a cluster: it follows the store, stands for controller, and where it is controller does that work.

Owns the session with the store and all that is written by way of it. The decisions are the core's (`Controller`, `Election`); here
they meet time, threads and what may fail.

How it works
  The store blocks, so everything asked of it runs on one thread; what watches and the session tell comes to the loop. Whoever reads or
  writes through the core holds the turn, one at a time: commands of handlers, and `_look`, which is called whenever something was told.
  `_look` first takes the image up to what was told, then does what follows: stands for controller, registers, makes itself active, and
  as controller settles what came of others, a step in each turn.

Rules
  1. What others wrote comes into the image by what watchers tell (`observation.py`); the difference goes to `apply`, in order.
  2. Roles of replicas are handed on only while this broker is ACTIVE in a session that is believed to live. A connection that stays
     lost for a third of the session's timeout is not believed any more: the server heard from this broker last up to two thirds
     before it was noticed. Then, or when the session expired, the broker stands down, and takes its roles up anew when it is back.
  3. A refused write of the controller on its fence ends its office; what it was asked meanwhile fails with NotController.
  4. After StoreUnavailable what was to be written is read before anything else is planned: then it is decided (rule 8 of the store).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

from barnabas.cluster import records
from barnabas.cluster.candidate import Candidate
from barnabas.cluster.changes import all_replicas, config_instructions, replica_instructions
from barnabas.cluster.commands import MAX_ATTEMPTS, Apply, Command, Commands, NotController, R
from barnabas.cluster.controller import Controller
from barnabas.cluster.election import WriteRefusedEvent
from barnabas.cluster.handing_on import HandingOn
from barnabas.cluster.instructions import ChangeReplica, StandDown, UpdateBrokerConfig
from barnabas.cluster.internal_topics import internal_topic
from barnabas.cluster.lost import FindLog, LostPartitions
from barnabas.cluster.metadata import BrokerRegistration, BrokerState, Kept, MetadataDelta, MetadataImage
from barnabas.cluster.observation import Observation, observe
from barnabas.cluster.plan import Plan
from barnabas.cluster.registration import BrokerIdInUse
from barnabas.cluster.store import (
    ROOT,
    CommitTooLarge,
    MetadataStore,
    SessionEvent,
    SessionState,
    StoreConflict,
    StoreUnavailable,
)
from barnabas.cluster.topics import NewTopic
from barnabas.config.broker import BrokerConfig
from barnabas.errors import Closed, ErrorCode, KafkaError

T = TypeVar("T")
MakeTopics = Callable[[Sequence[NewTopic]], Awaitable[dict[str, KafkaError | None]]]  # by way of the controller
MAX_READS = 5  # of what changes again while it is read, until it is taken as it was found
RETRY_MS = 1_000  # after a failure that nothing tells the end of
BALANCED_AT_ONCE = 1_000  # partitions given back to their preferred leaders in one round
logger = logging.getLogger(__name__)


class Member(Commands):
    """See the module.

    Args:
        store: open; what its watchers are told comes to the event loop. Closed by `close`.
        static: the broker's configuration as given at start.
        new_id: a random id that no topic has.
        incarnation: names this process.
        thread: where the store is used, one call at a time; closed by `close`.
    """

    def __init__(
        self,
        store: MetadataStore,
        static: BrokerConfig,
        *,
        new_id: Callable[[], UUID],
        incarnation: str,
        thread: Executor,
    ) -> None:
        super().__init__(Controller(static, (), new_id=new_id, alone=False, incarnation=incarnation))
        self._store = store
        self._thread = thread
        self._candidate = Candidate(store, self._core.election, lambda _: None, lambda _: None)
        self._turn = asyncio.Lock()
        self._dirty: set[str] = {ROOT}  # told to have changed, not read since
        self._session_events: list[SessionEvent] = []
        self._wake = asyncio.Event()
        self._handing_on = HandingOn(self._wake.set)
        self._lost = LostPartitions(self._core.broker_id)
        self._changed = asyncio.Event()  # set and replaced whenever the image changes
        self._registration: BrokerRegistration | None = None
        self._settled: Callable[[], Awaitable[None]] | None = None
        self.is_down = True  # no part of the cluster, or perhaps none any more: roles are not handed on
        self._is_leaving = False
        self._lapse: asyncio.TimerHandle | None = None
        self._refused: BrokerIdInUse | None = None
        self._office_changed = True
        self._was_leading = False
        self.make_topics: MakeTopics | None = None
        self.find_log: FindLog = lambda *_: None  # how far a log goes that nobody leads
        self._looking: asyncio.Task[None] | None = None
        self._running: set[asyncio.Task[object]] = set()
        self._closed = False

    # Joining and leaving

    async def open(self, cluster_id: str) -> str:
        """Read what the store holds; the cluster's id, which is `cluster_id` where it had none. Raises StoreUnavailable."""
        await self._in_thread(self._store.watch, self._paths_told)
        self._store.watch_session(self._session_told)
        async with self._turn:
            while True:
                await self._follow()
                try:
                    await self._carry_out(self._core.set_cluster_id(cluster_id))
                except StoreConflict as conflict:  # others start at the same time
                    self._dirty.add(conflict.path)
                else:
                    return self.image.cluster_id

    async def join(
        self,
        registration: BrokerRegistration,
        apply: Apply,
        settled: Callable[[], Awaitable[None]] | None = None,
        *,
        timeout_ms: int,
    ) -> None:
        """Register and become active; from now on instructions go to `apply`.

        Args:
            settled: called once, when nothing counts on what this broker was before and it is about to be active.

        Raises:
            BrokerIdInUse: another live broker has the id, and still had it after `timeout_ms`.
            StoreUnavailable: the broker could not become active in that time.
        """
        self._registration = replace(registration, incarnation=self._core.incarnation)
        self._settled = settled
        self._handing_on.hand([UpdateBrokerConfig(self.config)])
        self._handing_on.start(apply)
        self._looking = asyncio.ensure_future(self._look_for_ever())
        self._wake.set()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self.wait_for(lambda _: not self.is_down)
        except TimeoutError:
            raise self._refused or StoreUnavailable(f"the broker did not become active within {timeout_ms} ms") from None

    async def leave(self, timeout_ms: int) -> None:
        """Have the controller move away what this broker leads and others can lead; gives up after `timeout_ms`."""
        if self.is_down or self._closed or self._store.session.state is not SessionState.CONNECTED:
            return
        self._is_leaving = True
        with suppress(TimeoutError, StoreUnavailable, StoreConflict, KafkaError):
            async with asyncio.timeout(timeout_ms / 1000):
                await self._do(lambda: (None, self._core.change_own_state(BrokerState.SHUTTING_DOWN)), as_controller=False)
                await self.wait_for(lambda image: not self._leads_what_others_could(image))

    def _leads_what_others_could(self, image: MetadataImage) -> bool:
        mine = self._core.broker_id
        active = {broker.broker_id for broker in image.brokers.values() if broker.is_active}
        return any(
            state.leader == mine and not active.isdisjoint(state.isr)
            for topic in image.topics.values()
            for state in topic.partitions
        )

    async def close(self) -> None:
        """Finish the commands under way, give up the office and end the session."""
        self._closed = True
        if self._lapse is not None:
            self._lapse.cancel()
        if self._running:
            await asyncio.wait(self._running)
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        async with self._turn:
            if self._store.session.state is SessionState.CONNECTED:
                await self._in_thread(self._candidate.stop)
            await self._in_thread(self._store.close)
        await self._handing_on.close()
        self._thread.shutdown()

    @property
    def is_controller(self) -> bool:
        return self._core.election.is_leading

    @property
    def broker_epoch(self) -> int:
        """Of this broker's registration; -1 while it has none."""
        mine = self.image.brokers.get(self._core.broker_id)
        return mine.epoch if mine is not None and mine.incarnation == self._core.incarnation else -1

    @property
    def deleted_topics(self) -> set[UUID]:
        """Topics that were deleted while this broker was away: logs of theirs are to go."""
        return self._core.deleted_topics

    def forget_deleted_topics(self) -> None:
        """Their logs are gone, which the store is told in time."""
        self._wake.set()

    async def wait_for(self, condition: Callable[[MetadataImage], bool]) -> None:
        """Until the image is as wanted; the caller bounds the time."""
        while not condition(self.image):
            await self._changed.wait()

    # What is told

    def _paths_told(self, paths: Sequence[str]) -> None:
        self._dirty.update(paths)
        self._office_changed |= Candidate.concerns(paths)
        self._wake.set()

    def _session_told(self, event: SessionEvent) -> None:
        logger.info("event=metadata-session state=%s id=%#x", event.state.value, event.session_id)
        self._session_events.append(event)
        if self._lapse is not None:
            self._lapse.cancel()
            self._lapse = None
        if event.state is SessionState.SUSPENDED:
            believed_s = self._store.session_timeout_ms / 3000
            self._lapse = asyncio.get_running_loop().call_later(believed_s, self._stand_down, "no connection to the store")
        elif event.state is SessionState.EXPIRED:
            self._stand_down("the session expired")
        self._wake.set()

    def _stand_down(self, reason: str) -> None:
        if not self.is_down:
            self.is_down = True
            logger.warning("event=stood-down broker=%d reason=%r", self._core.broker_id, reason)
            self._handing_on.hand([StandDown()])

    # The work

    async def _look_for_ever(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                async with self._turn:
                    await self._look()
            except (StoreUnavailable, StoreConflict, KafkaError) as error:
                logger.info("event=metadata-retry detail=%r", str(error))
                loop.call_later(RETRY_MS / 1000, self._wake.set)
            except BrokerIdInUse as error:
                self._refuse(error)
                loop.call_later(RETRY_MS / 1000, self._wake.set)
            except Exception:
                logger.exception("event=metadata-look-failed")
                loop.call_later(RETRY_MS / 1000, self._wake.set)

    def _refuse(self, error: BrokerIdInUse) -> None:
        if self._refused is None:
            logger.warning("event=broker-id-in-use detail=%r", str(error))
        self._refused = error
        self._dirty.add(records.broker_path(self._core.broker_id))

    async def _look(self) -> None:
        """Take up what was told, and do the next thing that follows; once more as long as something did."""
        while self._session_events:
            await self._in_thread(self._candidate.session_changed, self._session_events.pop(0))
        if self._store.session.state is not SessionState.CONNECTED:
            return
        await self._follow()
        if self._may_stand and (self._office_changed or self._candidate.undecided):
            self._office_changed = False
            await self._in_thread(self._candidate.settle)
        self._notice_office()
        if self._settled is not None and self._may_be_active:
            settled, self._settled = self._settled, None
            await settled()
        plan = self._next_step()
        if plan is None:
            return
        try:
            await self._carry_out(plan)
        except StoreConflict as conflict:
            await self._refused_write(conflict)
        self._wake.set()

    @property
    def _may_stand(self) -> bool:
        """Only a registered broker is found by those who look for the controller."""
        return self.broker_epoch >= 0 and (self.is_controller or not self._is_leaving)

    @property
    def _may_be_active(self) -> bool:
        mine = self.image.brokers.get(self._core.broker_id)
        if mine is None or mine.incarnation != self._core.incarnation or mine.state is not BrokerState.FENCED:
            return False
        return not self._core.has_old_duties

    def _notice_office(self) -> None:
        """As a new controller, look at everything: nobody knows how far the last one came."""
        leads = self._core.election.is_leading
        if leads and not self._was_leading:
            self._core.settle_all()
        self._was_leading = leads

    def _next_step(self) -> Plan | None:
        core, mine = self._core, self.image.brokers.get(self._core.broker_id)
        if self._registration is not None and not self._is_leaving:
            if mine is None or mine.incarnation != core.incarnation:
                if self._registration.kept is not Kept.ALL:
                    # What the store had before it knew of this is read once more: nothing that counts on this broker is overlooked.
                    self._dirty.add(ROOT)
                return core.register(self._registration)
            self._refused = None
            if self._may_be_active:
                return core.change_own_state(BrokerState.ACTIVE)
            if mine.state is BrokerState.ACTIVE and self.is_down:
                self._take_roles()
            if mine.state is BrokerState.ACTIVE and (ends := self._lost.log_ends(self.image, self.find_log)) != mine.log_ends:
                return core.say_log_ends(ends)
        if core.deleted_topics and self._handing_on.is_idle and self._registration is not None:
            return core.forget_deleted_topics()
        if core.election.is_leading and core.is_unsettled:
            return core.settle()
        return None

    def _take_roles(self) -> None:
        self.is_down = False
        if self._registration is not None:  # what follows in this process is not lost when a session is
            self._registration = replace(self._registration, kept=Kept.ALL)
        logger.info("event=active broker=%d epoch=%d", self._core.broker_id, self.broker_epoch)
        self._handing_on.hand(list(all_replicas(self.image, self._core.broker_id)))
        self._tell_changed()

    async def _follow(self) -> None:
        """Take the image up to all that was told."""
        for attempt in range(MAX_READS):
            if not self._dirty:
                return
            paths, self._dirty = self._dirty, set()
            try:
                found = await self._in_thread(observe, self._store, self.image, paths)
            except BaseException:
                self._dirty |= paths
                raise
            if self._dirty and attempt < MAX_READS - 1:
                self._dirty |= paths  # it may not be one moment of the tree: once more, with what changed meanwhile
            else:
                self._observed(found)

    def _observed(self, found: Observation) -> None:
        before = self.image
        self._core.observe(found)
        self._image_changed(before, found.delta)

    async def _carry_out(self, plan: Plan) -> None:
        """Write a plan and make the next image; raises StoreConflict, StoreUnavailable, KafkaError."""
        if not plan.operations:
            return
        paths = [operation.path for operation in plan.operations]
        try:
            await self._in_thread(self._store.commit, plan.operations)
        except CommitTooLarge as error:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "The request changes too much at once; ask for less at a time."
            ) from error
        except StoreUnavailable:
            self._dirty.update(paths)
            self._wake.set()
            raise
        before = self.image
        self._core.committed(plan)
        self._image_changed(before, plan.delta)

    def _image_changed(self, before: MetadataImage, delta: MetadataDelta) -> None:
        self._tell_changed()
        topics = [*delta.deleted_topics, *(topic.name for topic in delta.topics)]
        self._lost.follow(self.image, topics)
        if self._registration is None:
            return  # nothing is served yet: who serves begins with the image as it is when this broker joins
        core, image = self._core, self.image
        changes = replica_instructions(before, image, topics, core.broker_id, core.topic_config)
        changes += config_instructions(before, image, delta, core)
        if self.is_down:
            changes = [each for each in changes if not isinstance(each, ChangeReplica)]
        if changes:
            self._handing_on.hand(changes)

    def _tell_changed(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _refused_write(self, conflict: StoreConflict) -> None:
        """Somebody else wrote; raises NotController where that was another controller."""
        logger.info("event=metadata-conflict detail=%r", str(conflict))
        self._dirty.add(conflict.path)
        if conflict.path == records.BROKER_EPOCH:  # somebody began anew
            self._dirty.update(map(records.broker_path, self.image.brokers))
        if conflict.path == records.CONTROLLER_EPOCH:
            await self._in_thread(self._candidate.tell, WriteRefusedEvent())
            self._notice_office()

    # Commands

    async def _run(self, command: Command[R]) -> R:
        return await self._do(command, as_controller=True)

    async def auto_create(self, names: Iterable[str]) -> dict[str, KafkaError | None]:
        wanted = tuple(names)
        if self.is_controller or self.make_topics is None:
            return await super().auto_create(wanted)
        told: dict[str, KafkaError | None] = dict.fromkeys(wanted)
        missing = [name for name in told if name not in self.image.topics]
        requests = [internal_topic(name, self.config, alone=False) or NewTopic(name) for name in missing]
        return told | (await self.make_topics(requests) if requests else {})

    async def take_producer_ids(self) -> range:
        return await self._do(self._core.take_producer_ids, as_controller=False)

    async def _plan_only(self, command: Command[R]) -> R:
        async with self._turn:
            if not self.is_controller:
                raise NotController
            return command()[0]

    async def balance(self) -> None:
        """Give partitions back to their preferred leaders, where this broker is controller."""
        if self.is_controller:
            try:
                await self._do(lambda: (None, self._core.balance_leaders(BALANCED_AT_ONCE)), as_controller=True)
            except NotController:
                return
            except KafkaError as error:  # the next time will do
                logger.warning("event=leaders-not-balanced detail=%r", str(error))

    async def _do(self, command: Command[R], *, as_controller: bool) -> R:
        """Carry out a command to the end, even when who asked for it went away."""
        if self._closed:
            raise Closed("the metadata store is closed")
        task = asyncio.ensure_future(self._in_turn(command, as_controller=as_controller))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    async def _in_turn(self, command: Command[R], *, as_controller: bool) -> R:
        handed: Awaitable[None]
        async with self._turn:
            answer = await self._attempt(command, as_controller=as_controller)
            handed = self._handing_on.done()
        await handed
        return answer

    async def _attempt(self, command: Command[R], *, as_controller: bool) -> R:
        for _ in range(MAX_ATTEMPTS):
            try:
                await self._follow()
                self._notice_office()
                if as_controller and not self.is_controller:
                    raise NotController
                answer, plan = command()
                await self._carry_out(plan)
            except StoreConflict as conflict:
                await self._refused_write(conflict)
                continue
            except StoreUnavailable as error:
                logger.warning("event=metadata-unavailable detail=%r", str(error))
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "The metadata store does not answer.") from error
            return answer
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the metadata changed too often meanwhile")

    async def _in_thread(self, function: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)
