"""The clients that belong to groups with a quota of their own, because a fetch does not tell its group.

A client belongs to a group if a member of it has the same client id and address. So a group that needs an exact quota must have its own
client id. If two groups share both, the bytes of their members count for both.

Coordinators know the members. This broker asks them every two seconds, on all brokers, and only while a group has a quota.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from barnabas import limits
from barnabas.errors import BarnabasError
from barnabas.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.server.cluster.peers import ClientError, Peers, peers_of

if TYPE_CHECKING:
    from barnabas.coordination.group_coordinator import GroupCoordinator
    from barnabas.server.services import Services

INTERVAL_MS = 2_000
NO_GROUPS: tuple[str, ...] = ()
Clients = set[tuple[str, str]]  # client ids and hosts
logger = logging.getLogger(__name__)


class Coordinators(Protocol):
    """The parts of the coordinators that this module uses."""

    groups: GroupCoordinator

    def leader_of_group(self, group_id: str) -> int | None: ...


class GroupMembers:
    """The members of groups that this broker knows.

    Args:
        names: the groups that have a quota; None stands for all others.
        coordinators: returns the coordinators, which are made later.
    """

    def __init__(
        self, services: Services, names: Callable[[], Collection[str | None]], coordinators: Callable[[], Coordinators]
    ) -> None:
        self._services = services
        self._names = names
        self._coordinators = coordinators
        self._peers: Peers | None = None
        self._groups: Mapping[tuple[str, str], tuple[str, ...]] = {}

    def groups_of(self, client_id: str, host: str) -> tuple[str, ...]:
        """The groups with a quota to which a client belongs."""
        return self._groups.get((client_id, host), NO_GROUPS)

    async def refresh(self) -> None:
        """Ask the coordinators for the current members."""
        names = self._names()
        if not names and not self._groups:
            return
        groups = {name for name in names if name is not None}
        if None in names:
            groups.update(await self._all_groups())
        found: dict[tuple[str, str], list[str]] = {}
        for group_id, clients in (await self._clients_of(sorted(groups)[: limits.MAX_QUOTA_GROUPS])).items():
            for client_id, host in clients:
                found.setdefault((client_id, host.removeprefix("/")), []).append(group_id)
        self._groups = {key: tuple(of_client) for key, of_client in found.items()}

    async def close(self) -> None:
        if self._peers is not None:
            await self._peers.close()

    async def _all_groups(self) -> set[str]:
        try:
            found = {group.group_id for group in await self._coordinators().groups.list_groups()}
        except BarnabasError as error:  # the coordinator still loads its groups
            logger.debug("event=groups-not-listed error=%r", str(error))
            found = set()
        for broker_id in self._others():
            try:
                answer = await self._to_peers().send(broker_id, ListGroupsRequest())
            except ClientError as error:
                logger.debug("event=groups-not-listed broker=%d error=%r", broker_id, str(error))
            else:
                found.update(group.group_id for group in answer.groups)
        return found

    async def _clients_of(self, groups: Iterable[str]) -> dict[str, Clients]:
        """The client ids and hosts of the members of groups."""
        found: dict[str, Clients] = {}
        elsewhere: dict[int, list[str]] = {}
        for group_id in groups:
            leader = self._coordinators().leader_of_group(group_id)
            if leader == self._services.config.broker_id:
                try:
                    found[group_id] = await self._coordinators().groups.clients_of(group_id)
                except BarnabasError as error:  # the group does not exist any more
                    logger.debug("event=group-not-described group=%r error=%r", group_id, str(error))
            elif leader is not None:
                elsewhere.setdefault(leader, []).append(group_id)
        for broker_id, of_leader in elsewhere.items():
            try:
                found.update(await self._clients_at(broker_id, of_leader))
            except ClientError as error:
                logger.debug("event=groups-not-described broker=%d error=%r", broker_id, str(error))
        return found

    async def _clients_at(self, broker_id: int, groups: list[str]) -> dict[str, Clients]:
        """The members of groups on another broker. It asks with both APIs, because the types of the groups are unknown."""
        classic = await self._to_peers().send(broker_id, DescribeGroupsRequest(groups=groups))
        found = {group.group_id: group.members for group in classic.groups if not group.error_code and group.members}
        others = [group_id for group_id in groups if group_id not in found]
        if others:
            try:
                consumers = await self._to_peers().send(broker_id, ConsumerGroupDescribeRequest(group_ids=others))
            except ClientError as error:  # the classic groups are already found
                logger.debug("event=groups-not-described broker=%d error=%r", broker_id, str(error))
            else:
                found.update({group.group_id: group.members for group in consumers.groups if not group.error_code})
        return {group_id: {(m.client_id, m.client_host) for m in members} for group_id, members in found.items()}

    def _others(self) -> list[int]:
        return [broker_id for broker_id in self._services.metadata.brokers if broker_id != self._services.config.broker_id]

    def _to_peers(self) -> Peers:
        if self._peers is None:
            self._peers = peers_of(lambda: self._services.metadata, self._services, "group-quotas")
        return self._peers
