"""Rights in a cluster: made on one broker they hold on all, and what is passed on to the controller is decided for who asked."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from barnabas.cli.bindings import creation_of
from barnabas.client.asynchronous import AsyncClient
from barnabas.client.config import ClientConfig
from barnabas.client.plans import call
from barnabas.client.results import NewTopic
from barnabas.cluster.membership.commands import NotController
from barnabas.error_codes import ErrorCode
from barnabas.protocol.base_message import Message
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.records.batch import Record, build_batch
from barnabas.security.acls import AclFilter, Operation, ResourceType
from barnabas.server.authorization.access_control import STANDARD
from barnabas.testing.certificates import Certificates
from tests.server.authorization.people import acl
from tests.server.cluster.in_process import Cluster, running

BROKER = 4  # a resource type that has settings
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SETTINGS = {
    "listeners": "SECURE://127.0.0.1:0",
    "listener.security.protocol.map": "SECURE:SASL_PLAINTEXT",
    "inter.broker.listener.name": "SECURE",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.jaas.config": f"{LOGIN} username=broker password=geheim user_broker=geheim user_admin=pw user_alice=pw;",
    "authorizer.class.name": STANDARD,
    "super.users": "User:broker;User:admin",
}


def client(cluster: Cluster, user: str, broker_id: int) -> AsyncClient:
    servers = f"127.0.0.1:{cluster.brokers[broker_id].endpoints[0].port}"
    shown = {"sasl.mechanism": "PLAIN", "sasl.username": user, "sasl.password": "pw"}
    return AsyncClient(ClientConfig.from_options({"bootstrap.servers": servers, "security.protocol": "SASL_PLAINTEXT", **shown}))


async def ask(asking: AsyncClient, request: Message) -> Any:
    """The answer of the broker that the client knows first."""
    return await asking.run(call(request))


async def test_rights_hold_on_every_broker(tmp_path: Path) -> None:
    async with running(tmp_path, count=2, **SETTINGS) as cluster:
        follower = next(
            i for i, broker in cluster.brokers.items() if broker.member is not None and not broker.member.is_controller
        )
        async with client(cluster, "admin", follower) as admin, client(cluster, "alice", follower) as alice:
            await admin.create_topics([NewTopic("t", 2, 2)])
            wanted = CreateTopicsRequest(
                topics=[CreatableTopic(name="mine", num_partitions=1, replication_factor=1)], timeout_ms=9000
            )
            answer = await ask(alice, wanted)
            # the controller checked the rights of alice
            assert answer.topics[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            rights = (("t", Operation.WRITE), ("mine", Operation.CREATE))
            answer = await ask(admin, creation_of(acl(ResourceType.TOPIC, name, operation) for name, operation in rights))
            assert [result.error_code for result in answer.results] == [0, 0]
            mine = AclFilter(principal="User:alice")
            brokers = cluster.brokers.values()
            await cluster.until(lambda: all(b.authorizer and len(b.authorizer.matching(mine)) == 2 for b in brokers))
            assert (await ask(alice, wanted)).topics[0].error_code == 0
            for partition in range(2):
                await alice.produce("t", partition, build_batch([Record(0, 0, None, b"hello")]))
        copies = [broker.partitions.get("t", number) for broker in cluster.brokers.values() for number in range(2)]
        await cluster.until(
            lambda: all(copy is not None and not copy.is_offline and copy.log.log_end_offset == 1 for copy in copies)
        )


async def test_what_is_denied_is_answered_though_the_controller_tries_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, count=1, **SETTINGS) as cluster:
        member = cluster.controller.member
        assert member is not None
        create, tries = member.create_topics, []

        async def create_the_second_time(*wanted: Any, **how: Any) -> Any:
            tries.append(wanted)
            if len(tries) == 1:
                raise NotController
            return await create(*wanted, **how)

        async with client(cluster, "admin", 1) as admin, client(cluster, "alice", 1) as alice:
            await ask(admin, creation_of([acl(ResourceType.TOPIC, "mine", Operation.CREATE)]))
            monkeypatch.setattr(member, "create_topics", create_the_second_time)
            topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in ("mine", "theirs")]
            answer = await ask(alice, CreateTopicsRequest(topics=topics, timeout_ms=9000))
        assert {topic.name: topic.error_code for topic in answer.topics} == {
            "mine": ErrorCode.NONE,
            "theirs": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        }
        assert len(tries) == 2


async def test_no_file_is_opened_that_a_refused_change_names(tmp_path: Path) -> None:
    """A pipe tells: whoever opens it to write waits for somebody who reads."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    secured = {**SETTINGS, **Certificates(tmp_path / "authority").broker_settings}
    secured["listeners"] += ",SSL://127.0.0.1:0"
    secured["listener.security.protocol.map"] += ",SSL:SSL"
    with ThreadPoolExecutor(1) as thread:
        opened = thread.submit(lambda: os.close(os.open(pipe, os.O_WRONLY)))
        try:
            async with running(tmp_path / "cluster", count=2, **secured) as cluster:
                for broker_id in cluster.brokers:
                    change = AlterableConfig(name="listener.name.ssl.ssl.keystore.location", config_operation=0, value=str(pipe))
                    resource = AlterConfigsResource(resource_type=BROKER, resource_name=str(broker_id), configs=[change])
                    async with client(cluster, "alice", broker_id) as alice:
                        answer = await ask(alice, IncrementalAlterConfigsRequest(resources=[resource]))
                    assert [each.error_code for each in answer.responses] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
            assert not opened.done()
        finally:
            reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
            opened.result()
            os.close(reader)
