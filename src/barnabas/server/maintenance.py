"""The broker's periodic jobs: checkpoints, retention, and the removal of idle producers, silent connections and unused quota clients."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Protocol

from barnabas.errors import KafkaError, StorageError
from barnabas.server.apis.tokens import remove_expired
from barnabas.server.listeners import close_idle
from barnabas.server.logs.recovery_bound import Unflushed, flushes_due
from barnabas.server.periodic_jobs import PeriodicJobs
from barnabas.server.quotas.callback import CHECK_MS as QUOTA_CALLBACK_MS
from barnabas.server.quotas.group_members import INTERVAL_MS as GROUP_MEMBERS_MS
from barnabas.storage.garbage import remove_all
from barnabas.storage.log import MAX_SEGMENTS, Log
from barnabas.storage.producer_state import LOOKED_AT_AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from barnabas.replication.partition import OnlinePartition
    from barnabas.server.connection import Connection
    from barnabas.server.logs.delayed_removal import DelayedRemoval
    from barnabas.server.logs.log_start_offsets import LogStartOffsets
    from barnabas.server.quotas.client_quotas import ClientQuotas
    from barnabas.server.replication.isr_changes import IsrChanges
    from barnabas.server.services import Services
    from barnabas.server.tls.listeners import BrokerTls
    from barnabas.storage.segment_times import TimesLook

logger = logging.getLogger(__name__)
IDLE_CHECKS = 60  # within `connections.max.idle.ms`
LEAST_IDLE_CHECK_MS, MOST_IDLE_CHECK_MS = 1_000, 10_000  # a check looks at all connections, 1 ms for 10,000
GARBAGE_CHECK_MS = 5_000
IN_SYNC_CHECK_MS = 1_000
QUOTAS_CHECK_MS = 60_000
CERTIFICATES_CHECK_MS = 5_000  # a few `stat` calls
PARTITIONS_PER_TURN = 500  # a job reads one or two numbers of each, which takes up to 2 us
LOGS_PER_TURN = 50  # logs that the retention job examines before the loop gets a turn


class Parts(Protocol):
    """The parts that need periodic work."""

    connections: dict[Connection, None]
    isr: IsrChanges
    log_start_offsets: LogStartOffsets
    removal: DelayedRemoval
    quotas: ClientQuotas
    tls: BrokerTls


def schedule(services: Services, parts: Parts, periodic_jobs: PeriodicJobs) -> None:
    """Start every job with the interval of its configuration key."""
    config = services.config
    first_ms = config.log_initial_task_delay_ms
    periodic_jobs.watch_loop(services.metrics)
    max_idle_ms = config.connections_max_idle_ms
    if max_idle_ms >= 0:
        interval_ms = min(max(max_idle_ms / IDLE_CHECKS, LEAST_IDLE_CHECK_MS), MOST_IDLE_CHECK_MS)
        periodic_jobs.every(interval_ms, lambda: close_idle(parts.connections, services.loop.time(), max_idle_ms), "idle")
    periodic_jobs.every(config.log_flush_offset_checkpoint_interval_ms, lambda: flush(services), "recovery-points", first_ms)
    periodic_jobs.every(
        config.log_flush_start_offset_checkpoint_interval_ms,
        lambda: _checkpoint_starts(services, parts.log_start_offsets),
        "starts",
        first_ms,
    )
    periodic_jobs.every(
        config.replica_high_watermark_checkpoint_interval_ms, lambda: _checkpoint_high_watermarks(services), "watermarks"
    )
    periodic_jobs.every(
        min(config.replica_lag_time_max_ms / 2, IN_SYNC_CHECK_MS), lambda: _check_in_sync(services, parts.isr), "in-sync"
    )
    periodic_jobs.every(config.log_retention_check_interval_ms, lambda: apply_retention(services), "retention", first_ms)
    periodic_jobs.every(GARBAGE_CHECK_MS, lambda: _remove_garbage(services, parts.removal), "garbage")
    periodic_jobs.every(GROUP_MEMBERS_MS, parts.quotas.members.refresh, "group-quotas")
    periodic_jobs.every(QUOTAS_CHECK_MS, parts.quotas.expire, "quotas")
    if parts.quotas.has_callback:
        periodic_jobs.every(QUOTA_CALLBACK_MS, parts.quotas.ask_callback, "quota-callback")
    if parts.tls.is_used:
        periodic_jobs.every(CERTIFICATES_CHECK_MS, parts.tls.refresh, "certificates")
    periodic_jobs.every(config.delegation_token_expiry_check_interval_ms, lambda: _remove_tokens(services), "tokens")
    periodic_jobs.every(config.producer_id_expiration_check_interval_ms, lambda: _expire_producers(services), "producers")


async def _checkpoint(services: Services, write: Callable[[], None]) -> None:
    await services.faults.guard(write)


async def _checkpoint_starts(services: Services, log_start_offsets: LogStartOffsets) -> None:
    try:
        await log_start_offsets.done()
    except StorageError as error:
        services.faults.report(error)


async def flush(services: Services) -> None:
    """Flush the records that a start after a crash should not have to read (see `recovery_bound`), and write the recovery points."""
    unflushed = []
    for count, partition in enumerate(list(services.partitions)):
        found = Unflushed.of(partition)
        if found is not None:
            unflushed.append(found)
        if count % PARTITIONS_PER_TURN == PARTITIONS_PER_TURN - 1:
            await asyncio.sleep(0)
    for partition, end in flushes_due(unflushed):
        if partition.closed:
            continue
        log = partition.log
        try:
            # Sealed segments, or all up to the log end: the producers are known there, so that a start reads nothing before it.
            plan = log.plan_flush(end if end <= log.active_base_offset else None)
            if plan is not None:
                await services.loop.run_in_executor(services.io_threads, plan.run)
                log.finish_flush(plan)
        except StorageError as error:
            services.faults.report(error)
    await _checkpoint(services, services.logs.checkpoints.write_recovery_points)


async def apply_retention(services: Services) -> None:
    """Delete the segments that `retention.ms` and `retention.bytes` do not keep any more, a few logs in each turn of the loop."""
    shortened = []
    partitions = list(services.partitions)
    for start in range(0, len(partitions), LOGS_PER_TURN):
        some = partitions[start : start + LOGS_PER_TURN]
        await _find_ages(services, some)
        shortened += [partition for partition in some if not partition.closed and _retain(services, partition)]
        await asyncio.sleep(0)
    if not shortened:
        return
    written = await _prepare_removal(services, shortened) or await _make_room(services, shortened)
    for count, partition in enumerate(shortened):
        if count % LOGS_PER_TURN == LOGS_PER_TURN - 1:
            await asyncio.sleep(0)
        # otherwise the next run removes it
        if not partition.closed and written.get(partition.log) == partition.log.truncator.start_mark:
            _detach(services, partition)


async def _find_ages(services: Services, partitions: Sequence[OnlinePartition]) -> None:
    """Let a thread read the ages of segments that are unknown since the start, so that the loop does not wait for the disk."""
    now_ms = services.clock.now_ms()
    looks = [look for each in partitions if not each.closed and (look := each.log.reader.unknown_ages(now_ms)) is not None]
    if looks:
        await services.loop.run_in_executor(services.io_threads, _run_looks, looks)
        for look in looks:
            look.note()


def _run_looks(looks: Sequence[TimesLook]) -> None:
    for look in looks:
        look.run()


async def _prepare_removal(services: Services, shortened: Sequence[OnlinePartition]) -> dict[Log, tuple[int, int]]:
    """Write the log start offsets. Returns the marks of the written ones, none if the disk refuses."""
    marks = {partition.log: partition.log.truncator.start_mark for partition in shortened}
    if not await services.faults.guard(lambda: services.logs.checkpoints.prepare_removal(marks)):
        return {}
    for log, mark in marks.items():
        log.truncator.start_written(mark)
    return marks


async def _make_room(services: Services, shortened: Sequence[OnlinePartition]) -> dict[Log, tuple[int, int]]:
    """Remove single segments until a full disk has room for the log start offsets.

    Only the oldest segment may be removed before its log start offset is written. After a crash the segment exists or not, and in both
    cases all later segments exist.
    """
    for partition in shortened:
        if partition.closed:
            continue
        _detach(services, partition, most=1)
        garbage = partition.log.truncator.take_garbage()
        await services.faults.guard(partial(remove_all, garbage))
        written = await _prepare_removal(services, shortened)
        if written:
            return written
    return {}


def _retain(services: Services, partition: OnlinePartition) -> bool:
    """Move the log start offset of a partition. Returns whether there are segments below it.

    If the disk refuses to roll a segment, old segments are removed all the same.
    """
    now_ms, start = services.clock.now_ms(), partition.log.log_start_offset
    count = 0
    try:
        try:
            partition.log.appender.maybe_roll(now_ms)
        finally:
            count = partition.log.truncator.apply_retention(now_ms, committed_end=partition.high_watermark)
    except StorageError as error:
        services.faults.report(error)
    except OSError as error:
        services.faults.report_read(str(partition.log.directory), partition.log.log_start_offset, error)
    if partition.log.log_start_offset > start:
        partition.tell_log_start()
    return count > 0


def _detach(services: Services, partition: OnlinePartition, most: int = MAX_SEGMENTS) -> None:
    try:
        partition.log.truncator.detach_below_start(most)
    except StorageError as error:
        services.faults.report(error)


async def _remove_garbage(services: Services, removal: DelayedRemoval) -> None:
    """Delete the files of removed segments after `file.delete.delay.ms`. A broker that stops deletes them at once."""
    for count, partition in enumerate(list(services.partitions)):
        if count % PARTITIONS_PER_TURN == PARTITIONS_PER_TURN - 1:
            await asyncio.sleep(0)
        for garbage in partition.log.truncator.take_garbage():
            removal.remove_later(garbage, partition.log.config.file_delete_delay_ms)


async def _checkpoint_high_watermarks(services: Services) -> None:
    await _checkpoint(services, high_watermarks_writer(services))


def high_watermarks_writer(services: Services) -> Callable[[], None]:
    """A function that writes the current high watermarks; the function blocks."""
    offsets = {(p.topic, p.index): p.high_watermark for p in services.partitions}
    return lambda: services.logs.checkpoints.write_high_watermarks(offsets)


async def _check_in_sync(services: Services, isr: IsrChanges) -> None:
    """Check the in-sync replicas of the partitions led here: some followers have fallen behind, others may join."""
    now_ms = isr.now_ms()
    for count, partition in enumerate(list(services.partitions)):
        if count % PARTITIONS_PER_TURN == PARTITIONS_PER_TURN - 1:
            await asyncio.sleep(0)
        if partition.is_leader and not partition.closed:
            partition.check_in_sync(now_ms)


async def _expire_producers(services: Services) -> None:
    now_ms, producers = services.clock.now_ms(), 0  # looked at in this turn of the loop
    for count, partition in enumerate(list(services.partitions)):
        if count % PARTITIONS_PER_TURN == PARTITIONS_PER_TURN - 1:
            await asyncio.sleep(0)
        for looked_at in partition.log.reader.expire_producers_in_parts(now_ms, services.config.producer_id_expiration_ms):
            producers += looked_at
            if producers >= LOOKED_AT_AT_ONCE:
                producers = 0
                await asyncio.sleep(0)


async def _remove_tokens(services: Services) -> None:
    try:
        await remove_expired(services)
    except KafkaError as error:
        logger.warning("event=expired-tokens-stay note='stay until the next time' error=%r", str(error))
