"""Executes the controller's commands on a broker of a cluster, one after the other, if this broker is controller.

Rules
  1. A started command runs to its end, even if its caller was cancelled.
  2. If the fence refuses a write, this broker is not controller any more; its waiting commands fail with NotController.
  3. The caller gets the answer after this broker has executed the command's instructions.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Executor
from functools import partial

from barnabas.cluster.controller.core import Controller
from barnabas.cluster.controller.returned_brokers import MOVED_AT_ONCE, ReturnedBrokers
from barnabas.cluster.membership.auto_topic_creation import AutoTopicCreation
from barnabas.cluster.membership.commands import MAX_ATTEMPTS, TOO_OFTEN, Command, NotController, R
from barnabas.cluster.membership.followed_store import FollowedStore
from barnabas.cluster.planning.topics import NewTopic
from barnabas.cluster.store.interface import MetadataStore, SessionState, StoreConflict, StoreUnavailable
from barnabas.errors import Closed, ErrorCode, KafkaError

# Creates topics through the controller; name -> error.
MakeTopics = Callable[[Sequence[NewTopic]], Awaitable[dict[str, KafkaError | None]]]
BALANCED_AT_ONCE = 1_000  # partitions that go back to their preferred leaders in one round
NO_ANSWER = "The metadata store does not answer."
logger = logging.getLogger(__name__)


class CommandQueue(FollowedStore):
    """See the module; the arguments are those of `FollowedStore`."""

    def __init__(self, store: MetadataStore, core: Controller, thread: Executor) -> None:
        super().__init__(store, core, thread)
        self.make_topics: MakeTopics | None = None
        self._running: set[asyncio.Task[object]] = set()
        self._auto_topic_creation = AutoTopicCreation(self._make_missing)
        self._closed = False
        self._returned_brokers = ReturnedBrokers()

    async def _run(self, command: Command[R]) -> R:
        return await self._do(command, as_controller=True)

    def is_being_made(self, name: str) -> bool:
        return self._auto_topic_creation.is_under_way(name)

    async def auto_create(self, names: Iterable[str]) -> dict[str, KafkaError | None]:
        """As on a standalone broker, but with a short wait: a topic that is still missing afterwards may exist at the next
        request."""
        if self._closed:
            raise Closed("the metadata store is closed")
        return await self._auto_topic_creation.want(names)

    async def _make_missing(self, wanted: Sequence[str]) -> dict[str, KafkaError | None]:
        if self.is_controller or self.make_topics is None:
            return await super().auto_create(wanted)
        told: dict[str, KafkaError | None] = dict.fromkeys(wanted)
        requests = self._core.missing_topics(told)
        return told | (await self.make_topics(requests) if requests else {})

    async def take_producer_ids(self) -> range:
        return await self._do(self._core.take_producer_ids, as_controller=False)

    async def _plan_only(self, command: Command[R]) -> R:
        async with self._turn:
            if not self.is_controller:
                raise NotController
            return command()[0]

    async def balance(self) -> None:
        """Move leadership back to preferred leaders, if this broker is controller."""
        left, but = BALANCED_AT_ONCE, self._returned_brokers.on_probation(_now_ms())
        while left > 0 and self.is_controller:
            try:
                moved = await self._do(partial(self._core.balance_leaders, left, but), as_controller=True)
            except NotController:
                return
            except KafkaError as error:  # the next round retries
                logger.warning("event=leaders-not-balanced error=%r", str(error))
                return
            if not moved:
                return
            left -= moved

    async def catch_up(self) -> None:
        """Wait until all earlier changes of the store are in the image and executed on this broker.

        Raises:
            StoreUnavailable: the store does not answer.
        """
        task = asyncio.ensure_future(self._catch_up())
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(_taken)
        await asyncio.shield(task)

    async def _catch_up(self) -> None:
        async with self._turn:
            if self._closed:
                return
            await self._in_thread(self._store.catch_up)
            await self._follow()
            handed = self._instruction_queue.done()
        await handed

    async def give_back(self) -> None:
        """Move leadership back to brokers that came back, see `controller/returned_brokers.py`; call it every second."""
        now_ms = _now_ms()
        due = self._returned_brokers.look(self.image, now_ms)
        if not due or not self.is_controller:
            return
        try:
            moved, lagging = await self._do(partial(self._core.give_back, due, MOVED_AT_ONCE), as_controller=True)
        except KafkaError as error:  # the next second retries
            logger.info("event=leaders-not-given-back error=%r", str(error))
            return
        for broker_id in lagging:
            self._returned_brokers.put_off(broker_id, now_ms)
        if moved:
            logger.info("event=leaders-given-back partitions=%d brokers=%r", moved, sorted(due - lagging))
            return
        for broker_id in due - lagging:
            self._returned_brokers.settle(broker_id)

    async def _do(self, command: Command[R], *, as_controller: bool) -> R:
        """Execute a command to its end, even if its caller was cancelled."""
        if self._closed:
            raise Closed("the metadata store is closed")
        task = asyncio.ensure_future(self._in_turn(command, as_controller=as_controller))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(_taken)
        return await asyncio.shield(task)

    async def _in_turn(self, command: Command[R], *, as_controller: bool) -> R:
        handed: Awaitable[None]
        async with self._turn:
            self._check_store()
            answer = await self._attempt(command, as_controller=as_controller)
            handed = self._instruction_queue.done()
        await handed
        return answer

    def _check_store(self) -> None:
        """Refuse a command at once if the session has no connection; otherwise it would wait for the store, and others would
        wait behind it."""
        if self._closed:
            raise Closed("the metadata store is closed")
        if self.is_down and self._store.session.state is SessionState.SUSPENDED:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, NO_ANSWER)

    async def _attempt(self, command: Command[R], *, as_controller: bool) -> R:
        for _ in range(MAX_ATTEMPTS):
            try:
                await self._follow()
                self._notice_controller()
                if as_controller and not self.is_controller:
                    raise NotController
                answer, plan = command()
                await self._carry_out(plan)
            except StoreConflict as conflict:
                await self._refused_write(conflict)
                continue
            except StoreUnavailable as error:
                logger.warning("event=metadata-unavailable error=%r", str(error))
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, NO_ANSWER) from error
            return answer
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, TOO_OFTEN)


def _taken(task: asyncio.Task[R]) -> None:
    """Retrieve the exception of a command whose caller was cancelled, so that asyncio does not report it; `shield` does not do
    it."""
    if not task.cancelled():
        task.exception()


def _now_ms() -> int:
    return int(asyncio.get_running_loop().time() * 1000)
