"""The rights that a failback needs: the link belongs to the cluster, and the cut deletes records."""

from __future__ import annotations

from pathlib import Path

from barnabas.error_codes import ErrorCode
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.protocol.values import ResourceType as ConfigResourceType
from barnabas.security.acls import CLUSTER_NAME, Operation, ResourceType
from tests.server.authorization.people import ALICE, acl, guarded
from tests.server.in_process import TOPIC, Client

ALTER_CONFIGS = (44, 1)


async def change(client: Client, **settings: str) -> int:
    configs = [AlterableConfig(name=name.replace("_", "."), config_operation=0, value=value) for name, value in settings.items()]
    resource = AlterConfigsResource(resource_type=ConfigResourceType.TOPIC, resource_name=TOPIC, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    answer = await client.ask(ALTER_CONFIGS, request, IncrementalAlterConfigsResponse)
    return int(answer.responses[0].error_code)


async def test_a_topic_gets_a_link_only_with_rights_on_the_cluster(tmp_path: Path) -> None:
    async with guarded(tmp_path) as people:
        await people.admin.create()
        alice = await people.connect(ALICE)
        await people.allow(acl(ResourceType.TOPIC, TOPIC, Operation.ALTER_CONFIGS))
        assert await change(alice, retention_ms="5") == 0
        assert await change(alice, mirror_link="back", mirror_state="inspecting") == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        await people.allow(acl(ResourceType.CLUSTER, CLUSTER_NAME, Operation.ALTER_CONFIGS))
        assert (
            await change(alice, mirror_link="back", mirror_state="inspecting") == ErrorCode.INVALID_CONFIG
        )  # there is no such link


async def test_records_are_cut_off_only_with_the_right_to_delete_them(tmp_path: Path) -> None:
    async with guarded(tmp_path) as people:
        await people.admin.create()
        alice = await people.connect(ALICE)
        await people.allow(acl(ResourceType.TOPIC, TOPIC, Operation.ALTER_CONFIGS))
        assert await change(alice, mirror_state="truncating") == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        await people.allow(acl(ResourceType.TOPIC, TOPIC, Operation.DELETE))
        assert await change(alice, mirror_state="truncating") == ErrorCode.INVALID_CONFIG  # it has no link
