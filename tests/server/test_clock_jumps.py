"""The machine's clock jumps: nothing is deleted before its time, nobody is thrown out, and appends go on."""

from __future__ import annotations

import time
from pathlib import Path

from barnabas.errors import ErrorCode
from barnabas.server.maintenance import apply_retention
from tests.server.in_process import Client, running

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


class JumpingClock:
    """Wall time is off by `ahead_ms`; the monotonic clock is the machine's."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self.ahead_ms

    def monotonic_ms(self) -> float:
        return time.monotonic_ns() / 1_000_000


async def retain(client: Client) -> int:
    """Run the timer's job; returns the log start offset."""
    await apply_retention(client.broker.services)
    partition = client.broker.partitions.require("t", 0)
    return partition.log.log_start_offset


async def test_a_few_hours_forward_and_back_change_nothing(tmp_path: Path) -> None:
    clock = JumpingClock()
    async with running([tmp_path], None, clock) as client:
        await client.create(retention_ms=str(DAY_MS), segment_bytes=str(2**20), segment_ms=str(DAY_MS))
        now = clock.now_ms()
        for number in range(5):
            assert await client.produce(b"%d" % number, time_ms=now - HOUR_MS, sequence=number) == 0
        for ahead_ms in (6 * HOUR_MS, -6 * HOUR_MS, 0):
            clock.ahead_ms = ahead_ms
            assert await retain(client) == 0
            partition = client.broker.partitions.require("t", 0)
            partition.log.reader.expire_producers(clock.now_ms())
            assert [each.last_sequence for each in partition.log.reader.producers()] == [4]
            assert (await client.fetch())[1] == [b"0", b"1", b"2", b"3", b"4"]
        assert await client.produce(b"5", time_ms=now, sequence=5) == 0
        assert len(list((tmp_path / "t-0").glob("*.log"))) == 1


async def test_a_clock_that_is_behind_refuses_times_that_it_takes_for_the_future(tmp_path: Path) -> None:
    """As Kafka does, by message.timestamp.after.max.ms; an hour is allowed."""
    clock = JumpingClock()
    async with running([tmp_path], None, clock) as client:
        await client.create()
        now = clock.now_ms()
        clock.ahead_ms = -2 * HOUR_MS
        assert await client.produce(b"refused", time_ms=now) == ErrorCode.INVALID_TIMESTAMP
        clock.ahead_ms = -HOUR_MS // 2
        assert await client.produce(b"taken", time_ms=now) == 0
        assert (await client.fetch())[1] == [b"taken"]


async def test_append_times_that_go_back_keep_lookups_right(tmp_path: Path) -> None:
    clock = JumpingClock()
    async with running([tmp_path], None, clock) as client:
        await client.create(
            message_timestamp_type="LogAppendTime", retention_ms=str(DAY_MS), segment_ms=str(HOUR_MS), index_interval_bytes="1"
        )
        for number, ahead_ms in enumerate((0, 3 * HOUR_MS, -3 * HOUR_MS, 0)):
            clock.ahead_ms = ahead_ms
            assert await client.produce(b"%d" % number * 50) == 0
        assert await retain(client) == 0
        partition = client.broker.partitions.require("t", 0)
        found = partition.log.reader.offset_for_timestamp(clock.now_ms() + HOUR_MS)
        assert found is not None
        assert found.offset == 1
        assert len((await client.fetch())[1]) > 0
        assert partition.log.log_end_offset == 4
        clock.ahead_ms = 2 * DAY_MS  # all segments are now older than retention.ms
        assert await retain(client) == 4
