"""The group coordinator: handles requests about groups.

It passes a request to the group's shard of `__consumer_offsets`; `runtime.py` writes the shard's records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Set
from contextlib import suppress
from functools import partial

from barnabas.clock import Clock
from barnabas.coordination.consumer.group import ConsumerGroup
from barnabas.coordination.consumer.interfaces import Topics
from barnabas.coordination.group_shard import GroupShard
from barnabas.coordination.hosted_shard import HostedShard, Phase, shielded
from barnabas.coordination.interfaces import CoordinatorLog, EndMarker
from barnabas.coordination.result import Caller, GroupConfig
from barnabas.coordination.runtime import CoordinatorRuntime
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import consumer_group_describe
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
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
        prepare: creates the topic and loads the partitions that this broker leads; called before the first request if nothing
            is loaded.
        topics: the metadata for consumer groups.
        is_coming: see `CoordinatorRuntime`.
    """

    def __init__(
        self,
        log_: CoordinatorLog,
        config: GroupConfig,
        clock: Clock,
        topics: Topics,
        prepare: Callable[[], Awaitable[None]] | None = None,
        is_coming: Callable[[int], bool] | None = None,
    ) -> None:
        self._runtime: CoordinatorRuntime[GroupShard] = CoordinatorRuntime(
            "group",
            log_,
            clock,
            lambda _, now: GroupShard(config, now, topics),
            config.offsets_commit_timeout_ms,
            prepare,
            loaded=self._make_up,
            is_coming=is_coming,
        )

    async def load(self, partition: int, ready: Callable[[], Awaitable[None]] | None = None) -> None:
        """This broker became leader of `partition`: read it after `ready` has returned, then serve its groups."""
        await self._runtime.load(partition, ready)

    def unload(self, partition: int) -> None:
        """Another broker leads `partition`: waiting requests get NOT_COORDINATOR."""
        self._runtime.unload(partition)

    async def prepare(self) -> None:
        """Ensure that the topic exists and is loaded; concurrent calls share one attempt."""
        await self._runtime.prepare()

    def close(self) -> None:
        """Refuse all waiting requests and stop."""
        self._runtime.close()

    def partition_of(self, group_id: str) -> int:
        return self._runtime.partition_of(group_id)

    @property
    def group_count(self) -> int:
        return len(self._runtime)

    def committed_offsets(self) -> Iterator[tuple[str, str, int, int]]:
        """Group, topic, partition and offset of every commit, to measure lag."""
        for hosted in self._runtime:
            yield from hosted.shard.offsets.all()

    @property
    def shards(self) -> dict[int, GroupShard]:
        """The loaded shards by partition."""
        return self._runtime.active()

    # -- membership -----------------------------------------------------------------------------------------------------

    async def join(self, request: JoinGroupRequest, caller: Caller) -> JoinGroupResponse:
        await self._runtime.prepare()
        token: asyncio.Future[JoinGroupResponse] = asyncio.get_running_loop().create_future()
        return await self._runtime.post(request.group_id, token, lambda shard, now: shard.join(request, caller, token, now))

    async def sync(self, request: SyncGroupRequest) -> SyncGroupResponse:
        hosted = self._runtime.hosted_for(request.group_id)
        token: asyncio.Future[SyncGroupResponse] = asyncio.get_running_loop().create_future()
        response = await self._runtime.post(request.group_id, token, lambda shard, now: shard.sync(request, token, now))
        await self._settled(hosted, request.group_id)
        return response

    async def heartbeat(self, request: HeartbeatRequest) -> HeartbeatResponse:
        try:
            hosted = self._runtime.hosted_for(request.group_id)
        except KafkaError as error:
            if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                return HeartbeatResponse()  # clients cannot handle this error; sessions start after loading
            raise
        try:
            return self._runtime.ask(hosted, lambda: hosted.shard.heartbeat(request, self._runtime.now()))
        finally:
            self._runtime.arm(hosted)
            await self._settled(hosted, request.group_id)

    async def _settled(self, hosted: HostedShard[GroupShard], group_id: str) -> None:
        """If the group is a consumer group, wait for its records to be committed. They contain the classic members too, so
        responses and refusals to these depend on them."""
        if isinstance(hosted.shard.groups.get(group_id), ConsumerGroup):
            await self._runtime.settled(hosted)

    async def leave(self, request: LeaveGroupRequest) -> LeaveGroupResponse:
        response: LeaveGroupResponse = await self._runtime.write(request.group_id, lambda shard, now: shard.leave(request, now))
        return response

    async def consumer_heartbeat(self, request: ConsumerGroupHeartbeatRequest, caller: Caller) -> ConsumerGroupHeartbeatResponse:
        await self._runtime.prepare()
        response: ConsumerGroupHeartbeatResponse = await self._runtime.write(
            request.group_id, lambda shard, now: shard.consumer_heartbeat(request, caller, now)
        )
        return response

    # -- offsets --------------------------------------------------------------------------------------------------------

    async def commit_offsets(self, request: OffsetCommitRequest, api_version: int) -> OffsetCommitResponse:
        await self._runtime.prepare()
        response: OffsetCommitResponse = await self._runtime.write(
            request.group_id, lambda shard, now: shard.commit_offsets(request, api_version, now)
        )
        return response

    async def commit_offsets_in_transaction(self, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
        await self._runtime.prepare()
        response: TxnOffsetCommitResponse = await self._runtime.write(
            request.group_id, lambda shard, now: shard.commit_offsets_in_transaction(request, now)
        )
        return response

    def end_transaction(self, partition: int, marker: EndMarker) -> asyncio.Future[None] | None:
        """Like `CoordinatorRuntime.end_transaction`."""
        return self._runtime.end_transaction(partition, marker)

    async def fetch_offsets(self, request: OffsetFetchRequestGroup, *, require_stable: bool = False) -> OffsetFetchResponseGroup:
        await self._runtime.prepare()
        return await self._runtime.read(
            request.group_id, lambda shard: shard.fetch_offsets(request, require_stable=require_stable)
        )

    async def delete_offsets(self, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
        response: OffsetDeleteResponse = await self._runtime.write(
            request.group_id, lambda shard, _: shard.delete_offsets(request)
        )
        return response

    async def delete_topics(self, names: Iterable[str]) -> None:
        """Topics were deleted: delete their committed offsets, if the shards' logs accept it. A loading shard does so after
        loading."""
        gone = set(names)
        commits = []
        for hosted in list(self._runtime):
            if hosted.phase is Phase.LOADING:
                hosted.missed_deletions |= gone
            else:
                commits += self._forget_topics(hosted, gone)
        for commit in commits:
            if commit is not None:
                with suppress(KafkaError):  # already logged; the shard reads its log again
                    await shielded(commit)

    def _forget_topics(self, hosted: HostedShard[GroupShard], gone: Set[str]) -> list[asyncio.Future[None] | None]:
        outcomes = self._runtime.ask(hosted, partial(hosted.shard.delete_topics, gone))
        return [self._runtime.carry_out_quietly(hosted, outcome) for outcome in outcomes]

    def _make_up(self, hosted: HostedShard[GroupShard]) -> None:
        """Apply events that a shard missed while it was loading."""
        if hosted.missed_deletions:
            self._forget_topics(hosted, hosted.missed_deletions)

    # -- groups ---------------------------------------------------------------------------------------------------------

    async def delete_group(self, group_id: str) -> None:
        await self._runtime.write(group_id, lambda shard, _: shard.delete_group(group_id))

    async def describe(self, group_id: str) -> DescribedGroup:
        return await self._runtime.read(group_id, lambda shard: shard.describe(group_id))

    async def describe_consumers(self, group_id: str) -> consumer_group_describe.DescribedGroup:
        return await self._runtime.read(group_id, lambda shard: shard.describe_consumers(group_id))

    async def clients_of(self, group_id: str) -> set[tuple[str, str]]:
        """Client ids and hosts of the members of a group of any type."""
        return await self._runtime.read(group_id, lambda shard: shard.clients_of(group_id))

    async def list_groups(self) -> list[ListedGroup]:
        """Every group of this coordinator; raises COORDINATOR_LOAD_IN_PROGRESS while a shard is loading."""
        hosted_shards = list(self._runtime)
        if any(hosted.phase is Phase.LOADING for hosted in hosted_shards):
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        listed = [
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                group_state=group.state_name,
                group_type=group.group_type.value,
            )
            for hosted in hosted_shards
            for group in hosted.shard.groups.values()
        ]
        for hosted in hosted_shards:
            await self._runtime.settled(hosted)
        return listed
