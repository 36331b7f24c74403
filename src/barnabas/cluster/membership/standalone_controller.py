"""The controller of a standalone broker: writes its plans to the store and executes its instructions.

Owns the store and the order of commands: one at a time, each planned on the result of the previous one. A commit waits for the
disk, so it runs on a thread of its own. A started command runs to its end, even if its caller was cancelled.

If the store refuses a plan because of another writer, the controller reads everything again and plans the command again. If
the store fails, the command fails with UNKNOWN_SERVER_ERROR. The write may or may not have been done, so the controller reads
everything again before the next command.
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
        new_id: function that returns an unused random topic id.
        cluster_id: id for a cluster that has none yet.
        thread: runs commits, one at a time; closed by `close`.
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
        """Register the broker; from now on instructions go to `apply`. Blocks for a commit: call it before serving.

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
        """Topics that were deleted just before a crash: their logs must be removed."""
        return self._core.deleted_topics

    def forget_deleted_topics(self) -> None:
        """Record that the logs of these topics are removed. Blocks for a commit: call it before serving."""
        self._commit_now(self._core.forget_deleted_topics())

    async def close(self) -> None:
        """Finish the running commands and end the store's session."""
        self._closed = True
        if self._running:
            await asyncio.wait(self._running)
        self._thread.shutdown()
        self._store.close()

    async def _run(self, command: Command[R]) -> R:
        """Execute a command after the waiting ones, to its end."""
        if self._closed:
            raise Closed("the metadata store is closed")
        task = asyncio.ensure_future(self._in_turn(command))
        self._running.add(task)
        task.add_done_callback(self._done)
        return await asyncio.shield(task)

    def _done(self, task: asyncio.Task[object]) -> None:
        """Report an internal error, because the caller may have been cancelled meanwhile; a refusal is not reported."""
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
        """Record that logs of deleted topics are out of use; after a failure the next start or deletion does it."""
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
    """Executes no instruction: the broker serves nothing yet."""
