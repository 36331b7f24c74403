"""`barnabas schema compatibility` and `barnabas schema mode`."""

from __future__ import annotations

import click

from barnabas.cli.errors import BadInput
from barnabas.cli.output import Output, output_option
from barnabas.cli.registry_connection import RegistryOptions, registry_options

LEVELS = ("BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE", "NONE")
MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")


def _target(subject: str | None) -> tuple[str, ...]:
    return () if subject is None else (subject,)


def _title(subject: str | None) -> str:
    return "all subjects without one of their own" if subject is None else subject


@click.command()
@click.argument("subject", required=False)
@click.option("--set", "level", type=click.Choice(LEVELS, case_sensitive=False), help="Set this level.")
@click.option("--normalize/--no-normalize", default=None, help="Whether registering normalises schemas.")
@click.option("--remove", is_flag=True, help="Remove the level of SUBJECT; the one for all counts again.")
@registry_options
@output_option
def compatibility(
    registry: RegistryOptions, output: Output, subject: str | None, level: str | None, normalize: bool | None, remove: bool
) -> None:
    """Show or set the compatibility level.

    The level is that of SUBJECT, or that of all subjects without a level of their own.
    """
    if remove and (level is not None or normalize is not None):
        raise BadInput("--remove and --set exclude each other")
    with registry.client() as client:
        if remove:
            client.delete("config", *_target(subject))
        elif level is not None or normalize is not None:
            body = {"compatibility": level, "normalize": normalize}
            client.put("config", *_target(subject), body={key: value for key, value in body.items() if value is not None})
        found = client.get("config", *_target(subject), **({} if subject is None else {"defaultToGlobal": True}))
    output.done(f"{found['compatibilityLevel']} for {_title(subject)}", found)


@click.command()
@click.argument("subject", required=False)
@click.option("--set", "wanted", type=click.Choice(MODES, case_sensitive=False), help="Set this mode.")
@click.option("--force", is_flag=True, help="Also IMPORT while there are schemas.")
@click.option("--remove", is_flag=True, help="Remove the mode of SUBJECT; the one for all counts again.")
@registry_options
@output_option
def mode(registry: RegistryOptions, output: Output, subject: str | None, wanted: str | None, force: bool, remove: bool) -> None:
    """Show or set the mode.

    The mode is that of SUBJECT, or that of all subjects without a mode of their own. It says whether schemas may change.
    """
    if remove and wanted is not None:
        raise BadInput("--remove and --set exclude each other")
    with registry.client() as client:
        if remove:
            client.delete("mode", *_target(subject))
        elif wanted is not None:
            client.put("mode", *_target(subject), body={"mode": wanted}, force=force)
        found = client.get("mode", *_target(subject), **({} if subject is None else {"defaultToGlobal": True}))
    output.done(f"{found['mode']} for {_title(subject)}", found)
