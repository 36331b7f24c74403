"""`barnabas acl`: access control lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.bindings import (
    COLUMNS,
    OPERATION,
    PRINCIPAL,
    Pattern,
    bindings,
    create,
    delete,
    exactly,
    find,
    resource_options,
    rights_options,
    row,
)
from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import BadInput
from barnabas.cli.lazy import HELP_OPTIONS
from barnabas.cli.output import Output, output_option
from barnabas.security.acls import Acl, AclFilter, Operation, PatternType, Resource

if TYPE_CHECKING:
    from barnabas.cli.wire import Wire
    from barnabas.security.authorizer import Authorizer

SUPER_USERS, IF_NONE = "super.users", "allow.everyone.if.no.acl.found"

principals_option = click.option("--principal", "principals", type=PRINCIPAL, multiple=True, required=True, metavar="TYPE:NAME",
                                 help="The principal: User:alice, Group:finance, Role:auditor, or User:* "
                                     "for everybody; repeatable.")  # fmt: skip
hosts_option = click.option("--host", "hosts", multiple=True, default=("*",), metavar="ADDRESS",
                            help="The client's host: an address, a range like 10.0.0.0/8, or * for any; repeatable.")  # fmt: skip


@click.group(context_settings=HELP_OPTIONS)
def acl() -> None:
    """Add, list, test and remove access control lists."""


@acl.command("add")
@principals_option
@hosts_option
@rights_options("Deny the operations; a denial overrules every binding that allows.")
@connection_options
@output_option
def add(connection: Connection, output: Output, resources: list[Pattern], **options: Any) -> None:
    """Create bindings: each operation on each resource for each principal and host."""
    wanted = bindings(resources, **{**options, "operations": options["operations"] or (Operation.ALL,)})
    with connection.wire() as wire:
        create(wire, wanted)
    output.done(f"made {_count(wanted)}", [row(each) for each in wanted])


@acl.command("list")
@click.option("--principal", type=PRINCIPAL, metavar="TYPE:NAME", help="Only bindings of this principal and of its roles.")
@resource_options
@click.option("--matching", is_flag=True, help="Also bindings whose pattern matches the names.")
@connection_options
@output_option
def list_acls(connection: Connection, output: Output, principal: str | None, resources: list[Pattern], matching: bool) -> None:
    """Show bindings."""
    pattern = PatternType.MATCH if matching else PatternType.ANY
    filters = [AclFilter(kind, name, pattern, principal) for kind, name in resources] or [AclFilter(principal=principal)]
    with connection.wire() as wire:
        found = {each for wanted in filters for each in find(wire, wanted)}
    output.table([row(each) for each in sorted(found)], COLUMNS, empty="no bindings")


@acl.command("remove")
@principals_option
@hosts_option
@rights_options("Bindings that forbid.")
@click.option("--all", "everything", is_flag=True, help="All bindings of the principals, on every resource.")
@connection_options
@output_option
def remove(
    connection: Connection,
    output: Output,
    resources: list[Pattern],
    everything: bool,
    principals: tuple[str, ...],
    **options: Any,
) -> None:
    """Remove bindings, with the same options that created them."""
    if everything:
        if resources or options["operations"] or options["hosts"] != ("*",) or options["prefixed"] or options["deny"]:
            raise BadInput("--all removes every binding of the principals; do not give other options that select bindings")
        filters = [AclFilter(principal=principal) for principal in principals]
    else:
        operations = options["operations"] or (Operation.ALL,)
        filters = [exactly(each) for each in bindings(resources, principals=principals, **{**options, "operations": operations})]
    with connection.wire() as wire:
        gone = delete(wire, filters)
    output.done(f"removed {_count(gone)}", [row(each) for each in gone])


@acl.command("test")
@click.option("--principal", type=PRINCIPAL, required=True, metavar="TYPE:NAME", help="The principal that asks.")
@click.option("--in-group", "in_groups", multiple=True, metavar="Group:NAME", help="A group of the principal; repeatable.")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="From where.")
@click.option("--operation", type=OPERATION, required=True, metavar="NAME", help="The operation.")
@resource_options
@connection_options
@output_option
def test(
    connection: Connection,
    output: Output,
    principal: str,
    in_groups: tuple[str, ...],
    host: str,
    operation: Operation,
    resources: list[Pattern],
) -> int:
    """Ask whether a principal may do an operation; the exit code is 1 if not.

    The command reads the bindings from the cluster and decides itself, by the broker's rules.
    """
    from barnabas.security.authorizer import Session

    if len(resources) != 1:
        raise BadInput(
            "name one resource: --topic, --group, --cluster, --subject, --transactional-id, --delegation-token or --user"
        )
    resource = Resource(*resources[0])
    with connection.wire() as wire:
        authorizer = _authorizer(wire)
    session = authorizer.with_roles(Session(principal, host, in_groups))
    allowed = authorizer.is_allowed(session, operation, resource)
    because = [row(each) for each in authorizer.bindings_about(session, resource)]
    data = {"allowed": allowed, "super_user": authorizer.is_super_user(session), "bindings": because}
    if output.as_json:
        output.json(data)
    else:
        click.echo("allowed" if allowed else "denied")
        output.table(because, COLUMNS, empty=_without_bindings(authorizer, session.principal, allowed))
    return 0 if allowed else 1


def _without_bindings(authorizer: Authorizer, principal: str, allowed: bool) -> str:
    from barnabas.security.authorizer import Session

    if authorizer.is_super_user(Session(principal, "")):
        return f"{principal} is one of {SUPER_USERS}"
    return f"no binding is about it, and {IF_NONE} is set" if allowed else "no binding is about it"


def _authorizer(wire: Wire) -> Authorizer:
    """The broker's `Authorizer`, with the cluster's bindings and with the settings that the client may see."""
    from barnabas.cli.resources import describe_settings, resource_names
    from barnabas.protocol.values import ResourceType as ConfigResource
    from barnabas.security.authorizer import Authorizer

    names = [name for name in resource_names(wire, ConfigResource.BROKER) if name]
    settings = {s["name"]: s["value"] for s in describe_settings(wire, ConfigResource.BROKER, names[0])} if names else {}
    supers = [name.strip() for name in (settings.get(SUPER_USERS) or "").split(";") if name.strip()]
    return Authorizer(find(wire, AclFilter()), super_users=supers, allow_if_no_acl=settings.get(IF_NONE) == "true")


def _count(acls: list[Acl]) -> str:
    return f"{len(acls)} binding{'' if len(acls) == 1 else 's'}"
