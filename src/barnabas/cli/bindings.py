"""Access control lists on the command line: turns options into bindings, and creates, lists and deletes these."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.types import Text, checked
from barnabas.error_codes import code_name
from barnabas.security.acls import CLUSTER_NAME, OPERATIONS, Acl, AclFilter, Operation, PatternType, Permission, ResourceType

if TYPE_CHECKING:
    from barnabas.cli.wire import Wire
    from barnabas.protocol.messages.create_acls import CreateAclsRequest

COLUMNS = {"permission": "PERMISSION", "principal": "PRINCIPAL", "operation": "OPERATION", "resource": "RESOURCE", "name": "NAME",
           "pattern": "PATTERN", "host": "HOST"}  # fmt: skip
KINDS = {
    "topics": ResourceType.TOPIC,
    "groups": ResourceType.GROUP,
    "transactional_ids": ResourceType.TRANSACTIONAL_ID,
    "delegation_tokens": ResourceType.DELEGATION_TOKEN,
    "users": ResourceType.USER,
}
Pattern = tuple[ResourceType, str]
# operation in Confluent's schema registry -> Kafka's operation, as in `registry/http/rights.py`
REGISTRY_OPERATIONS = {
    "SUBJECT_READ": Operation.DESCRIBE,
    "SUBJECT_WRITE": Operation.WRITE,
    "SUBJECT_DELETE": Operation.DELETE,
    "SUBJECT_COMPATIBILITY_READ": Operation.DESCRIBE_CONFIGS,
    "SUBJECT_COMPATIBILITY_WRITE": Operation.ALTER_CONFIGS,
    "GLOBAL_COMPATIBILITY_READ": Operation.DESCRIBE_CONFIGS,
    "GLOBAL_COMPATIBILITY_WRITE": Operation.ALTER_CONFIGS,
}


def _parse_operation(text: str) -> Operation:
    """`describe-configs`, or an operation of the schema registry such as `subject-read`; raises BadInput."""
    name = text.strip().upper().replace("-", "_")
    operation = REGISTRY_OPERATIONS.get(name) or Operation.__members__.get(name, Operation.UNKNOWN)
    if operation in (Operation.UNKNOWN, Operation.ANY):
        names = ", ".join(each.name.lower().replace("_", "-") for each in Operation if each > Operation.ANY)
        more = ", ".join(each.lower().replace("_", "-") for each in REGISTRY_OPERATIONS)
        raise BadInput(f"there is no operation {text!r}; there are {names}; and for the schema registry {more}")
    return operation


def _parse_principal(text: str) -> str:
    """Raises BadInput for a text that is not a principal."""
    kind, _, name = text.partition(":")
    if not kind or not name:
        raise BadInput(f"{text!r} is not a principal; write it like User:alice, Group:finance or Role:auditor")
    return text


OPERATION, PRINCIPAL = Text(_parse_operation), Text(checked(_parse_principal))


def resource_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command options that name resources, and call it with a list of them as `resources`."""

    @functools.wraps(function)
    def command(*, on_cluster: bool, subjects: tuple[str, ...], **options: Any) -> Any:
        resources = [(kind, name) for option, kind in KINDS.items() for name in options.pop(option)]
        topics = dict.fromkeys(_topic_of(subject, prefixed=options.get("prefixed", False)) for subject in subjects)
        resources += [(ResourceType.TOPIC, name) for name in topics]
        if on_cluster:
            resources.append((ResourceType.CLUSTER, CLUSTER_NAME))
        return function(resources=resources, **options)

    for option in (
        click.option("--user", "users", multiple=True, metavar="PRINCIPAL", help="A user, as User:NAME; repeatable."),
        click.option("--delegation-token", "delegation_tokens", multiple=True, metavar="ID", help="A token; repeatable."),
        click.option("--transactional-id", "transactional_ids", multiple=True, metavar="ID", help="Repeatable."),
        click.option(
            "--subject",
            "subjects",
            multiple=True,
            metavar="NAME",
            help="The topic of a subject of the schema registry: --subject t-value is --topic t; repeatable.",
        ),
        click.option("--cluster", "on_cluster", is_flag=True, help="The cluster."),
        click.option("--group", "groups", multiple=True, metavar="NAME", help="A group, * for all; repeatable."),
        click.option("--topic", "topics", multiple=True, metavar="NAME", help="A topic, * for all; repeatable."),
    ):
        command = option(command)
    return command


def _topic_of(subject: str, *, prefixed: bool) -> str:
    """The topic of a subject; raises BadInput for a name whose rights belong to the cluster, and for a prefix if the topic's
    prefix is shorter."""
    from barnabas.registry.http.rights import resource_of

    resource = resource_of(subject)
    if resource.type is not ResourceType.TOPIC:
        raise BadInput(f"--subject {subject}: rights on all subjects belong to the cluster; give --cluster")
    if prefixed and resource.name != subject:
        raise BadInput(f"--subject {subject}: with --prefixed give the prefix of the topics, such as {resource.name}")
    return resource.name


def rights_options(denying: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the options for operations and resources.

    Args:
        denying: help text of the option --deny.
    """
    options = (
        click.option("--deny", is_flag=True, help=denying),
        click.option("--prefixed", is_flag=True, help="The names are prefixes: bindings hold for all names that begin so."),
        resource_options,
        click.option("--operation", "operations", type=OPERATION, multiple=True, metavar="NAME",
                     help="The operation: read, write, create, delete, alter, describe, ..., or all; repeatable."),
    )  # fmt: skip

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in options:
            function = option(function)
        return function

    return decorate


def bindings(
    resources: Iterable[Pattern],
    *,
    principals: Iterable[str],
    operations: Iterable[Operation],
    hosts: Iterable[str] = ("*",),
    prefixed: bool = False,
    deny: bool = False,
) -> list[Acl]:
    """A binding for every resource, principal, operation and host. Raises BadInput for an operation that a resource
    does not have."""
    found = []
    for (kind, name), operation in itertools.product(resources, operations):
        if operation is not Operation.ALL and operation not in OPERATIONS[kind]:
            raise BadInput(f"{_word(operation)} cannot be done with a {_word(kind)}")
        pattern = PatternType.PREFIXED if prefixed and kind is not ResourceType.CLUSTER else PatternType.LITERAL
        for principal, host in itertools.product(principals, hosts):
            found.append(Acl(kind, name, pattern, principal, host, operation, Permission.DENY if deny else Permission.ALLOW))
    if not found:
        raise BadInput(
            "no resource: give --topic, --group, --cluster, --subject, --transactional-id, --delegation-token or --user"
        )
    return found


def row(acl: Acl) -> dict[str, str]:
    """A binding as a row of a table."""
    return {
        "permission": _word(acl.permission),
        "principal": acl.principal,
        "operation": _word(acl.operation),
        "resource": _word(acl.resource_type),
        "name": acl.name,
        "pattern": _word(acl.pattern),
        "host": acl.host,
    }


def _word(value: ResourceType | PatternType | Operation | Permission) -> str:
    return value.name.lower().replace("_", "-")


def creation_of(acls: Iterable[Acl]) -> CreateAclsRequest:
    """The request that creates these bindings."""
    from barnabas.protocol.messages.create_acls import AclCreation, CreateAclsRequest

    creations = [
        AclCreation(
            resource_type=acl.resource_type,
            resource_name=acl.name,
            resource_pattern_type=acl.pattern,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission,
        )
        for acl in acls
    ]
    return CreateAclsRequest(creations=creations)


def create(wire: Wire, acls: Iterable[Acl]) -> None:
    """Raises Failure for the first binding that is refused; the protocol still creates the others of the request."""
    for result in wire.request(creation_of(acls)).results:
        _check(result, "cannot create the binding")


def find(wire: Wire, wanted: AclFilter) -> list[Acl]:
    """The bindings that match a filter; raises Failure."""
    from barnabas.protocol.messages.describe_acls import DescribeAclsRequest

    answer = wire.request(DescribeAclsRequest(**_fields(wanted)))
    _check(answer, "cannot list the bindings")
    return [
        Acl(
            ResourceType(resource.resource_type),
            resource.resource_name,
            PatternType(resource.pattern_type),
            acl.principal,
            acl.host,
            Operation(acl.operation),
            Permission(acl.permission_type),
        )
        for resource in answer.resources
        for acl in resource.acls
    ]


def delete(wire: Wire, filters: Iterable[AclFilter]) -> list[Acl]:
    """The bindings that were removed; raises Failure."""
    from barnabas.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest

    answer = wire.request(DeleteAclsRequest(filters=[DeleteAclsFilter(**_fields(each)) for each in filters]))
    gone = []
    for result in answer.filter_results:
        _check(result, "cannot remove the bindings")
        for acl in result.matching_acls:
            _check(acl, "cannot remove a binding")
            kind, pattern = ResourceType(acl.resource_type), PatternType(acl.pattern_type)
            operation, permission = Operation(acl.operation), Permission(acl.permission_type)
            gone.append(Acl(kind, acl.resource_name, pattern, acl.principal, acl.host, operation, permission))
    return sorted(set(gone))


def exactly(acl: Acl) -> AclFilter:
    """The filter that matches exactly one binding."""
    return AclFilter(*acl)


def _fields(wanted: AclFilter) -> dict[str, Any]:
    return {
        "resource_type_filter": wanted.resource_type,
        "resource_name_filter": wanted.name,
        "pattern_type_filter": wanted.pattern,
        "principal_filter": wanted.principal,
        "host_filter": wanted.host,
        "operation": wanted.operation,
        "permission_type": wanted.permission,
    }


def _check(answer: Any, what: str) -> None:
    if answer.error_code:
        raise Failure(f"{what}: {answer.error_message or ''} ({code_name(answer.error_code)})")
