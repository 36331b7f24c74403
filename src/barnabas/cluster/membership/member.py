"""A broker as a member of a cluster: it joins and leaves, is a candidate for controller, and does the controller's work.

Owns the reactions to events: watches of the store, the session, and reports of dead brokers. The cores (`Controller`,
`Election`) decide; this module handles time, threads and failures. `followed_store.py` keeps and writes the image,
`command_queue.py` executes the commands of handlers.

How it works
  `_look` is called after every event. It first updates the image. Then it takes the next due steps: claim the controller's
  entry, register, become active, and as controller settle the changes of other brokers, one step at a time.

Rules
  1. The broker passes roles on to its replicas only while it is ACTIVE in a session that counts as live. A session counts as
     live for its timeout minus a margin, from the last time at which the store certainly heard from this broker. The broker
     stands down after that time without a connection, after the session expired, or if the registration is gone. It takes its
     roles again when it is back.
  2. If the write of a plan fails, its topics are settled again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from uuid import UUID

from msgspec.structs import replace

from barnabas.cluster.controller.core import Controller
from barnabas.cluster.controller.dead_brokers import DeadBrokers
from barnabas.cluster.controller.registration import BrokerIdInUse
from barnabas.cluster.membership.candidate import Candidate
from barnabas.cluster.membership.command_queue import CommandQueue
from barnabas.cluster.membership.commands import Apply
from barnabas.cluster.membership.image_changes import all_replicas
from barnabas.cluster.membership.lost_partitions import FindLog
from barnabas.cluster.metadata import store_entries
from barnabas.cluster.metadata.declared import Kind
from barnabas.cluster.metadata.image import BrokerRegistration, BrokerState, Kept, MetadataImage
from barnabas.cluster.planning.instructions import UpdateBrokerConfig, UpdateDeclared
from barnabas.cluster.planning.plan import Plan
from barnabas.cluster.store.interface import (
    ROOT,
    MetadataStore,
    SessionEvent,
    SessionState,
    StoreConflict,
    StoreUnavailable,
)
from barnabas.config.broker import BrokerConfig
from barnabas.errors import KafkaError

OPEN_AGAIN_MS = 200  # wait after a lost connection during the start
RETRY_MS = 1_000  # wait after a failure whose end no event reports
logger = logging.getLogger(__name__)


class Member(CommandQueue):
    """See the module.

    Args:
        store: open; its watch events arrive on the event loop. Closed by `close`.
        static: the broker's configuration as given at start.
        new_id: function that returns an unused random topic id.
        incarnation: id of this process.
        thread: runs the calls of the store, one at a time; closed by `close`.
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
        super().__init__(store, Controller(static, (), new_id=new_id, alone=False, incarnation=incarnation), thread)
        self._session_events: list[SessionEvent] = []
        self._settled: Callable[[], Awaitable[None]] | None = None
        self._is_leaving = False
        self._dead = DeadBrokers()
        self._lapse: asyncio.TimerHandle | None = None
        self._refused: BrokerIdInUse | None = None
        self._controller_changed = True
        self.find_log: FindLog = lambda *_: None  # finds the log ends of partitions without a leader
        self._looking: asyncio.Task[None] | None = None

    # Joining and leaving

    async def open(self, cluster_id: str, *, timeout_ms: int = 0) -> str:
        """Read the store and return the cluster's id; a cluster without an id gets `cluster_id`.

        Raises:
            StoreUnavailable: the connection was lost meanwhile, and the store could not be read within `timeout_ms`.
        """
        self._store.watch_session(self._session_told)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        is_watched = False
        while True:
            try:
                if not is_watched:
                    await self._in_thread(self._store.watch, self._paths_told)
                    is_watched = True
                return await self._open(cluster_id)
            except StoreUnavailable as error:
                if loop.time() >= deadline:
                    raise
                logger.info("event=metadata-retry error=%r", str(error))
                await asyncio.sleep(OPEN_AGAIN_MS / 1000)

    async def _open(self, cluster_id: str) -> str:
        async with self._turn:
            while True:
                await self._follow()
                try:
                    await self._carry_out(self._core.set_cluster_id(cluster_id))
                    await self._carry_out(self._core.set_minimum())
                except StoreConflict as conflict:  # other brokers start at the same time
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
            settled: called once, just before the broker becomes active, when no partition relies on its former state any more.

        Raises:
            BrokerIdInUse: another live broker has the id, and still had it after `timeout_ms`.
            StoreUnavailable: the broker could not become active in that time.
        """
        self._registration = replace(registration, incarnation=self._core.incarnation)
        self._settled = settled
        self._instruction_queue.hand([UpdateBrokerConfig(self.config), UpdateDeclared(frozenset(Kind))])
        self._instruction_queue.start(apply)
        self._looking = asyncio.ensure_future(self._look_for_ever())
        self._wake.set()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self.wait_for(lambda _: not self.is_down)
        except TimeoutError:
            raise self._refused or StoreUnavailable(f"the broker did not become active within {timeout_ms} ms") from None

    async def leave(self, timeout_ms: int) -> None:
        """Make the controller move this broker's leaderships to other brokers, where possible; gives up after `timeout_ms`."""
        if self.is_down or self._closed or self._store.session.state is not SessionState.CONNECTED:
            return
        self._is_leaving = True
        with suppress(TimeoutError, StoreUnavailable, StoreConflict, KafkaError):
            async with asyncio.timeout(timeout_ms / 1000):
                await self._do(self._say_leaving, as_controller=False)
                await self.wait_for(lambda image: not self._leads_what_others_could(image))

    def _say_leaving(self) -> tuple[None, Plan]:
        is_known = self._own_registration is not None  # otherwise other brokers have taken over already
        return None, self._core.change_own_state(BrokerState.SHUTTING_DOWN) if is_known else Plan()

    def _leads_what_others_could(self, image: MetadataImage) -> bool:
        mine = self._core.broker_id
        active = {broker.broker_id for broker in image.brokers.values() if broker.is_active}
        return any(
            state.leader == mine and not active.isdisjoint(state.isr)
            for topic in image.topics.values()
            for state in topic.partitions
        )

    async def close(self) -> None:
        """Finish the running command, refuse waiting ones, remove this broker's entry as controller, and end the session."""
        self._closed = True
        if self._lapse is not None:
            self._lapse.cancel()
        await self._auto_topic_creation.close()
        if self._running:
            await asyncio.wait(self._running)
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        async with self._turn:
            if self._store.session.state is SessionState.CONNECTED:
                await self._in_thread(self._candidate.stop)
            await self._in_thread(self._store.close)
        await self._instruction_queue.close()
        self._thread.shutdown()

    @property
    def deleted_topics(self) -> set[UUID]:
        """Topics that were deleted while this broker was down: their logs must be removed."""
        return self._core.deleted_topics

    def forget_deleted_topics(self) -> None:
        """Record that the logs of these topics are removed; the store gets the record later."""
        self._wake.set()

    # Events and reports

    def _paths_told(self, paths: Sequence[str]) -> None:
        self._dirty.update(paths)
        self._controller_changed |= Candidate.concerns(paths)
        self._wake.set()

    def _session_told(self, event: SessionEvent) -> None:
        logger.info("event=metadata-session state=%s id=%#x", event.state.value, event.session_id)
        self._session_events.append(event)
        if self._lapse is not None:
            self._lapse.cancel()
            self._lapse = None
        if event.state is SessionState.SUSPENDED:
            believed_s = self._store.believed_ms / 1000
            self._lapse = asyncio.get_running_loop().call_later(believed_s, self._stand_down, "no connection to the store")
        elif event.state is SessionState.EXPIRED:
            self._stand_down("the session expired")
        self._wake.set()

    def tell_dead(self, broker_id: int, epoch: int) -> None:
        """Report that the process with this broker epoch is dead."""
        self._dead.tell(broker_id, epoch)
        self._wake.set()

    def tell_offline(self, partitions: Iterable[tuple[UUID, int]]) -> None:
        """Report a failed log directory that has, or would get, the logs of these partitions."""
        self.offline.add(partitions)
        self._wake.set()

    def take_back_dead(self, broker_id: int, epoch: int) -> None:
        """Withdraw the report: the process is alive."""
        self._dead.take_back(broker_id, epoch)

    # The loop

    async def _look_for_ever(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                async with self._turn:
                    await self._look()
            except (StoreUnavailable, StoreConflict, KafkaError) as error:
                logger.info("event=metadata-retry error=%r", str(error))
                loop.call_later(RETRY_MS / 1000, self._wake.set)
            except BrokerIdInUse as error:
                self._refuse(error)
                loop.call_later(RETRY_MS / 1000, self._wake.set)
            except Exception:
                logger.exception("event=metadata-look-failed")
                loop.call_later(RETRY_MS / 1000, self._wake.set)

    def _refuse(self, error: BrokerIdInUse) -> None:
        if self._refused is None:
            logger.warning("event=broker-id-in-use error=%r", str(error))
        self._refused = error
        self._dirty.add(store_entries.broker_path(self._core.broker_id))

    async def _look(self) -> None:
        """Update the image and take the next due step; repeat while there are steps."""
        while self._session_events:
            await self._in_thread(self._candidate.session_changed, self._session_events.pop(0))
        if self._store.session.state is not SessionState.CONNECTED:
            return
        await self._follow()
        if self._may_stand and (self._controller_changed or self._candidate.undecided):
            self._controller_changed = False
            await self._in_thread(self._candidate.settle)
        self._notice_controller()
        if self._settled is not None and self._may_be_active:
            settled, self._settled = self._settled, None
            await settled()
        self._maybe_take_roles()
        plan = self._next_step()
        if plan is None:
            return
        try:
            await self._carry_out(plan)
        except (StoreConflict, StoreUnavailable, KafkaError) as error:
            self._core.settle_all()  # the topics that the plan settled may not be settled
            if not isinstance(error, StoreConflict):
                raise
            await self._refused_write(error)
        self._wake.set()

    @property
    def _may_stand(self) -> bool:
        """Whether this broker may be a candidate; it must be registered: brokers find the controller by its registration."""
        return self.broker_epoch >= 0 and (self.is_controller or not self._is_leaving)

    @property
    def _may_be_active(self) -> bool:
        mine = self._own_registration
        return mine is not None and mine.state is BrokerState.FENCED and not self._core.has_old_duties

    def _next_step(self) -> Plan | None:
        """The next plan to write: first this broker's own registration, then changes that other brokers wait for."""
        own = None if self._registration is None or self._is_leaving else self._say_own(self._registration)
        return own or self._do_for_others() or self._forget_deletions()

    def _say_own(self, registration: BrokerRegistration) -> Plan | None:
        core, mine = self._core, self._own_registration
        if mine is None:
            if registration.kept is not Kept.ALL:
                # Read the store once more after the registration, so that no partition that relies on this broker is
                # overlooked.
                self._dirty.add(ROOT)
            return core.register(replace(registration, offline=self.offline.said))
        if self._may_be_active:
            return core.change_own_state(BrokerState.ACTIVE)
        if mine.state is BrokerState.ACTIVE and (ends := self.lost.log_ends(self.image, self.find_log)) != mine.log_ends:
            return core.say_log_ends(ends)
        return core.say_offline(self.offline.said) if mine.offline != self.offline.said else None

    def _forget_deletions(self) -> Plan | None:
        """Confirm that no logs of deleted topics are in use here, once all instructions were executed."""
        may_forget = self._instruction_queue.is_idle and self._registration is not None and not self.offline.has_failed
        plan = self._core.forget_deleted_topics() if may_forget and self._core.deleted_topics else None
        return plan if plan is not None and plan.operations else None  # an empty plan gives another broker its turn

    def _do_for_others(self) -> Plan | None:
        """Unregister dead brokers; as controller, settle the effects of brokers that came and went."""
        core = self._core
        if not self.is_down and not self._is_leaving and (unregistration := core.unregister_dead(self._dead)) is not None:
            return unregistration
        return core.settle() if core.election.is_leading and core.is_unsettled else None

    def _maybe_take_roles(self) -> None:
        """If this broker is active again, pass on the roles to its replicas."""
        mine = self._own_registration
        if mine is None or self._registration is None or self._is_leaving:
            return
        self._refused = None
        if mine.state is not BrokerState.ACTIVE or not self.is_down:
            return
        self.is_down = False
        self._registration = replace(self._registration, kept=Kept.ALL)  # later sessions of this process lose no logs
        logger.info("event=broker-active broker=%d epoch=%d", self._core.broker_id, self.broker_epoch)
        self._instruction_queue.hand(list(all_replicas(self.image, self._core.broker_id)))
        self._tell_changed()
