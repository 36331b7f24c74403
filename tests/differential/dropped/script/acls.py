"""Bindings without a type of pattern: CreateAcls, DescribeAcls and DeleteAcls 0."""

from __future__ import annotations

from barnabas.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from barnabas.protocol.messages.describe_acls import DescribeAclsRequest
from barnabas.security.acls import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from tests.differential.talk import Talk
from tests.waiting import wait_until


def _binding(name: str, kind: int = ResourceType.TOPIC, principal: str = "User:alice", **changed: int | str) -> AclCreation:
    given: dict[str, int | str] = {
        "resource_type": kind, "resource_name": name, "resource_pattern_type": PatternType.LITERAL, "principal": principal,
        "host": "*", "operation": Operation.READ, "permission_type": Permission.ALLOW,
    }  # fmt: skip
    return AclCreation(**(given | changed))  # type: ignore[arg-type]  # the values have the types of the fields


def _asked(name: str | None, kind: int = ResourceType.TOPIC, **changed: int | str | None) -> DescribeAclsRequest:
    given: dict[str, int | str | None] = {
        "resource_type_filter": kind, "resource_name_filter": name, "principal_filter": None, "host_filter": None,
        "operation": Operation.ANY, "permission_type": Permission.ANY,
    }  # fmt: skip
    return DescribeAclsRequest(**(given | changed))  # type: ignore[arg-type]  # the values have the types of the fields


def _gone(name: str | None, kind: int = ResourceType.TOPIC, operation: int = Operation.ANY) -> DeleteAclsRequest:
    one = DeleteAclsFilter(
        resource_type_filter=kind, resource_name_filter=name, principal_filter=None, host_filter=None,
        operation=operation, permission_type=Permission.ANY,
    )  # fmt: skip
    return DeleteAclsRequest(filters=[one])


def bindings(talk: Talk) -> None:
    name = talk.name("topic")
    wrong = {
        "valid": _binding(name),
        "the same again": _binding(name),
        "another operation": _binding(talk.name("other"), operation=Operation.WRITE),
        "of a group": _binding(talk.name("group"), ResourceType.GROUP),
        "of the cluster": _binding(CLUSTER_NAME, ResourceType.CLUSTER, principal=f"User:{name}"),
        "of the cluster by another name": _binding("mine", ResourceType.CLUSTER),
        "an empty name": _binding(""),
        "a principal without a type": _binding(name, principal="alice"),
        "an unknown resource": _binding(name, 99),
        "any operation": _binding(name, operation=Operation.ANY),
        "an unknown permission": _binding(name, permission_type=77),
    }
    for case, binding in wrong.items():
        talk.ask(case, CreateAclsRequest(creations=[binding]), 0)
    talk.ask("two, one of them wrong", CreateAclsRequest(creations=[_binding(name), _binding("")]), 0)
    talk.ask("none", CreateAclsRequest(creations=[]), 0)
    prefixed = _binding(name, resource_pattern_type=PatternType.PREFIXED, principal="User:prefix")
    talk.do(CreateAclsRequest(creations=[prefixed]), 1)
    every = _asked(name, pattern_type_filter=PatternType.ANY)
    wait_until(lambda: sum(len(each.acls) for each in talk.do(every, 1).resources) == 2)
    talk.ask("a name", _asked(name), 0)
    talk.ask("a group", _asked(talk.name("group"), ResourceType.GROUP), 0)
    talk.ask("any kind", _asked(name, ResourceType.ANY), 0)
    talk.ask("every name", _asked(None), 0, only_mine=True)
    talk.ask("a principal", _asked(name, principal_filter="User:bob"), 0)
    talk.ask("an operation", _asked(talk.name("other"), operation=Operation.WRITE), 0)
    talk.ask("an operation that is not allowed", _asked(name, operation=Operation.WRITE), 0)
    talk.ask("an unknown operation", _asked(name, operation=99), 0)
    talk.ask("absent", _asked(talk.name("absent")), 0)
    talk.ask("an operation", _gone(talk.name("other"), operation=Operation.WRITE), 0)
    talk.ask("an unknown operation", _gone(name, operation=99), 0)
    talk.ask("a name", _gone(name), 0)
    talk.ask("a name again", _gone(name), 0)
    talk.ask("none", DeleteAclsRequest(filters=[]), 0)
    talk.do(_gone(talk.name("group"), ResourceType.GROUP), 1)
    talk.do(_gone(None, ResourceType.CLUSTER), 1)
