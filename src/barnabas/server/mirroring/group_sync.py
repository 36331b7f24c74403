"""Commits offsets of groups of the source here, for the groups that this broker coordinates, while nobody consumes in them.

A group with members here refuses a commit from outside, so its own offsets stay. Groups of the classic and of the consumer protocol
(KIP-848) are copied. The state of share groups is not in committed offsets, so they are only told.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from typing import TYPE_CHECKING, Protocol

from barnabas.client import operations
from barnabas.client.errors import ClientError
from barnabas.client.plans import Call
from barnabas.config.mirror_settings import MIRROR_LINK, MIRROR_STATE, OF_FAILBACK
from barnabas.error_codes import code_name
from barnabas.errors import ErrorCode, KafkaError
from barnabas.mirror.groups import WITHOUT_OFFSETS, Committed, GroupOffsets, Partition, summary
from barnabas.mirror.status import refusal
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from barnabas.protocol.partitions import by_topic
from barnabas.server.cluster.peers import Peers, peers_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from barnabas.client.asynchronous import AsyncClient
    from barnabas.coordination.group_coordinator import GroupCoordinator
    from barnabas.mirror.link import Link
    from barnabas.server.services import Services

    class Coordinators(Protocol):
        """The groups of this broker."""

        groups: GroupCoordinator

        def leader_of_group(self, group_id: str) -> int | None:
            """The broker that coordinates a group; None before the topic of offsets exists."""
            ...


logger = logging.getLogger(__name__)
LATEST = NO_EPOCH = -1
LAST_VERSION_WITH_NAMES = 9  # of OffsetFetch and OffsetCommit
HAS_MEMBERS = "they have members here, and keep their own offsets"
GROUPS_AT_ONCE = 100  # of one OffsetFetch


class GroupSync:
    """The groups of one link."""

    def __init__(self, services: Services, coordinators: Coordinators, link: Link) -> None:
        self._services = services
        self._coordinators = coordinators
        self._link = link
        self._offsets = GroupOffsets()
        self._peers: Peers | None = None
        # Groups that were found in this round and are not copied, by what they are and the reason
        self._left_out: dict[tuple[str, str], set[str]] = {}
        self._is_complete = True  # no offset was refused in this round
        self.not_followed: dict[str, str] = {}  # groups that the last round could not copy, with the reason

    async def close(self) -> None:
        if self._peers is not None:
            await self._peers.close()

    async def sync(self, client: AsyncClient) -> bool:
        """Commit what has changed in the source; returns whether the source told all offsets, and all were accepted here.

        Raises:
            ClientError: the source does not answer.
        """
        metadata = self._services.metadata
        self._offsets.forget({name for name in metadata.topics if metadata.topic_config(name).get(MIRROR_STATE) in OF_FAILBACK})
        await client.run(operations.refresh(client.config, client.cluster, []))
        kept: set[str] = set()
        self._left_out, self._is_complete = defaultdict(set), True
        for broker_id in list(client.cluster.brokers):
            groups = [group for group in await self._groups_at(client, broker_id) if await self._is_ours(group)]
            kept.update(groups)
            for start in range(0, len(groups), GROUPS_AT_ONCE):
                await self._sync_some(client, broker_id, groups[start : start + GROUPS_AT_ONCE])
        self._offsets.keep(kept)
        self.not_followed = {f"{what} ({summary(names)})": why for (what, why), names in sorted(self._left_out.items())}
        return self._is_complete

    async def _groups_at(self, client: AsyncClient, broker_id: int) -> list[str]:
        """The groups that a broker of the source coordinates and that the link copies."""
        answer = await client.request(Call(ListGroupsRequest(), broker_id))
        found = []
        for group in answer.groups:
            if not self._link.copies_group(group.group_id):
                continue
            kind = group.group_type.lower()  # Kafka writes it both ways
            if kind in WITHOUT_OFFSETS:
                self._left_out[WITHOUT_OFFSETS[kind], "this cluster has none"].add(group.group_id)
            else:
                found.append(group.group_id)
        return found

    async def _is_ours(self, group: str) -> bool:
        leader = self._coordinators.leader_of_group(group)
        if leader is None and self._services.controller.is_controller:
            await self._coordinators.groups.prepare()
            leader = self._coordinators.leader_of_group(group)
        return leader == self._services.config.broker_id

    async def _sync_some(self, client: AsyncClient, broker_id: int, groups: list[str]) -> None:
        found: dict[str, dict[Partition, Committed]] = {}
        wanted = [OffsetFetchRequestGroup(group_id=group, topics=None, member_epoch=-1) for group in groups]
        request = OffsetFetchRequest(groups=wanted, topics=None)
        answer = await client.request(Call(request, broker_id, LAST_VERSION_WITH_NAMES, 8))
        for group in answer.groups:
            if group.error_code:
                self._leave_out(group.group_id, refusal(group.error_code))
                continue
            found[group.group_id] = {
                (self._link.local_name(topic.name), item.partition_index): Committed(item.committed_offset, item.metadata or "")
                for topic in group.topics
                for item in topic.partitions
                if not item.error_code and self._is_copy(self._link.local_name(topic.name))
            }
        ends = await self._ends(dict.fromkeys(each for offsets in found.values() for each in offsets))
        await asyncio.gather(*(self._follow(name, theirs, ends) for name, theirs in found.items() if theirs))

    async def _follow(self, group: str, theirs: Mapping[Partition, Committed], ends: Mapping[Partition, int]) -> None:
        if not self._offsets.knows(group):
            self._offsets.committed(group, await self._committed_here(group))
        due = self._offsets.due(group, theirs, ends)
        if not due:
            return
        accepted, refused = await self._commit(group, due)
        self._offsets.committed(group, accepted)
        for code in refused:
            reason = HAS_MEMBERS if code == ErrorCode.UNKNOWN_MEMBER_ID else f"the brokers here answer {code_name(code)}"
            self._leave_out(group, reason)

    def _leave_out(self, group: str, reason: str) -> None:
        self._left_out["groups", reason].add(group)
        self._is_complete = False

    async def _committed_here(self, group: str) -> dict[Partition, Committed]:
        request = OffsetFetchRequestGroup(group_id=group, topics=None, member_epoch=-1)
        try:
            answer = await self._coordinators.groups.fetch_offsets(request)
        except KafkaError as error:
            logger.debug("event=mirror-group-not-read group=%r error=%r", group, str(error))
            return {}
        return {
            (topic.name, item.partition_index): Committed(item.committed_offset, item.metadata or "")
            for topic in answer.topics
            for item in topic.partitions
            if not item.error_code
        }

    def _is_copy(self, topic: str) -> bool:
        settings = self._services.metadata.topic_config(topic)
        return settings.get(MIRROR_LINK) == self._link.name and settings.get(MIRROR_STATE) not in OF_FAILBACK

    async def _commit(self, group: str, offsets: Mapping[Partition, Committed]) -> tuple[dict[Partition, Committed], set[int]]:
        """Commit offsets here; returns those that were accepted, and the errors of the others."""
        topics: dict[str, list[OffsetCommitRequestPartition]] = defaultdict(list)
        for (topic, partition), found in offsets.items():
            item = OffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=found.offset,
                committed_leader_epoch=NO_EPOCH,
                committed_metadata=found.metadata,
            )
            topics[topic].append(item)
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=-1,
            member_id="",
            topics=[OffsetCommitRequestTopic(name=name, partitions=items) for name, items in topics.items()],
        )
        try:
            answer = await self._coordinators.groups.commit_offsets(request, LAST_VERSION_WITH_NAMES)
        except KafkaError as error:
            logger.debug("event=mirror-group-not-committed group=%r error=%r", group, str(error))
            return {}, {error.code}
        codes = {(topic.name, item.partition_index): item.error_code for topic in answer.topics for item in topic.partitions}
        return {each: found for each, found in offsets.items() if not codes[each]}, {*codes.values()} - {ErrorCode.NONE}

    # The ends of copies

    async def _ends(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The high watermarks of the copies; of those that other brokers lead, as far as these answer."""
        ends: dict[Partition, int] = {}
        elsewhere: dict[int, list[Partition]] = defaultdict(list)
        for topic, index in partitions:
            local = self._services.partitions.get(topic, index)
            if local is not None and not local.is_offline and local.is_leader:
                ends[topic, index] = local.high_watermark
                continue
            state = self._services.metadata.partition(topic, index)
            if state is not None:
                elsewhere[state.leader].append((topic, index))
        for leader, theirs in elsewhere.items():
            ends.update(await self._ends_at(leader, theirs))
        return ends

    async def _ends_at(self, leader: int, partitions: list[Partition]) -> dict[Partition, int]:
        services = self._services
        if self._peers is None:
            self._peers = peers_of(lambda: services.metadata, services, "mirror-offsets")
        topics = [
            ListOffsetsTopic(
                name=name,
                partitions=[
                    ListOffsetsPartition(partition_index=index, current_leader_epoch=-1, timestamp=LATEST) for index in indexes
                ],
            )
            for name, indexes in by_topic(partitions).items()
        ]
        try:
            answer = await self._peers.send(leader, ListOffsetsRequest(replica_id=-1, topics=topics))
        except ClientError:
            return {}  # the next round asks again
        return {
            (topic.name, item.partition_index): item.offset
            for topic in answer.topics
            for item in topic.partitions
            if item.error_code == ErrorCode.NONE
        }
