"""The members of a group, as other brokers report them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from barnabas.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember, DescribeGroupsResponse
from barnabas.server.cluster.peers import ClientError
from barnabas.server.quotas.group_members import GroupMembers


class OlderPeers:
    """A broker that knows groups of the classic protocol alone."""

    async def send(self, broker_id: int, request: object) -> DescribeGroupsResponse:
        if isinstance(request, ConsumerGroupDescribeRequest):
            raise ClientError("it closed the connection")
        member = DescribedGroupMember(client_id="reader", client_host="/10.0.0.1")
        groups = [DescribedGroup(group_id="classic", members=[member]), DescribedGroup(group_id="other", error_code=69)]
        return DescribeGroupsResponse(groups=groups)


async def test_what_is_known_of_classic_groups_is_kept_where_the_others_are_not_told_of() -> None:
    services: Any = SimpleNamespace(config=SimpleNamespace(broker_id=1))
    coordinators: Any = SimpleNamespace(leader_of_group=lambda _: 2)
    members = GroupMembers(services, lambda: {"classic", "other"}, lambda: coordinators)
    peers: Any = OlderPeers()
    members._peers = peers
    await members.refresh()
    assert members.groups_of("reader", "10.0.0.1") == ("classic",)
