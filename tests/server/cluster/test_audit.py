"""The audit log of a cluster: what is decided on any broker is in one topic, also where another broker leads it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from barnabas.cli.bindings import creation_of
from barnabas.client.asynchronous import AsyncClient
from barnabas.client.results import NewTopic
from barnabas.error_codes import ErrorCode
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.records.batch import iterate_records, split_batches
from barnabas.security.acls import AUDIT_TOPIC, CLUSTER_NAME, Operation, ResourceType
from tests.server.authorization.people import acl
from tests.server.cluster.in_process import running
from tests.server.cluster.test_acls import SETTINGS, ask, client
from tests.waiting import WITHIN_S

AUDITED = {**SETTINGS, "super.users": "User:admin", "audit.log.topic.enable": "true", "audit.log.data.sample.rate": "1"}


async def entries(admin: AsyncClient) -> list[dict[str, Any]]:
    """All that is in the topic."""
    data = bytes((await admin.fetch(AUDIT_TOPIC, 0, 0)).records)
    return [json.loads(r.value or b"") for at, _ in split_batches(data) for r in iterate_records(data, at)]


async def test_all_brokers_write_to_one_topic(tmp_path: Path) -> None:
    """They log in as somebody who has the right of brokers and no other."""
    async with running(tmp_path, count=3, **AUDITED) as cluster:
        controller = next(i for i, broker in cluster.brokers.items() if broker is cluster.controller)
        async with client(cluster, "admin", controller) as admin:
            mine = acl(ResourceType.CLUSTER, CLUSTER_NAME, Operation.CLUSTER_ACTION, principal="User:broker")
            assert (await ask(admin, creation_of([mine]))).results[0].error_code == 0
            await admin.create_topics([NewTopic("t", 1, 1)])
            for broker_id in cluster.brokers:
                async with client(cluster, "alice", broker_id) as alice:
                    refused = await ask(alice, MetadataRequest(topics=[MetadataRequestTopic(name="t")]))
                assert refused.topics[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            await cluster.until(lambda: cluster.controller.metadata.topic(AUDIT_TOPIC) is not None)
            async with asyncio.timeout(WITHIN_S):
                found: list[dict[str, Any]] = []
                while {entry["broker"] for entry in found if entry["principal"] == "User:alice"} != {1, 2, 3}:
                    found = await entries(admin)
        kept = [entry for entry in found if entry["name"] == AUDIT_TOPIC]
        assert {(entry["principal"], entry["operation"]) for entry in kept} <= {
            ("User:admin", "READ"),
            ("User:admin", "DESCRIBE"),
            ("User:broker", "CREATE"),  # if a broker other than the controller writes first
        }
