"""Rights of a cluster, read over the wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
)
from confluent_kafka.admin import (
    ResourceType as Kind,
)

from barnabas import limits
from barnabas.cli.broker import STANDARD_AUTHORIZER
from barnabas.client.config import ClientConfig
from barnabas.security.acls import CLUSTER, Operation, Resource, ResourceType
from barnabas.security.rights import ClusterRights, RightsUnknown
from barnabas.testing import Broker

SECURED = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:service"}
USERS = {"service": "of-the-service", "weak": "of-weak"}
ORDERS = Resource(ResourceType.TOPIC, "orders")


@asynccontextmanager
async def reading(
    broker: Broker, user: str | None = None, settings: Mapping[str, str] | None = None
) -> AsyncIterator[ClusterRights]:
    login = {} if user is None else broker.login(user)
    rights = ClusterRights(ClientConfig.from_options({"bootstrap.servers": broker.bootstrap_servers, **login}), settings)
    try:
        yield rights
    finally:
        await rights.close()


def give(broker: Broker, operation: AclOperation, host: str = "*") -> None:
    """A right of alice's on the topic `orders`."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, **broker.login("service")})
    allow = AclPermissionType.ALLOW
    acl = AclBinding(Kind.TOPIC, "orders", ResourcePatternType.LITERAL, "User:alice", host, operation, allow)
    admin.create_acls([acl])[acl].result()


async def test_bindings_decide_and_new_ones_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def may(operation: Operation, host: str = "127.0.0.1") -> bool:
        return rights.allows("User:alice", host, operation, ORDERS)

    monkeypatch.setattr(limits, "ACLS_TIMEOUT_S", 2.0)
    with Broker(SECURED, users=USERS) as broker:
        await asyncio.to_thread(give, broker, AclOperation.READ)
        async with reading(broker, "service") as rights:
            await asyncio.gather(*(rights.refresh() for _ in range(5)))
            assert may(Operation.DESCRIBE)
            assert not may(Operation.WRITE)
            assert rights.allows("User:service", "h", Operation.ALTER, CLUSTER), "a super user of the broker"
            await asyncio.to_thread(give, broker, AclOperation.WRITE, "10.0.0.1")
            assert not await rights.renew(), "it has just been read"
            monkeypatch.setattr(limits, "ACLS_RETRY_S", 0.0)
            assert await rights.renew()
            assert may(Operation.WRITE, "10.0.0.1")
            assert not may(Operation.WRITE)
            broker.kill()
            await rights.refresh()
            await rights.renew()
            assert may(Operation.DESCRIBE), "the last bindings hold for a while"
            for limit in ("ACLS_VALID_S", "ACLS_KEPT_S"):
                monkeypatch.setattr(limits, limit, 0.0)
            for ask in (rights.refresh, rights.renew):
                with pytest.raises(RightsUnknown, match="cannot be read"):
                    await ask()


async def test_without_an_authorizer_everybody_may_do_everything() -> None:
    with Broker() as broker:
        async with reading(broker) as rights:
            await rights.refresh()
            assert rights.allows("User:anybody", "h", Operation.ALTER, CLUSTER)


async def test_a_service_needs_the_right_to_read_bindings() -> None:
    with Broker(SECURED, users=USERS) as broker:
        async with reading(broker, "weak") as rights:
            with pytest.raises(RightsUnknown, match="CLUSTER_AUTHORIZATION_FAILED"):
                await rights.refresh()


async def test_super_users_may_be_given() -> None:
    with Broker({**SECURED, "super.users": "User:service"}, users=USERS) as broker:
        async with reading(broker, "service", {"super.users": "User:root; User:boss"}) as rights:
            await rights.refresh()
            assert rights.allows("User:boss", "h", Operation.ALTER, CLUSTER)
            assert not rights.allows("User:service", "h", Operation.ALTER, CLUSTER)
