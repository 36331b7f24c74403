"""`barnabas acl`: who may do what."""

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
                                 help="Who: User:alice, Group:finance, Role:auditor, User:* for everybody; repeatable.")  # fmt: skip
hosts_option = click.option("--host", "hosts", multiple=True, default=("*",), metavar="ADDRESS",
                            help="From where: an address, a range like 10.0.0.0/8, or * for anywhere; repeatable.")  # fmt: skip


@click.group(context_settings=HELP_OPTIONS)
def acl() -> None:
    """Say who may do what, and ask whether somebody may."""


@acl.command("add")
@principals_option
@hosts_option
@rights_options("Forbid it; a denial goes before whatever allows.")
@connection_options
@output_option
def add(connection: Connection, output: Output, resources: list[Pattern], **options: Any) -> None:
    """Make bindings: each operation on each resource for each principal and host."""
    wanted = bindings(resources, **{**options, "operations": options["operations"] or (Operation.ALL,)})
    with connection.wire() as wire:
        create(wire, wanted)
    output.done(f"made {_count(wanted)}", [row(each) for each in wanted])


@acl.command("list")
@click.option("--principal", type=PRINCIPAL, metavar="TYPE:NAME", help="Only those of a principal, and what it has by its roles.")
@resource_options
@click.option("--matching", is_flag=True, help="Also those whose pattern the names fall under.")
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
@click.option("--all", "everything", is_flag=True, help="All bindings of the principals, on whatever resources.")
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
    """Remove bindings, named as they were made."""
    if everything:
        if resources or options["operations"] or options["hosts"] != ("*",) or options["prefixed"] or options["deny"]:
            raise BadInput("--all removes every binding of the principals; leave out what would choose among them")
        filters = [AclFilter(principal=principal) for principal in principals]
    else:
        operations = options["operations"] or (Operation.ALL,)
        filters = [exactly(each) for each in bindings(resources, principals=principals, **{**options, "operations": operations})]
    with connection.wire() as wire:
        gone = delete(wire, filters)
    output.done(f"removed {_count(gone)}", [row(each) for each in gone])


@acl.command("test")
@click.option("--principal", type=PRINCIPAL, required=True, metavar="TYPE:NAME", help="Who would do it.")
@click.option("--in-group", "in_groups", multiple=True, metavar="Group:NAME", help="A group that they would be in; repeatable.")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="From where.")
@click.option("--operation", type=OPERATION, required=True, metavar="NAME", help="What they would do.")
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
    """Ask whether somebody may do something; the exit code is 1 where not.

    The bindings are asked for and decided by here, with the rules of the broker.
    """
    from barnabas.security.authorizer import Session

    if len(resources) != 1:
        raise BadInput("name one resource: --topic, --group, --cluster, --transactional-id, --delegation-token or --user")
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
    """The decider of the broker: its bindings, and its settings as far as they may be seen."""
    from barnabas.cli.resources import describe_settings, resource_names
    from barnabas.protocol.values import ResourceType as ConfigResource
    from barnabas.security.authorizer import Authorizer

    names = [name for name in resource_names(wire, ConfigResource.BROKER) if name]
    settings = {s["name"]: s["value"] for s in describe_settings(wire, ConfigResource.BROKER, names[0])} if names else {}
    supers = [name.strip() for name in (settings.get(SUPER_USERS) or "").split(";") if name.strip()]
    return Authorizer(find(wire, AclFilter()), super_users=supers, allow_if_no_acl=settings.get(IF_NONE) == "true")


def _count(acls: list[Acl]) -> str:
    return f"{len(acls)} binding{'' if len(acls) == 1 else 's'}"
