"""A broker with an authorizer, and people connected to it; who they are is set on their connections, for logins are tested elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from barnabas.cli.bindings import creation_of
from barnabas.protocol.messages.create_acls import CreateAclsResponse
from barnabas.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from barnabas.security.acls import Acl, Operation, PatternType, Permission, ResourceType
from barnabas.server.authorization.access_control import STANDARD
from tests.server.in_process import Client, running
from tests.waiting import until

ADMIN, ALICE = "User:admin", "User:alice"
CREATE_ACLS, DELETE_ACLS = (30, 3), (31, 3)
ANY = 1


def acl(
    kind: ResourceType,
    name: str,
    operation: Operation,
    *,
    principal: str = ALICE,
    pattern: PatternType = PatternType.LITERAL,
    permission: Permission = Permission.ALLOW,
) -> Acl:
    return Acl(kind, name, pattern, principal, "*", operation, permission)


class People:
    """The admin, and others who come by connections of their own."""

    def __init__(self, admin: Client) -> None:
        self.admin = admin
        self._others: list[Client] = []

    async def connect(self, principal: str, groups: tuple[str, ...] = ()) -> Client:
        """Somebody's connection."""
        broker = self.admin.broker
        known = set(broker.connections)
        client = Client(broker)
        self._others.append(client)
        await until(lambda: len(broker.connections) > len(known))
        (connection,) = set(broker.connections) - known
        connection.principal, connection.groups = principal, groups
        return client

    async def allow(self, *acls: Acl) -> list[int]:
        """Have the admin make bindings; the error codes."""
        answer = await self.admin.ask(CREATE_ACLS, creation_of(acls), CreateAclsResponse)
        return [result.error_code for result in answer.results]

    async def forget(self, principal: str | None = ALICE) -> Any:
        """Have the admin remove all bindings of somebody."""
        wanted = DeleteAclsFilter(
            resource_type_filter=ANY,
            resource_name_filter=None,
            pattern_type_filter=ANY,
            principal_filter=principal,
            host_filter=None,
            operation=ANY,
            permission_type=ANY,
        )
        return await self.admin.ask(DELETE_ACLS, DeleteAclsRequest(filters=[wanted]), DeleteAclsResponse)

    def close(self) -> None:
        for other in self._others:
            other.close()


@asynccontextmanager
async def guarded(folder: Path, **settings: str) -> AsyncIterator[People]:
    """A broker with an authorizer; the admin may do everything."""
    names: dict[str, str] = {"authorizer_class_name": STANDARD, "super_users": ADMIN, **settings}
    async with running([folder], **names) as admin:
        await until(lambda: bool(admin.broker.connections))
        for connection in admin.broker.connections:
            connection.principal = ADMIN
        people = People(admin)
        try:
            yield people
        finally:
            people.close()


def names_of(topics: Iterable[Any]) -> list[str]:
    return [topic.name for topic in topics]
