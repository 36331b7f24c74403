"""ACLs of a cluster, for tests of links and of authorization."""

from __future__ import annotations

from typing import cast

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


def admin(servers: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": servers})


def binding(
    name: str,
    principal: str = "User:alice",
    kind: ResourceType = ResourceType.TOPIC,
    operation: AclOperation = AclOperation.READ,
) -> AclBinding:
    return AclBinding(kind, name, ResourcePatternType.LITERAL, principal, "*", operation, AclPermissionType.ALLOW)


def allow(servers: str, *bindings: AclBinding) -> None:
    client = admin(servers)
    for done in client.create_acls(list(bindings)).values():
        done.result(30)


def matching(name: str | None = None, principal: str | None = None) -> AclBindingFilter:
    """The filter for the ACLs of a resource and a principal; None for any. The types of the client do not allow None."""
    some, someone, anywhere = cast(str, name), cast(str, principal), cast(str, None)
    return AclBindingFilter(
        ResourceType.ANY, some, ResourcePatternType.ANY, someone, anywhere, AclOperation.ANY, AclPermissionType.ANY
    )


def forbid(servers: str, name: str) -> None:
    client = admin(servers)
    for done in client.delete_acls([matching(name)]).values():
        done.result(30)


def acls(servers: str) -> set[tuple[str, str]]:
    client = admin(servers)
    return {(each.name, each.principal) for each in client.describe_acls(matching()).result(30)}
