"""The controller of a broker alone at work: its plans written to the store, its instructions carried out.

Owns the store and the order of commands: one at a time, each planned on what the one before it left. A commit waits for the
disk, so it runs on a thread of its own and the event loop goes on. A command that began is finished even when who asked for it
went away.

When the store refuses a plan because someone else wrote, everything is read again and the command is planned anew; when the
store fails, the command fails with UNKNOWN_SERVER_ERROR and everything is read again before the next one, because nobody knows
whether the write was done.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from uuid import UUID

from barnabas.cluster.controller.core import Controller
from barnabas.cluster.membership.commands import MAX_ATTEMPTS, TOO_OFTEN, Apply, ChangesTooMuch, Command, Commands, R
from barnabas.cluster.metadata.image import BrokerRegistration
from barnabas.cluster.planning.instructions import Instruction
from barnabas.cluster.planning.plan import Plan
from barnabas.cluster.store.interface import CommitTooLarge, MetadataStore, StoreConflict, StoreUnavailable
from barnabas.config.broker import BrokerConfig
from barnabas.errors import BarnabasError, Closed, ErrorCode, KafkaError

logger = logging.getLogger(__name__)


class StandaloneController(Commands):
    """The controller of a broker that stands alone.

    Args:
        store: open; closed by `close`.
        static: the broker's configuration as given at start.
        new_id: a random id that no topic has.
        cluster_id: the name of the cluster, should it have none yet.
        thread: where commits wait for the disk, one at a time; closed by `close`.
    """

    def __init__(
        self,
        store: MetadataStore,
        static: BrokerConfig,
        *,
        new_id: Callable[[], UUID],
        cluster_id: str,
        thread: Executor | None = None,
    ) -> None:
        self._store = store
        super().__init__(Controller(static, store.list("/"), new_id=new_id))
        self._commit_now(self._core.set_cluster_id(cluster_id))
        self._commit_now(self._core.set_minimum())
        self._apply: Apply = _ignore
        self._turn = asyncio.Lock()
        self._thread = thread or ThreadPoolExecutor(1, "barnabas-metadata")
        self._running: set[asyncio.Task[object]] = set()
        self._stale = False
        self._closed = False

    def start(self, registration: BrokerRegistration, apply: Apply, *, bump_leader_epochs: bool = False) -> None:
        """Announce the broker; from now on instructions go to `apply`. Blocks for a commit: call it before serving.

        Args:
            bump_leader_epochs: the last stop was not clean.
        """
        self._apply = apply
        if bump_leader_epochs:
            self._commit_now(self._core.bump_leader_epochs())
        self._commit_now(self._core.register(registration))

    async def position(self) -> int:
        return self._store.position()

    @property
    def deleted_topics(self) -> set[UUID]:
        """Topics that were deleted just before a crash: logs of theirs are to go."""
        return self._core.deleted_topics

    def forget_deleted_topics(self) -> None:
        """Their logs are gone. Blocks for a commit: call it before serving."""
        self._commit_now(self._core.forget_deleted_topics())

    async def close(self) -> None:
        """Finish the commands under way and end the store's session."""
        self._closed = True
        if self._running:
            await asyncio.wait(self._running)
        self._thread.shutdown()
        self._store.close()

    async def _run(self, command: Command[R]) -> R:
        """Carry out a command in its turn, to the end."""
        if self._closed:
            raise Closed("the metadata store is closed")
        task = asyncio.ensure_future(self._in_turn(command))
        self._running.add(task)
        task.add_done_callback(self._done)
        return await asyncio.shield(task)

    def _done(self, task: asyncio.Task[object]) -> None:
        """Whoever asked may have gone meanwhile: a refusal is then nobody's business, a fault of ours is."""
        self._running.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, BarnabasError):
            logger.error("event=command-failed", exc_info=error)

    async def _in_turn(self, command: Command[R]) -> R:
        async with self._turn:
            for _ in range(MAX_ATTEMPTS):
                if self._stale:
                    await self._reload()
                answer, plan = command()
                try:
                    await self._commit(plan)
                except StoreConflict as conflict:
                    logger.info("event=metadata-conflict error=%r", str(conflict))
                    self._stale = True
                    continue
                await self._apply(self._core.committed(plan))
                if plan.delta.deleted_topics:
                    await self._forget_deleted_topics()
                return answer
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, TOO_OFTEN)

    async def _forget_deleted_topics(self) -> None:
        """The logs of deleted topics are out of use; should this fail, the next start or deletion does it."""
        plan = self._core.forget_deleted_topics()
        try:
            await self._commit(plan)
        except (StoreConflict, KafkaError) as error:
            self._stale = True
            logger.warning("event=deletions-not-forgotten error=%r", str(error))
        else:
            self._core.committed(plan)

    async def _commit(self, plan: Plan) -> None:
        if not plan.operations:
            return
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._store.commit, plan.operations)
        except CommitTooLarge as error:
            raise ChangesTooMuch from error
        except StoreUnavailable as error:
            self._stale = True
            logger.error("event=metadata-commit-failed error=%r", str(error))
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the metadata could not be written") from error

    async def _reload(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            entries = await loop.run_in_executor(self._thread, self._store.list, "/")
        except StoreUnavailable as error:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the metadata could not be read") from error
        self._core.load(entries)
        self._stale = False

    def _commit_now(self, plan: Plan) -> None:
        if plan.operations:
            self._store.commit(plan.operations)
            self._core.committed(plan)


async def _ignore(_: Sequence[Instruction]) -> None:
    """Nothing is served yet."""
