"""`barnabas config`: settings of topics, brokers, groups, client metrics, broker loggers and mirror links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import BadInput
from barnabas.cli.lazy import HELP_OPTIONS
from barnabas.cli.output import Output, output_option
from barnabas.digits import is_number

if TYPE_CHECKING:
    from barnabas.protocol.values import ResourceType

KINDS = ["topic", "broker", "group", "client-metrics", "broker-logger", "link"]
COLUMNS = {"name": "SETTING", "value": "VALUE", "source": "SET BY", "type": "TYPE"}
HIDDEN = "(hidden)"

kind_argument = click.argument("kind", type=click.Choice(KINDS), metavar="TYPE")


@click.group(context_settings=HELP_OPTIONS)
def config() -> None:
    """Show and change settings of topics, brokers and groups."""


@config.command("describe")
@kind_argument
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--all", "with_defaults", is_flag=True, help="Also show settings that have their default.")
@click.option(
    "--key", "keys", multiple=True, metavar="NAME", help="Only this setting, wherever its value comes from; repeatable."
)
@connection_options
@output_option
def describe(
    connection: Connection, output: Output, kind: str, names: tuple[str, ...], with_defaults: bool, keys: tuple[str, ...]
) -> None:
    """Show settings that differ from the defaults.

    TYPE is topic, broker, group, client-metrics, broker-logger or link; without a NAME all resources of that type
    are shown. The broker name "default" means the settings of all brokers.
    """
    from barnabas.cli.resources import describe_settings, resource_names, title_of

    resource_type = parse_kind(kind)
    result: list[dict[str, Any]] = []
    with connection.wire() as wire:
        for name in [parse_name(resource_type, name) for name in names] or resource_names(wire, resource_type):
            settings = describe_settings(wire, resource_type, name)
            wanted = [s for s in settings if (s["name"] in keys if keys else with_defaults or not s["default"])]
            result.append({"type": kind, "name": name or "default", "settings": wanted, "title": title_of(resource_type, name)})
    if output.as_json:
        output.json([{key: value for key, value in resource.items() if key != "title"} for resource in result])
        return
    for resource in result:
        rows = [{**s, "value": HIDDEN if s["sensitive"] else s["value"]} for s in resource["settings"]]
        if rows:
            output.table(rows, COLUMNS, title=resource["title"])
        else:
            click.echo(f"{resource['title']}: nothing differs from the defaults")


@config.command("alter")
@kind_argument
@click.argument("name")
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="Give a setting a value; repeatable.")
@click.option("--delete", "deletes", multiple=True, metavar="KEY", help="Go back to the default; repeatable.")
@click.option("--append", "appends", multiple=True, metavar="KEY=ITEM", help="Add an item to a list; repeatable.")
@click.option("--subtract", "subtracts", multiple=True, metavar="KEY=ITEM", help="Remove an item from a list; repeatable.")
@click.option("--validate-only", is_flag=True, help="Only check whether the broker would accept it.")
@connection_options
@output_option
def alter(connection: Connection, output: Output, kind: str, name: str, validate_only: bool, **changes: tuple[str, ...]) -> None:
    """Change settings of one resource: all of the changes are made, or none."""
    from barnabas.cli.resources import alter_settings, parse_changes, title_of

    wanted = parse_changes(**changes)
    if not wanted:
        raise click.UsageError("nothing to change: give --set, --delete, --append or --subtract")
    resource_type = parse_kind(kind)
    resource = parse_name(resource_type, name)
    with connection.wire() as wire:
        alter_settings(wire, resource_type, resource, wanted, validate_only=validate_only)
    done = "would change" if validate_only else "changed"
    data = {"type": kind, "name": name, "validate_only": validate_only,
            "changes": [{"key": c.name, "operation": c.operation.name.lower(), "value": c.value} for c in wanted]}  # fmt: skip
    output.done(f"{done} {', '.join(c.name for c in wanted)} of {title_of(resource_type, resource)}", data)


def parse_kind(kind: str) -> ResourceType:
    from barnabas.protocol.values import ResourceType

    return ResourceType[kind.upper().replace("-", "_")]


def parse_name(kind: ResourceType, name: str) -> str:
    """The protocol's name of a resource; raises BadInput for a broker that is not a number."""
    from barnabas.protocol.values import ALL_BROKERS, ResourceType

    if kind is ResourceType.BROKER and name == "default":
        return ALL_BROKERS
    if kind in {ResourceType.BROKER, ResourceType.BROKER_LOGGER} and not is_number(name):
        raise BadInput(f"a broker is named by its number, not {name!r}")
    return name
