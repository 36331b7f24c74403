"""Rights in groups of the consumer protocol: topics are read, found by patterns and described by who may know of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from barnabas.error_codes import ErrorCode
from barnabas.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from barnabas.security.acls import Operation, PatternType, ResourceType
from tests.server.authorization.people import ALICE, acl, guarded
from tests.server.in_process import Client

GROUP_READ = acl(ResourceType.GROUP, "g", Operation.READ)


async def join(client: Client, member_id: str, topics: list[str] | None, regex: str | None = None) -> Any:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=member_id,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=topics,
        subscribed_topic_regex=regex,
    )
    return await client.ask((68, 1), request, ConsumerGroupHeartbeatResponse)


async def describe(client: Client) -> Any:
    answer = await client.ask((69, 1), ConsumerGroupDescribeRequest(group_ids=["g"]), ConsumerGroupDescribeResponse)
    return answer.groups[0]


async def test_who_joins_has_to_know_the_group_and_every_topic_that_he_names(tmp_path: Path) -> None:
    async with guarded(tmp_path) as people:
        await people.admin.create(name="open")
        await people.admin.create(name="hidden")
        alice = await people.connect(ALICE)
        assert (await join(alice, "m", ["open"])).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        await people.allow(GROUP_READ, acl(ResourceType.TOPIC, "open", Operation.DESCRIBE))
        for names in (["open", "hidden"], ["open", "there is none"]):
            assert (await join(alice, "m", names)).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert (await describe(people.admin)).members == [], "nothing was made"
        assert (await join(alice, "m", ["open"])).error_code == ErrorCode.NONE


async def test_a_pattern_finds_what_may_be_described(tmp_path: Path) -> None:
    async with guarded(tmp_path) as people:
        for name in ("logs-a", "logs-b", "other"):
            await people.admin.create(name=name)
        await people.allow(GROUP_READ, acl(ResourceType.TOPIC, "logs-a", Operation.DESCRIBE))
        alice = await people.connect(ALICE)
        joined = await join(alice, "m", None, ".*")
        assert [t.topic_id for t in joined.assignment.topic_partitions] == [people.admin.broker.metadata.topic_id("logs-a")]


async def test_a_group_with_a_hidden_topic_is_not_described(tmp_path: Path) -> None:
    async with guarded(tmp_path) as people:
        await people.admin.create(name="open")
        await people.admin.create(name="hidden")
        assert (await join(people.admin, "m", ["open", "hidden"])).error_code == ErrorCode.NONE
        alice = await people.connect(ALICE)
        assert (await describe(alice)).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        await people.allow(acl(ResourceType.GROUP, "g", Operation.DESCRIBE), acl(ResourceType.TOPIC, "open", Operation.DESCRIBE))
        hidden = await describe(alice)
        assert (hidden.error_code, hidden.members) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])
        await people.allow(acl(ResourceType.TOPIC, "hid", Operation.DESCRIBE, pattern=PatternType.PREFIXED))
        assert len((await describe(alice)).members) == 1
