"""The group coordinator: what a broker does with requests about groups.

It finds the shard of `__consumer_offsets` that a group belongs to and has it answer; `shards.py` writes what the shard wants written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator

from barnabas.clock import Clock
from barnabas.coordination.outcome import Caller, GroupConfig
from barnabas.coordination.seams import CoordinatorLog, EndMarker
from barnabas.coordination.shard import GroupShard
from barnabas.coordination.shards import Phase, Shards, shielded
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.describe_groups import DescribedGroup
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.protocol.messages.list_groups import ListedGroup
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse


class GroupCoordinator:
    """The groups of one broker.

    Args:
        prepare: makes the topic and loads what is led here; called before the first request when nothing has been loaded.
    """

    def __init__(
        self, log_: CoordinatorLog, config: GroupConfig, clock: Clock, prepare: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self._shards: Shards[GroupShard] = Shards("group", log_, clock, lambda _, now: GroupShard(config, now), prepare)

    async def load(self, partition: int, ready: Callable[[], Awaitable[None]] | None = None) -> None:
        """This broker leads `partition` now: read it, when `ready` has returned, and serve its groups from then on."""
        await self._shards.load(partition, ready)

    def unload(self, partition: int) -> None:
        """Another broker leads `partition`: whoever waits here is sent there."""
        self._shards.unload(partition)

    async def prepare(self) -> None:
        """See to it that the topic exists and is loaded, once, whoever asks."""
        await self._shards.prepare()

    def close(self) -> None:
        """Send everybody away; nothing of this object runs afterwards."""
        self._shards.close()

    def partition_of(self, group_id: str) -> int:
        return self._shards.partition_of(group_id)

    @property
    def group_count(self) -> int:
        return len(self._shards)

    def committed_offsets(self) -> Iterator[tuple[str, str, int, int]]:
        """Group, topic, partition and offset of every commit, for those who measure lag."""
        for led in self._shards:
            yield from led.shard.offsets.all()

    @property
    def shards(self) -> dict[int, GroupShard]:
        """The shards that serve, by partition."""
        return self._shards.active()

    # -- membership -----------------------------------------------------------------------------------------------------

    async def join(self, request: JoinGroupRequest, caller: Caller) -> JoinGroupResponse:
        await self._shards.prepare()
        led = self._shards.led_for(request.group_id)
        token: asyncio.Future[JoinGroupResponse] = asyncio.get_running_loop().create_future()
        self._shards.carry_out_quietly(
            led, self._shards.ask(led, lambda: led.shard.join(request, caller, token, self._shards.now()))
        )
        return await token

    async def sync(self, request: SyncGroupRequest) -> SyncGroupResponse:
        led = self._shards.led_for(request.group_id)
        token: asyncio.Future[SyncGroupResponse] = asyncio.get_running_loop().create_future()
        self._shards.carry_out_quietly(led, self._shards.ask(led, lambda: led.shard.sync(request, token, self._shards.now())))
        return await token

    async def heartbeat(self, request: HeartbeatRequest) -> HeartbeatResponse:
        led = self._shards.led_for(request.group_id)
        response = led.shard.heartbeat(request, self._shards.now())
        self._shards.arm(led)
        return response

    async def leave(self, request: LeaveGroupRequest) -> LeaveGroupResponse:
        led = self._shards.led_for(request.group_id)
        outcome = self._shards.ask(led, lambda: led.shard.leave(request, self._shards.now()))
        response: LeaveGroupResponse = await self._shards.perform(led, outcome)
        return response

    # -- offsets --------------------------------------------------------------------------------------------------------

    async def commit_offsets(self, request: OffsetCommitRequest, api_version: int) -> OffsetCommitResponse:
        await self._shards.prepare()
        led = self._shards.led_for(request.group_id)
        response: OffsetCommitResponse = await self._shards.perform(
            led, led.shard.commit_offsets(request, api_version, self._shards.now())
        )
        return response

    async def commit_offsets_in_transaction(self, request: TxnOffsetCommitRequest, api_version: int) -> TxnOffsetCommitResponse:
        await self._shards.prepare()
        led = self._shards.led_for(request.group_id)
        outcome = led.shard.commit_offsets_in_transaction(request, api_version, self._shards.now())
        response: TxnOffsetCommitResponse = await self._shards.perform(led, outcome)
        return response

    async def end_transaction(self, partition: int, marker: EndMarker) -> None:
        """As `Shards.end_transaction`."""
        await self._shards.end_transaction(partition, marker)

    async def fetch_offsets(self, request: OffsetFetchRequestGroup, *, require_stable: bool = False) -> OffsetFetchResponseGroup:
        await self._shards.prepare()
        led = self._shards.led_for(request.group_id)
        response = led.shard.fetch_offsets(request, require_stable=require_stable)
        await self._shards.settled(led)
        return response

    async def delete_offsets(self, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
        led = self._shards.led_for(request.group_id)
        response: OffsetDeleteResponse = await self._shards.perform(led, led.shard.delete_offsets(request))
        return response

    async def delete_topics(self, names: Iterable[str]) -> None:
        """Topics were deleted: forget the offsets that were committed for them."""
        gone = list(names)
        active = [led for led in self._shards if led.phase is Phase.ACTIVE]
        commits = [self._shards.carry_out(led, led.shard.delete_topics(gone)) for led in active]
        for commit in commits:
            if commit is not None:
                await shielded(commit)

    # -- groups ---------------------------------------------------------------------------------------------------------

    async def delete_group(self, group_id: str) -> None:
        led = self._shards.led_for(group_id)
        await self._shards.perform(led, led.shard.delete_group(group_id))

    async def describe(self, group_id: str) -> DescribedGroup:
        led = self._shards.led_for(group_id)
        described = led.shard.describe(group_id)
        await self._shards.settled(led)
        return described

    async def list_groups(self) -> list[ListedGroup]:
        """Every group that is coordinated here; raises COORDINATOR_LOAD_IN_PROGRESS while any part of them is not known yet."""
        leds = list(self._shards)
        if any(led.phase is Phase.LOADING for led in leds):
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        listed = [
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                group_state=group.state_name,
                group_type=group.group_type.value,
            )
            for led in leds
            for group in led.shard.groups.values()
        ]
        for led in leds:
            await self._shards.settled(led)
        return listed
