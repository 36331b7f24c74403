"""One broker's copy of the cluster's metadata: reads it from the store, follows its changes, and writes through it.

Owns the session with the store, the image of its content, and the queue of instructions to this broker's replicas. `Member` and
the command queue decide what to write.

How it works
  The store blocks, so all calls run on one thread; events of watches and of the session go to the loop. Only one task at a time
  reads or writes through the core.

Rules
  1. Changes of other writers enter the image through watch events (`metadata/observation.py`); the difference goes to `apply`,
     in order.
  2. Roles of replicas are passed on only while this broker is ACTIVE in a session that counts as live (`is_down` is false).
  3. After StoreUnavailable this module reads the entries of the failed write before the next plan: only this read shows their
     final state (rule 8 of the store).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

from barnabas.cluster.controller.core import Controller
from barnabas.cluster.controller.election import WriteRefusedEvent
from barnabas.cluster.membership.candidate import Candidate
from barnabas.cluster.membership.commands import ChangesTooMuch, Commands
from barnabas.cluster.membership.image_changes import config_instructions, replica_instructions
from barnabas.cluster.membership.instruction_queue import InstructionQueue
from barnabas.cluster.membership.lost_partitions import LostPartitions
from barnabas.cluster.membership.offline_replicas import OfflineReplicas
from barnabas.cluster.metadata import store_entries
from barnabas.cluster.metadata.image import BrokerRegistration, MetadataDelta, MetadataImage
from barnabas.cluster.metadata.observation import Observation, observe
from barnabas.cluster.planning.instructions import ChangeReplica, StandDown
from barnabas.cluster.planning.plan import Plan
from barnabas.cluster.store.interface import ROOT, CommitTooLarge, MetadataStore, StoreConflict, StoreUnavailable

T = TypeVar("T")
MAX_READS = 5  # attempts if entries change during a read; then the last result is used
logger = logging.getLogger(__name__)


class FollowedStore(Commands):
    """See the module.

    Args:
        store: open; its watch events arrive on the event loop.
        core: plans changes and holds the image.
        thread: runs the calls of the store, one at a time.
    """

    def __init__(self, store: MetadataStore, core: Controller, thread: Executor) -> None:
        super().__init__(core)
        self._store = store
        self._thread = thread
        self._candidate = Candidate(store, core.election)
        self._turn = asyncio.Lock()
        self._dirty: set[str] = {ROOT}  # changed paths that have not been read yet
        self._wake = asyncio.Event()
        self._instruction_queue = InstructionQueue(self._wake.set)
        self._changed = asyncio.Event()  # set and replaced whenever the image changes
        self._registration: BrokerRegistration | None = None
        self._was_leading = False
        self.lost = LostPartitions(core.broker_id)
        self.offline = OfflineReplicas()
        self.is_down = True  # the session may have ended: replicas get no roles

    @property
    def is_controller(self) -> bool:
        return self._core.election.is_leading

    @property
    def broker_epoch(self) -> int:
        """Epoch of this broker's registration; -1 without one."""
        mine = self._own_registration
        return -1 if mine is None else mine.epoch

    @property
    def _own_registration(self) -> BrokerRegistration | None:
        """This process's registration in the image; None if there is none, or if it belongs to another process."""
        mine = self.image.brokers.get(self._core.broker_id)
        return mine if mine is not None and mine.incarnation == self._core.incarnation else None

    async def wait_for(self, condition: Callable[[MetadataImage], bool]) -> None:
        """Wait until the image meets a condition; the caller limits the time."""
        while not condition(self.image):
            await self._changed.wait()

    async def position(self) -> int:
        position = await self._in_thread(self._store.position)
        async with self._turn:
            await self._follow()
        return position

    def _stand_down(self, reason: str) -> None:
        if not self.is_down:
            self.is_down = True
            logger.warning("event=broker-stood-down broker=%d reason=%r", self._core.broker_id, reason)
            self._instruction_queue.hand([StandDown()])

    # Reading and writing

    async def _follow(self) -> None:
        """Update the image with all reported changes."""
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
                self._dirty |= paths  # the reads may be of different moments: repeat with the paths that changed in the meantime
            else:
                self._observed(found)

    def _observed(self, found: Observation) -> None:
        before = self.image
        self._core.observe(found)
        if self.broker_epoch < 0:
            self._stand_down("its registration is gone")
        self._image_changed(before, found.delta)

    async def _carry_out(self, plan: Plan) -> None:
        """Write a plan and create the next image; raises StoreConflict, StoreUnavailable, KafkaError."""
        if not plan.operations:
            return
        paths = [operation.path for operation in plan.operations]
        try:
            await self._in_thread(self._store.commit, plan.operations)
        except CommitTooLarge as error:
            raise ChangesTooMuch from error
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
        self.lost.follow(self.image, topics)
        self.offline.forget(topic_id for topic_id in delta.deletions if topic_id not in self.image.deletions)
        if self._registration is None:
            return  # nothing is served yet: serving begins with the image at the time of joining
        core, image = self._core, self.image
        changes = config_instructions(before, image, delta, core)
        changes += replica_instructions(before, image, topics, core.broker_id, core.topic_config)
        if self.is_down:
            changes = [each for each in changes if not isinstance(each, ChangeReplica)]
        if changes:
            self._instruction_queue.hand(changes)

    def _tell_changed(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _refused_write(self, conflict: StoreConflict) -> None:
        """Handle a conflict with another writer; raises NotController if it was another controller."""
        logger.info("event=metadata-conflict error=%r", str(conflict))
        self._dirty.add(conflict.path)
        if conflict.path == store_entries.BROKER_EPOCH:  # another broker became controller
            self._dirty.update(map(store_entries.broker_path, self.image.brokers))
        if conflict.path == store_entries.CONTROLLER_EPOCH:
            await self._in_thread(self._candidate.tell, WriteRefusedEvent())
            self._notice_controller()

    def _notice_controller(self) -> None:
        """After becoming controller, check every topic: the progress of the last controller is unknown."""
        leads = self._core.election.is_leading
        if leads and not self._was_leading:
            self._core.settle_all()
        self._was_leading = leads

    async def _in_thread(self, function: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)
