"""`barnabas quota`: limits for clients, addresses and consumer groups."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.lazy import HELP_OPTIONS
from barnabas.cli.output import Output, output_option
from barnabas.cli.types import Text
from barnabas.error_codes import code_name

if TYPE_CHECKING:
    from barnabas.cli.wire import Wire

TYPES = ("user", "client-id", "ip", "group")
EVERYBODY = "(everybody else)"
COLUMNS = {"entity": "FOR", "quota": "QUOTA", "value": "VALUE"}
QUOTAS = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
)
EXACT, DEFAULT = 0, 1  # match types in DescribeClientQuotas
Entity = Mapping[str, str | None]


def entity_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that name the entity of a quota, and call it with `entity`."""

    @functools.wraps(function)
    def command(*, users: Any, clients: Any, addresses: Any, groups: Any, defaults: Sequence[str], **options: Any) -> Any:
        named = dict(zip(TYPES, (users, clients, addresses, groups), strict=True))
        entity = {kind: name for kind, name in named.items() if name is not None}
        for kind in defaults:
            if kind in entity:
                raise click.UsageError(f"--{kind} and --default {kind} exclude each other")
            entity[kind] = None
        return function(entity=entity, **options)

    for option in (
        click.option("--default", "defaults", type=click.Choice(TYPES), multiple=True, metavar="TYPE",
                     help="The default for this type: all that have no quota of their own. user, client-id, ip or group; repeatable."),
        click.option("--group", "groups", metavar="GROUP", help="A consumer group; the quota counts all members together."),
        click.option("--ip", "addresses", metavar="ADDRESS", help="An IP address; the quota counts connections from it."),
        click.option("--client-id", "clients", metavar="ID", help="Clients with this client.id; with --user only those of the user."),
        click.option("--user", "users", metavar="NAME", help="A user; clients without authentication are ANONYMOUS."),
    ):  # fmt: skip
        command = option(command)
    return command


@click.group(context_settings=HELP_OPTIONS)
def quota() -> None:
    """Set, list, describe and remove quotas for clients, addresses and groups."""


def _read_pair(pair: str) -> tuple[str, float]:
    key, separator, text = pair.partition("=")
    if not separator or key not in QUOTAS:
        raise BadInput(f"{pair!r} is not QUOTA=VALUE with a quota out of {', '.join(QUOTAS)}")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise BadInput(f"{text!r} is not a number")
    return key, value


@quota.command("set")
@click.argument("pairs", type=Text(_read_pair), nargs=-1, required=True, metavar="QUOTA=VALUE...")
@entity_options
@click.option("--validate-only", is_flag=True, help="Only check whether the broker would accept it.")
@connection_options
@output_option
def set_quotas(
    connection: Connection, output: Output, pairs: Sequence[tuple[str, float]], entity: Entity, validate_only: bool
) -> None:
    """Set quotas: producer_byte_rate and consumer_byte_rate (bytes a second), request_percentage (of the broker's time),
    controller_mutation_rate (partitions a second), connection_creation_rate (connections a second, of addresses).

    Each broker applies the quotas separately.
    """
    quotas = dict(pairs)
    _alter(connection, entity, quotas, validate_only=validate_only)
    verb = "would set" if validate_only else "set"
    output.done(f"{verb} {', '.join(quotas)} for {title_of(entity)}", {"entity": entity, "quotas": quotas})


@quota.command("remove")
@click.argument("names", nargs=-1, type=click.Choice(QUOTAS), metavar="[QUOTA]...")
@entity_options
@connection_options
@output_option
def remove(connection: Connection, output: Output, names: Sequence[str], entity: Entity) -> None:
    """Remove quotas, all of them if none is named."""
    with connection.wire() as wire:
        found = _describe(wire, entity, strict=True) if entity else []
    present = [key for each in found for key in each["quotas"]]
    wanted = list(names) or present
    if not wanted:
        raise Failure(f"there is no quota for {title_of(entity)}")
    _alter(connection, entity, dict.fromkeys(wanted), validate_only=False)
    output.done(f"removed {', '.join(wanted)} of {title_of(entity)}", {"entity": entity, "removed": wanted})


@quota.command("list")
@connection_options
@output_option
def list_quotas(connection: Connection, output: Output) -> None:
    """List all quotas."""
    with connection.wire() as wire:
        _print(output, _describe(wire, {}, strict=False))


@quota.command("describe")
@entity_options
@connection_options
@output_option
def describe(connection: Connection, output: Output, entity: Entity) -> None:
    """Show the quotas of an entity, also of combinations with another entity."""
    if not entity:
        raise click.UsageError("for whom? give --user, --client-id, --ip, --group or --default")
    with connection.wire() as wire:
        _print(output, _describe(wire, entity, strict=False))


def title_of(entity: Entity) -> str:
    return ", ".join(f"{kind} {EVERYBODY if name is None else name}" for kind, name in entity.items())


def _alter(connection: Connection, entity: Entity, quotas: Mapping[str, float | None], *, validate_only: bool) -> None:
    from barnabas.protocol.messages.alter_client_quotas import (
        AlterClientQuotasRequest,
        OpData,
        RequestEntityData,
        RequestEntryData,
    )

    if not entity:
        raise click.UsageError("for whom? give --user, --client-id, --ip, --group or --default")
    entry = RequestEntryData(
        entity=[RequestEntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in quotas.items()],
    )
    with connection.wire() as wire:
        (answer,) = wire.request(AlterClientQuotasRequest(entries=[entry], validate_only=validate_only)).entries
    _check(answer.error_code, answer.error_message, f"quotas for {title_of(entity)}")


def _describe(wire: Wire, entity: Entity, *, strict: bool) -> list[dict[str, Any]]:
    from barnabas.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest

    components = [
        ComponentData(entity_type=kind, match_type=DEFAULT if name is None else EXACT, match=name)
        for kind, name in entity.items()
    ]
    answer = wire.request(DescribeClientQuotasRequest(components=components, strict=strict))
    _check(answer.error_code, answer.error_message, "quotas")
    return [
        {
            "entity": {each.entity_type: each.entity_name for each in entry.entity},
            "quotas": {value.key: value.value for value in entry.values},
        }
        for entry in answer.entries or ()
    ]


def _print(output: Output, found: Sequence[Mapping[str, Any]]) -> None:
    if output.as_json:
        output.json(found)
        return
    rows = [
        {"entity": title_of(each["entity"]), "quota": key, "value": f"{value:.15g}"}
        for each in found
        for key, value in each["quotas"].items()
    ]
    output.table(rows, COLUMNS, empty="no quotas")


def _check(code: int, message: str | None, what: str) -> None:
    if code:
        raise Failure(f"{what}: {message or code_name(code)}")
