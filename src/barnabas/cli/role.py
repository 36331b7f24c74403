"""`barnabas role`: roles, their rights and their members.

A role consists of bindings only. Its rights are the bindings of the principal Role:NAME. Each member has a binding that allows
ALL on the user Role:NAME.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from barnabas.cli.bindings import (
    COLUMNS,
    PRINCIPAL,
    Pattern,
    bindings,
    create,
    delete,
    exactly,
    find,
    rights_options,
    row,
)
from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.lazy import HELP_OPTIONS
from barnabas.cli.output import Output, output_option
from barnabas.cli.wire import Wire
from barnabas.security.acls import Acl, AclFilter, Operation, ResourceType
from barnabas.security.authorizer import ROLE, is_membership, membership

LIST_COLUMNS = {"role": "ROLE", "rights": "RIGHTS", "members": "MEMBERS"}

name_argument = click.argument("name")


def memberships_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the arguments role, members and host, and call it with `role`, `members` and the memberships as
    `wanted`."""

    @functools.wraps(function)
    def command(*, name: str, members: tuple[str, ...], host: str, **options: Any) -> Any:
        wanted = [membership(principal_of(name), member, host) for member in members]
        return function(name=name, members=members, wanted=wanted, **options)

    host = click.option(
        "--host",
        default="*",
        show_default=True,
        metavar="ADDRESS",
        help="The membership holds only for clients from this address or range.",
    )
    members = click.argument("members", type=PRINCIPAL, nargs=-1, required=True, metavar="PRINCIPAL...")
    return name_argument(members(host(command)))


@click.group(context_settings=HELP_OPTIONS)
def role() -> None:
    """Define roles, named sets of rights, and give them to users and groups."""


@role.command("create")
@name_argument
@rights_options("Deny the operations to all members.")
@connection_options
@output_option
def create_role(connection: Connection, output: Output, name: str, resources: list[Pattern], **options: Any) -> None:
    """Create a role with rights, or add rights to it."""
    principal = principal_of(name)
    wanted = bindings(resources, principals=[principal], **{**options, "operations": options["operations"] or (Operation.ALL,)})
    with connection.wire() as wire:
        create(wire, wanted)
    output.done(f"role {name} has {len(wanted)} more right{'' if len(wanted) == 1 else 's'}", [row(each) for each in wanted])


@role.command("list")
@click.argument("name", required=False)
@connection_options
@output_option
def list_roles(connection: Connection, output: Output, name: str | None) -> None:
    """List the roles and their members, or the rights of one role."""
    with connection.wire() as wire:
        if name is not None:
            rights = find(wire, AclFilter(principal=principal_of(name)))
            output.table([row(each) for each in rights], COLUMNS, empty="no rights")
            return
        found = find(wire, AclFilter())
    roles: dict[str, dict[str, Any]] = {}
    for acl in found:
        of = acl.name if is_membership(acl) else acl.principal
        if of.startswith(ROLE):
            entry = roles.setdefault(of, {"role": of.removeprefix(ROLE), "rights": 0, "members": []})
            if is_membership(acl):
                entry["members"].append(acl.principal if acl.host == "*" else f"{acl.principal} from {acl.host}")
            else:
                entry["rights"] += 1
    output.table([roles[each] for each in sorted(roles)], LIST_COLUMNS, empty="no roles")


@role.command("grant")
@memberships_options
@connection_options
@output_option
def grant(connection: Connection, output: Output, name: str, members: tuple[str, ...], wanted: list[Acl]) -> None:
    """Give a role to users and groups (User:alice, Group:finance)."""
    with connection.wire() as wire:
        _check_exists(wire, name)
        create(wire, wanted)
    output.done(f"{', '.join(members)} {'has' if len(members) == 1 else 'have'} role {name}", [row(each) for each in wanted])


@role.command("revoke")
@memberships_options
@connection_options
@output_option
def revoke(connection: Connection, output: Output, name: str, members: tuple[str, ...], wanted: list[Acl]) -> None:
    """Remove a role from users and groups."""
    with connection.wire() as wire:
        gone = delete(wire, map(exactly, wanted))
    if len(gone) < len(wanted):
        missing = sorted({each.principal for each in wanted} - {each.principal for each in gone})
        raise Failure(f"{', '.join(missing)}: without role {name}")
    output.done(
        f"{', '.join(members)} {'has' if len(members) == 1 else 'have'} role {name} no more", [row(each) for each in gone]
    )


@role.command("delete")
@name_argument
@connection_options
@output_option
def delete_role(connection: Connection, output: Output, name: str) -> None:
    """Remove a role, its rights and its memberships."""
    principal = principal_of(name)
    with connection.wire() as wire:
        _check_exists(wire, name)
        gone = delete(wire, [AclFilter(principal=principal), AclFilter(ResourceType.USER, principal)])
    output.done(f"deleted role {name}", [row(each) for each in gone])


def principal_of(name: str) -> str:
    """`Role:NAME`, also for a name without the prefix; raises BadInput for an empty name."""
    bare = name.removeprefix(ROLE)
    if not bare:
        raise BadInput("a role needs a name")
    return ROLE + bare


def _check_exists(wire: Wire, name: str) -> None:
    if not find(wire, AclFilter(principal=principal_of(name))):
        raise Failure(f"role {name}: there is no such role")
