"""Limits how much a start after a crash must read.

After a crash the broker reads each log from its recovery point on. The periodic job flushes sealed segments. With that alone, a broker
with thousands of partitions would have to read thousands of active segments of up to `segment.bytes`. So the job also flushes the active
segments with the most unflushed bytes, until all logs together have less than `UNFLUSHED_BYTES`. This syncs few files, and the kernel has
written most of their data already. A start then reads that much, and the data since the last run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from barnabas.replication.partition import OnlinePartition

UNFLUSHED_BYTES = 256 * 1024 * 1024  # a start reads and checks them in about a second; a few seconds with small batches


class Unflushed(NamedTuple):
    """A log that has records past its recovery point."""

    partition: OnlinePartition
    size: int  # bytes past the recovery point in the active segment; all its bytes if that number is unknown
    sealed_end: int  # the base offset of the active segment
    end: int

    @classmethod
    def of(cls, partition: OnlinePartition) -> Unflushed | None:
        log = partition.log
        if partition.closed or log.recovery_point >= log.log_end_offset:
            return None
        return cls(partition, log.unflushed_bytes, log.active_base_offset, log.log_end_offset)


def flushes_due(unflushed: Iterable[Unflushed], bound: int = UNFLUSHED_BYTES) -> list[tuple[OnlinePartition, int]]:
    """The logs to flush now, and up to which offset: all sealed segments, and active ones until the rest is less than `bound` bytes."""
    by_size = sorted(unflushed, key=lambda each: each.size, reverse=True)
    left = sum(each.size for each in by_size)
    due = []
    for each in by_size:
        end = each.end if left > bound else each.sealed_end
        if left > bound:
            left -= each.size
        if end > each.partition.log.recovery_point:
            due.append((each.partition, end))
    return due
