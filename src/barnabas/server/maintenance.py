"""The broker's periodic jobs: checkpoints, retention, forgetting idle producers and silent connections."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from barnabas.errors import StorageError
from barnabas.server.faults import report_later
from barnabas.server.listeners import close_idle
from barnabas.server.timers import Timers
from barnabas.storage.garbage import remove_all
from barnabas.storage.log import MAX_SEGMENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from barnabas.replication.partition import Partition
    from barnabas.server.broker import Broker
    from barnabas.storage.garbage import Garbage

IDLE_CHECK_MS = 1_000
GARBAGE_CHECK_MS = 5_000
LOGS_PER_TURN = 50  # looked at for retention before others get their turn


def schedule(broker: Broker, timers: Timers) -> None:
    """Start every job with the interval its configuration key gives."""
    config = broker.config
    timers.watch_loop(broker.metrics)
    timers.every(
        IDLE_CHECK_MS, lambda: close_idle(broker.connections, broker.loop.time(), config.connections_max_idle_ms), "idle"
    )
    timers.every(config.log_flush_offset_checkpoint_interval_ms, lambda: _flush(broker), "recovery-points")
    timers.every(
        config.log_flush_start_offset_checkpoint_interval_ms,
        lambda: _checkpoint_starts(broker),
        "starts",
    )
    timers.every(config.replica_high_watermark_checkpoint_interval_ms, lambda: _checkpoint_high_watermarks(broker), "watermarks")
    timers.every(config.log_retention_check_interval_ms, lambda: apply_retention(broker), "retention")
    timers.every(GARBAGE_CHECK_MS, lambda: _remove_garbage(broker), "garbage")
    timers.every(config.producer_id_expiration_check_interval_ms, lambda: _expire_producers(broker), "producers")


async def _checkpoint(broker: Broker, write: Callable[[], None]) -> None:
    await broker.faults.guard(write)


async def _checkpoint_starts(broker: Broker) -> None:
    try:
        await broker.log_starts.done()
    except StorageError as error:
        broker.faults.report(error)


async def _flush(broker: Broker) -> None:
    """Bring sealed segments to the disk, so that a crash leaves only the active ones to be read again, and write down how far."""
    for partition in list(broker.partitions):
        log = partition.log
        if log.active_base_offset <= log.recovery_point or partition.closed:
            continue
        try:
            plan = log.plan_flush(log.active_base_offset)
            if plan is not None:
                await broker.loop.run_in_executor(broker.io_threads, plan.run)
                log.finish_flush(plan)
        except StorageError as error:
            broker.faults.report(error)
    await _checkpoint(broker, broker.logs.checkpoint_recovery_points)


async def apply_retention(broker: Broker) -> None:
    """Let go of the segments that `retention.ms` and `retention.bytes` no longer keep, a few logs in each turn of the loop."""
    shortened = []
    for count, partition in enumerate(list(broker.partitions)):
        if _retain(broker, partition):
            shortened.append(partition)
        if count % LOGS_PER_TURN == LOGS_PER_TURN - 1:
            await asyncio.sleep(0)
    if shortened and (await _prepare_removal(broker, shortened) or await _make_room(broker, shortened)):
        for partition in shortened:
            if not partition.closed:
                _detach(broker, partition)


async def _prepare_removal(broker: Broker, shortened: Sequence[Partition]) -> bool:
    return await broker.faults.guard(lambda: broker.logs.prepare_removal([partition.log for partition in shortened]))


async def _make_room(broker: Broker, shortened: Sequence[Partition]) -> bool:
    """A full disk has no room even to write down where logs begin: remove single segments until it has.

    The oldest segment alone may go without that: a crash finds it or does not, and nothing is missing behind it either way.
    """
    for partition in shortened:
        if partition.closed:
            continue
        _detach(broker, partition, most=1)
        garbage = partition.log.take_garbage()
        await broker.faults.guard(lambda garbage=garbage: remove_all(garbage))  # type: ignore[misc]
        if await _prepare_removal(broker, shortened):
            return True
    return False


def _retain(broker: Broker, partition: Partition) -> bool:
    """Move one partition's start; whether segments lie below it. Where the disk refuses a roll, old segments go all the same."""
    now_ms, start = broker.clock.now_ms(), partition.log.log_start_offset
    count = 0
    try:
        try:
            partition.log.maybe_roll(now_ms)
        finally:
            count = partition.log.apply_retention(now_ms)
    except StorageError as error:
        broker.faults.report(error)
    except OSError as error:
        broker.faults.report_read(str(partition.log.directory), partition.log.log_start_offset, error)
    if partition.log.log_start_offset > start:
        partition.tell_log_start()
    return count > 0


def _detach(broker: Broker, partition: Partition, most: int = MAX_SEGMENTS) -> None:
    try:
        partition.log.detach_below_start(most)
    except StorageError as error:
        broker.faults.report(error)


def _remove_garbage(broker: Broker) -> None:
    """Segments that are no longer part of a log go after `file.delete.delay.ms`; a broker that stops removes them at once."""
    for partition in broker.partitions:
        for garbage in partition.log.take_garbage():
            broker.garbage[garbage] = None
            broker.loop.call_later(partition.log.config.file_delete_delay_ms / 1000, _remove, broker, garbage)


def _remove(broker: Broker, garbage: Garbage) -> None:
    if garbage in broker.garbage:  # else the broker has stopped meanwhile, and removed it
        del broker.garbage[garbage]
        report_later(broker, broker.loop.run_in_executor(broker.io_threads, garbage.remove))


async def _checkpoint_high_watermarks(broker: Broker) -> None:
    offsets = {(p.topic, p.index): p.high_watermark for p in broker.partitions}
    await _checkpoint(broker, lambda: broker.logs.write_high_watermarks(offsets))


def _expire_producers(broker: Broker) -> None:
    now_ms = broker.clock.now_ms()
    for partition in broker.partitions:
        partition.log.expire_producers(now_ms)
