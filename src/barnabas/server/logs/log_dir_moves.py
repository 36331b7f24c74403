"""Moves of logs from one log directory to another (AlterReplicaLogDirs, KIP-113).

Each move is a task. A thread copies in rounds until the copy is nearly equal, and then the loop swaps the folders (see `storage.moving`).
The old folder is removed like that of a deleted topic. All moves together keep to `replica.alter.log.dirs.io.max.bytes.per.second`. At
most `num.replica.alter.log.dirs.threads` run at once (one for each log directory if that is not set); the others wait.

A move is confirmed when its folder exists: from then on a crash does not lose the move, even while it waits. After a failed move the log
stays where it was. If the broker stops or the target disk fails during a move, the move begins again at the next start.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from barnabas import limits
from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.storage.checkpoints import TopicPartition

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from barnabas.server.cleaning.cleaner import LogCleaner
    from barnabas.server.logs.delayed_removal import DelayedRemoval
    from barnabas.server.services import Services
    from barnabas.storage.directory import LogDirectory
    from barnabas.storage.log_move import LogMove

logger = logging.getLogger(__name__)
T = TypeVar("T")

ROUND_BYTES = 16 * 1024 * 1024  # copied between two checks of the rate limit
MIN_ROUND_BYTES = 64 * 1024
WAIT_FOR_SWAP_S = 0.01
ROUNDS_PER_S = 4  # of a move that the rate limit slows
# then the loop itself copies the rest, because a log with constant syncs gets ahead of the copy again and again
SMALL_ROUNDS = 20


class _Moving:
    """One move, from the request to its end."""

    def __init__(self, directory: LogDirectory, copy: LogMove) -> None:
        self.directory = directory
        self.copy = copy
        self.stopped = asyncio.Event()
        self.keeps_folder = False  # the copy stays, so that the next start finds it
        self.noted = asyncio.Event()  # the move is on the disk, or failed
        self.failure: StorageError | OSError | None = None
        self.task: asyncio.Task[None] | None = None


class LogDirMoves:
    """The moves of one broker, at most one for each partition."""

    def __init__(self, services: Services, cleaner: LogCleaner, removal: DelayedRemoval) -> None:
        self._services = services
        self._cleaner = cleaner
        self._removal = removal
        self._moving: dict[TopicPartition, _Moving] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._ending: dict[TopicPartition, asyncio.Task[None]] = {}  # the last stopped move of each partition
        self._leaving: dict[TopicPartition, asyncio.Future[None]] = {}  # old folders that still have the partition's name
        # partitions whose old folder kept its name: they cannot move again before the next start
        self._haunted: set[TopicPartition] = set()
        self._threads: Executor | None = None
        self._slots: asyncio.Semaphore | None = None
        self._free_at_ms = 0.0  # when the rate limit allows the next round
        self.bytes_copied = 0
        self.finished = 0
        self.failed = 0

    def __len__(self) -> int:
        return len(self._moving)

    def of(self, topic: str, partition: int) -> LogMove | None:
        """The unfinished copy of a log; None if the log does not move."""
        found = self._moving.get((topic, partition))
        return found.copy if found is not None else None

    async def start(self, topic: str, partition: int, directory: LogDirectory) -> None:
        """Begin to move a log to `directory`, unless it is there or moves there already. After the return a crash does not lose the move.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR, too many moves are waiting, the disk does not work, or the folder that an earlier move left
                still has the log's name; UNKNOWN_TOPIC_OR_PARTITION, the log was deleted in the meantime.
        """
        key = topic, partition
        if key in self._haunted:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "An earlier move of this log could not be finished.")
        while (found := self._moving.get(key)) is None or found.directory is not directory:
            if found is not None:
                self.stop(topic, partition)
            if key in self._ending:  # after a crash, its folder would look like an unfinished move
                await asyncio.wait({self._ending[key]})
                continue
            if self._services.logs.get(topic, partition) is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if self._services.logs.directory_of(topic, partition) is directory:
                return
            if len(self._moving) >= limits.MAX_MOVES_OF_LOGS:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{len(self._moving)} logs are moving already.")
            self._begin(key, directory)
        await found.noted.wait()
        if found.failure is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(found.failure))

    def _begin(self, key: TopicPartition, directory: LogDirectory) -> None:
        moving = _Moving(directory, self._services.logs.removal.begin_move(*key, directory))
        self._moving[key] = moving
        moving.task = self._services.loop.create_task(self._run(key, moving), name=f"move {key[0]}-{key[1]}")
        self._tasks.add(moving.task)
        moving.task.add_done_callback(self._tasks.discard)

    def stop(self, topic: str, partition: int) -> None:
        """Stop a move, if there is one; its copy is removed as soon as no thread writes to it."""
        found = self._moving.pop((topic, partition), None)
        if found is not None and found.task is not None:
            found.stopped.set()
            self._ending[topic, partition] = found.task
            found.task.add_done_callback(lambda task: self._ended((topic, partition), task))

    def _ended(self, key: TopicPartition, task: asyncio.Task[None]) -> None:
        if self._ending.get(key) is task:
            del self._ending[key]

    def directory_failed(self, directory: LogDirectory) -> None:
        """Stop the moves to and from a failed log directory."""
        for key, moving in list(self._moving.items()):
            if moving.directory is directory:
                moving.keeps_folder = True  # the disk takes no writes, so the copy cannot be removed
                self.stop(*key)
            elif self._services.logs.directory_of(*key) is directory:
                self.stop(*key)

    async def settle(self, topic: str, partition: int) -> None:
        """Wait until only the folder of the partition's log has its name."""
        leaving = self._leaving.get((topic, partition))
        if leaving is not None:
            await asyncio.shield(leaving)

    def resume(self) -> None:
        """Begin the moves again that the last stop or crash interrupted."""
        logs = self._services.logs
        for key, directory in list(logs.removal.interrupted.items()):
            partition = self._services.partitions.get(*key)
            if partition is not None and partition.is_offline:
                continue  # the directory of the log failed: the copy stays for a start in which it works
            is_there = partition is not None and logs.directory_of(*key).failure is None
            if is_there and directory.failure is None and logs.directory_of(*key) is not directory:
                self._begin(key, directory)
            else:
                logs.removal.forget_move(key)

    async def close(self) -> None:
        """Wait for the current rounds; unfinished copies stay for the next start."""
        for moving in self._moving.values():
            moving.keeps_folder = True
            moving.stopped.set()
        self._moving.clear()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._threads is not None:
            await self._services.loop.run_in_executor(None, self._threads.shutdown)

    # --- one move

    async def _run(self, key: TopicPartition, moving: _Moving) -> None:
        is_done = False
        try:
            await self._in_thread(moving.copy.prepare)
            moving.noted.set()
            if await self._has_turn(moving):
                try:
                    logger.info("event=log-move-begins topic=%s partition=%d to=%s", *key, moving.directory.path)
                    await self.settle(*key)
                    is_done = await self._move(key, moving)
                finally:
                    self._slot().release()
        except (StorageError, OSError) as error:
            moving.failure = error
            if not moving.stopped.is_set():
                self.failed += 1
                logger.error(
                    "event=log-move-failed topic=%s partition=%d to=%s error=%r", *key, moving.directory.path, str(error)
                )
                if isinstance(error, StorageError):
                    self._services.faults.report(error)
        finally:
            moving.noted.set()
        if self._moving.get(key) is moving:
            del self._moving[key]
        if not is_done and not moving.keeps_folder:
            try:
                await self._in_thread(moving.copy.give_up)
            except OSError as error:
                logger.warning("event=log-copy-not-removed path=%s error=%r", moving.copy.folder, str(error))

    async def _move(self, key: TopicPartition, moving: _Moving) -> bool:
        """Whether the log was moved; False if the move was stopped."""
        copy = moving.copy
        rounds = 0
        while not moving.stopped.is_set() and not copy.can_swap:
            if copy.log.is_swapping:  # the cleaner works on the log, for the time of a few renames
                await asyncio.sleep(WAIT_FOR_SWAP_S)
                continue
            plan = copy.plan(self._round_bytes())
            rounds = rounds + 1 if plan.size < MIN_ROUND_BYTES else 0
            if rounds > SMALL_ROUNDS:
                plan.run()
            else:
                await self._in_thread(plan.run)
            copy.finish(plan)
            self.bytes_copied += plan.size
            await self._hold_back(plan.size, moving)
        if moving.stopped.is_set():
            return False
        await self._swap(key, moving)
        return True

    async def _swap(self, key: TopicPartition, moving: _Moving) -> None:
        services = self._services
        retired = services.logs.removal.swap(moving.copy, moving.directory)
        del self._moving[key]
        self._cleaner.interrupt(retired.folder)
        self.finished += 1
        leaving = self._leaving[key] = services.loop.create_future()
        logger.info(
            "event=log-moved topic=%s partition=%d to=%s bytes=%d", *key, moving.directory.path, moving.copy.log.size_bytes
        )
        try:
            garbage = await self._in_thread(lambda: services.logs.removal.leave(moving.copy, retired))
        except (StorageError, OSError) as error:
            logger.error(
                "event=moved-log-old-folder-stays path=%s note='stays until the next start' error=%r", retired.folder, str(error)
            )
            self._haunted.add(key)
            garbage = retired.garbage
            garbage.directory = None
        finally:
            del self._leaving[key]
            leaving.set_result(None)
        self._removal.remove_later(garbage, moving.copy.log.config.file_delete_delay_ms)

    async def _has_turn(self, moving: _Moving) -> bool:
        """Wait until this move may begin; False if it is stopped before."""
        turn = self._services.loop.create_task(self._slot().acquire())
        stopped = self._services.loop.create_task(moving.stopped.wait())
        await asyncio.wait({turn, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not turn.done():
            turn.cancel()
            return False
        return True

    def _slot(self) -> asyncio.Semaphore:
        if self._slots is None:
            self._slots = asyncio.Semaphore(self._most_at_once)
        return self._slots

    @property
    def _most_at_once(self) -> int:
        return self._services.config.num_replica_alter_log_dirs_threads or len(self._services.logs.directories)

    async def _in_thread(self, job: Callable[[], T]) -> T:
        if self._threads is None:
            self._threads = self._services.make_executor(self._most_at_once, "barnabas-moving")
        return await self._services.loop.run_in_executor(self._threads, job)

    def _round_bytes(self) -> int:
        rate = self._services.config.replica_alter_log_dirs_io_max_bytes_per_second
        return max(MIN_ROUND_BYTES, min(ROUND_BYTES, rate // ROUNDS_PER_S))

    async def _hold_back(self, size: int, moving: _Moving) -> None:
        """Wait until the rate of all moves is within its limit."""
        now_ms = self._services.clock.monotonic_ms()
        rate = max(1, self._services.config.replica_alter_log_dirs_io_max_bytes_per_second)
        self._free_at_ms = max(self._free_at_ms, now_ms) + size * 1000 / rate
        if self._free_at_ms - now_ms >= 1:
            try:
                async with asyncio.timeout((self._free_at_ms - now_ms) / 1000):
                    await moving.stopped.wait()
            except TimeoutError:
                return
