"""The broker's periodic jobs: checkpoints, retention, forgetting idle producers and silent connections."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from barnabas.server.listeners import close_idle
from barnabas.server.timers import Timers

if TYPE_CHECKING:
    from collections.abc import Callable

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
        broker.log_starts.done,
        "starts",
    )
    timers.every(config.replica_high_watermark_checkpoint_interval_ms, lambda: _checkpoint_high_watermarks(broker), "watermarks")
    timers.every(config.log_retention_check_interval_ms, lambda: _apply_retention(broker), "retention")
    timers.every(GARBAGE_CHECK_MS, lambda: _remove_garbage(broker), "garbage")
    timers.every(config.producer_id_expiration_check_interval_ms, lambda: _expire_producers(broker), "producers")


async def _in_thread(broker: Broker, job: Callable[[], None]) -> None:
    await broker.loop.run_in_executor(broker.io_threads, job)


async def _flush(broker: Broker) -> None:
    """Bring sealed segments to the disk, so that a crash leaves only the active ones to be read again, and write down how far."""
    sealed = [(p.log, p.log.active_base_offset) for p in broker.partitions if p.log.active_base_offset > p.log.recovery_point]
    for log, end in sealed:
        await broker.loop.run_in_executor(broker.io_threads, log.flush, end)
    await _in_thread(broker, broker.logs.checkpoint_recovery_points)


async def _apply_retention(broker: Broker) -> None:
    """Let go of the segments that `retention.ms` and `retention.bytes` no longer keep, a few logs in each turn of the loop."""
    for count, partition in enumerate(list(broker.partitions)):
        now_ms = broker.clock.now_ms()
        partition.log.maybe_roll(now_ms)
        if partition.log.delete_retained(now_ms):
            partition.tell_log_start()
        if count % LOGS_PER_TURN == LOGS_PER_TURN - 1:
            await asyncio.sleep(0)


def _remove_garbage(broker: Broker) -> None:
    """Segments that are no longer part of a log go after `file.delete.delay.ms`; a broker that stops removes them at once."""
    for partition in broker.partitions:
        for garbage in partition.log.take_garbage():
            broker.garbage[garbage] = None
            broker.loop.call_later(partition.log.config.file_delete_delay_ms / 1000, _remove, broker, garbage)


def _remove(broker: Broker, garbage: Garbage) -> None:
    if garbage in broker.garbage:  # else the broker has stopped meanwhile, and removed it
        del broker.garbage[garbage]
        broker.loop.run_in_executor(broker.io_threads, garbage.remove)


async def _checkpoint_high_watermarks(broker: Broker) -> None:
    offsets = {(p.topic, p.index): p.high_watermark for p in broker.partitions}
    await broker.loop.run_in_executor(broker.io_threads, broker.logs.write_high_watermarks, offsets)


def _expire_producers(broker: Broker) -> None:
    now_ms = broker.clock.now_ms()
    for partition in broker.partitions:
        partition.log.expire_producers(now_ms)
