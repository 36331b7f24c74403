"""A group coordinator for tests, with a log and a clock that do what the test says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from barnabas.coordination.group_coordinator import GroupCoordinator
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from barnabas.testing.no_topics import NoTopics
from tests.coordination.support import Config, ManualClock, MemoryLog, caller

PARTITIONS = 4
GROUP = "g"


class World:
    """A coordinator with a log and a clock of its own."""

    def __init__(self) -> None:
        self.log, self.config, self.clock = MemoryLog(PARTITIONS), Config(), ManualClock()
        self.groups = self.another()

    def another(self, prepare: Callable[[], Awaitable[None]] | None = None) -> GroupCoordinator:
        return GroupCoordinator(self.log, self.config, self.clock, NoTopics(), prepare)

    async def load(self) -> None:
        for partition in range(PARTITIONS):
            await self.groups.load(partition)

    async def commit(self, offset: int, member_id: str = "", generation: int = -1, group_id: str = GROUP) -> ErrorCode:
        committed = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = OffsetCommitRequest(
            group_id=group_id,
            member_id=member_id,
            generation_id_or_member_epoch=generation,
            topics=[OffsetCommitRequestTopic(name="t", partitions=[committed])],
        )
        response = await self.groups.commit_offsets(request, 9)
        return ErrorCode(response.topics[0].partitions[0].error_code)

    async def lose_a_commit(self, offset: int) -> None:
        """The log takes it, and loses it with its leadership before it is committed."""
        self.log.hold = True
        lost = asyncio.ensure_future(self.commit(offset))
        await turns()
        self.log.lose_held(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
            await lost

    async def fetch(self, group_id: str = GROUP) -> int:
        topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
        response = await self.groups.fetch_offsets(OffsetFetchRequestGroup(group_id=group_id, topics=topics))
        return int(response.topics[0].partitions[0].committed_offset)

    async def join(self, fresh_id: str, instance_id: str | None = None, metadata: bytes = b"") -> JoinGroupResponse:
        request = JoinGroupRequest(
            group_id=GROUP,
            group_instance_id=instance_id,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
        )
        return await self.groups.join(request, caller(3, fresh_id))


async def turns(count: int = 5) -> None:
    """Let the loop run what is ready."""
    for _ in range(count):
        await asyncio.sleep(0)
