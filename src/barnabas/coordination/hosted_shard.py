"""A partition of an internal topic that this broker leads: its shard, its uncommitted appends, and its loading from the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from contextlib import aclosing
from enum import Enum
from typing import Generic, TypeVar

from msgspec import Struct, field

from barnabas.coordination.interfaces import CoordinatorLog, LogEntry, Shard
from barnabas.coordination.result import NO_PRODUCER
from barnabas.errors import ErrorCode, KafkaError, MalformedMessage

logger = logging.getLogger(__name__)
S = TypeVar("S", bound=Shard)

# While loading, other tasks run after this many records: about 1 ms, or some milliseconds if each batch has one record.
RECORDS_BETWEEN_BREATHS = 200
MOST_HELD = 50_000  # records held back while loading; about 20 MB


class Phase(Enum):
    LOADING = "loading"
    ACTIVE = "active"


class HostedShard(Struct, Generic[S], eq=False):
    """A partition that this broker leads; each loading creates another object, and references to an earlier one are stale."""

    partition: int
    shard: S
    phase: Phase = Phase.LOADING
    uncommitted: list[asyncio.Future[None]] = field(default_factory=list)  # appends not yet committed, oldest first
    missed_deletions: set[str] = field(default_factory=set)  # topics that were deleted while the shard was loading


async def read_into(hosted: HostedShard[S], log_: CoordinatorLog, kind: str, is_wanted: Callable[[], bool]) -> None:
    """Replay the whole log of a partition; stops early if the shard is not needed any more."""
    unreadable = count = 0
    async with aclosing(log_.read_all(hosted.partition)) as parts:
        async for part in _due(hosted.shard, parts):
            if not is_wanted():
                return
            for entry in part:
                if entry is not None:
                    unreadable += not _replay(hosted, entry, kind)
                count += 1
                if count % RECORDS_BETWEEN_BREATHS == 0:
                    await asyncio.sleep(0)
                    if not is_wanted():
                        return
    level = logging.INFO if len(hosted.shard) or unreadable else logging.DEBUG  # most of the 50 partitions are empty
    logger.log(
        level,
        "event=shard-loaded kind=%s partition=%d count=%d unreadable=%d",
        kind,
        hosted.partition,
        len(hosted.shard),
        unreadable,
    )


async def _due(shard: Shard, parts: AsyncIterable[Iterable[LogEntry]]) -> AsyncIterator[Iterable[LogEntry | None]]:
    """The entries of a log to replay, in parts; None for an overwritten one.

    Most records of a coordinator are overwritten by a later one with the same key, and decoding them takes most of the time. So
    overwritable records are held back until another kind of record comes, or until there are many. Then the held records are
    replayed first.
    """
    held: dict[bytes, LogEntry] = {}

    def sift(part: Iterable[LogEntry]) -> Iterator[LogEntry | None]:
        for entry in part:
            record = entry.record
            if record is not None and entry.producer_id == NO_PRODUCER and shard.is_overwritten_by_next(record):
                held[record[0]] = entry
                yield None
                if len(held) < MOST_HELD:
                    continue
                yield from release()
            else:
                yield from release()
                yield entry

    def release() -> Iterator[LogEntry]:
        entries = list(held.values())
        held.clear()
        yield from entries

    async for part in parts:
        yield sift(part)
    yield release()


def _replay(hosted: HostedShard[S], entry: LogEntry, kind: str) -> bool:
    """Replay an entry; returns whether its record could be decoded."""
    try:
        if entry.record is None:
            hosted.shard.replay_end(entry.producer_id, commit=entry.commit)
        else:
            hosted.shard.replay(entry.record, entry.producer_id)
    except MalformedMessage as error:
        logger.warning("event=shard-record-unreadable kind=%s partition=%d error=%r", kind, hosted.partition, str(error))
        return False
    return True


async def shielded(commit: asyncio.Future[None]) -> None:
    """Wait for a commit that other tasks also wait for. Raises NOT_COORDINATOR if the log lost it: another coordinator is
    responsible."""
    try:
        await asyncio.shield(commit)
    except KafkaError as error:
        raise KafkaError(ErrorCode.NOT_COORDINATOR) from error
    except asyncio.CancelledError:
        if commit.cancelled():  # the commit was cancelled, not the task that waits for it
            raise KafkaError(ErrorCode.NOT_COORDINATOR) from None
        raise
