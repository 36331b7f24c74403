"""The broker's periodic jobs: checkpoints, retention, forgetting idle producers and silent connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.server.listeners import close_idle
from barnabas.server.timers import Timers

if TYPE_CHECKING:
    from barnabas.server.broker import Broker

IDLE_CHECK_MS = 1_000


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
        lambda: _in_thread(broker, broker.logs.checkpoint_log_start_offsets),
        "starts",
    )
    timers.every(config.replica_high_watermark_checkpoint_interval_ms, lambda: _checkpoint_high_watermarks(broker), "watermarks")
    timers.every(config.producer_id_expiration_check_interval_ms, lambda: _expire_producers(broker), "producers")


async def _in_thread(broker: Broker, job: object) -> None:
    await broker.loop.run_in_executor(broker.io_threads, job)  # type: ignore[arg-type]


async def _flush(broker: Broker) -> None:
    await broker.loop.run_in_executor(broker.io_threads, broker.logs.checkpoint_recovery_points)


async def _checkpoint_high_watermarks(broker: Broker) -> None:
    offsets = {(p.topic, p.index): p.high_watermark for p in broker.partitions}
    await broker.loop.run_in_executor(broker.io_threads, broker.logs.write_high_watermarks, offsets)


def _expire_producers(broker: Broker) -> None:
    now_ms = broker.clock.now_ms()
    for partition in broker.partitions:
        partition.log.expire_producers(now_ms)
