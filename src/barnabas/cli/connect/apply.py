"""`barnabas connect apply`: makes the connectors of a worker equal to those of a folder, after it has shown what that changes."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import click
from msgspec import Struct

from barnabas.cli.connect.checking import errors_of
from barnabas.cli.connect.files import FileConnector, read_folder
from barnabas.cli.connect.rest import Rest, rest_options
from barnabas.cli.errors import BadInput
from barnabas.cli.output import Output, output_option
from barnabas.cli.types import FilePath
from barnabas.services.settings import is_secret
from barnabas.tls.settings import HIDDEN

HIDDEN_BY_SERVER = "[hidden]"


class Change(Struct, frozen=True):
    """The change of one connector.

    Args:
        keys: by key the value before and after; None: it is not there.
    """

    kind: str
    name: str
    keys: Mapping[str, tuple[str | None, str | None]] = {}
    connector: FileConnector | None = None

    def lines(self) -> list[str]:
        """For people, as a diff."""
        sign = {"create": "+", "change": "~", "delete": "-"}[self.kind]
        found = [f"{sign} {self.name}"]
        for key, (before, after) in sorted(self.keys.items()):
            found += [] if before is None else [f"    - {key}={_shown(key, before)}"]
            found += [] if after is None else [f"    + {key}={_shown(key, after)}"]
        return found


def _shown(key: str, value: str) -> str:
    return HIDDEN if is_secret(key) and not value.startswith("${") else value


def changes_of(wanted: Sequence[FileConnector], there: Mapping[str, Mapping[str, str]], *, prune: bool) -> list[Change]:
    """The changes, by name.

    Args:
        there: configs by the names of connectors.
        prune: whether connectors go that are not wanted.
    """
    found = []
    for each in wanted:
        before = there.get(each.name)
        after = {**each.config, "name": each.name}
        keys = {key: (None if before is None else before.get(key), after.get(key)) for key in {*after, *(before or {})}}
        differing = {key: (old, new) for key, (old, new) in keys.items() if old != new and not (old == HIDDEN_BY_SERVER and new)}
        if before is None:
            found.append(Change("create", each.name, differing, each))
        elif differing:
            found.append(Change("change", each.name, differing, each))
    names = {each.name for each in wanted}
    found += [Change("delete", name) for name in there if prune and name not in names]
    return sorted(found, key=lambda each: each.name)


@click.command()
@click.argument("folder", type=FilePath(exists=True, file_okay=False))
@click.option("--prune", is_flag=True, help="Delete connectors that are not in the folder.")
@click.option("--yes", "is_sure", is_flag=True, help="Make the changes without a question.")
@rest_options
@output_option
def apply(rest: Rest, output: Output, folder: str, prune: bool, is_sure: bool) -> None:
    """Make connectors equal to the files of a folder.

    It shows first what that changes. The files are YAML, JSON or properties. A password that the worker hides counts as equal. Nothing
    changes if a config has an error.
    """
    wanted = read_folder(folder)
    there = {name: each["info"]["config"] for name, each in rest.get("connectors", query={"expand": "info"}).items()}
    found = changes_of(wanted, there, prune=prune)
    if not output.as_json:
        click.echo("\n".join(line for each in found for line in each.lines()) or "nothing changes")
    if found and not is_sure:
        if output.as_json or not sys.stdin.isatty():
            raise BadInput("nothing was changed; --yes makes the changes")
        click.confirm("Make these changes?", abort=True)
    _check(rest, found)
    for each in found:
        _make(rest, each)
    if output.as_json:
        output.json([{"kind": each.kind, "name": each.name, "keys": sorted(each.keys)} for each in found])
    elif found:
        click.echo(f"made {len(found)} change{'s' if len(found) > 1 else ''}")


def _check(rest: Rest, changes: Sequence[Change]) -> None:
    """Raises BadInput if a config has errors, before anything changes."""
    for each in changes:
        if each.connector is None:
            continue
        if errors := [error for _, error in errors_of(rest, each.connector)]:
            raise BadInput(f"nothing was changed; the connector {each.name} has errors: {'; '.join(errors)}")


def _make(rest: Rest, change: Change) -> None:
    if change.connector is None:
        rest.ask("DELETE", "connectors", change.name)
    elif change.kind == "create":
        rest.ask("POST", "connectors", body=change.connector.request())
    else:
        rest.ask("PUT", "connectors", change.name, "config", body={**change.connector.config, "name": change.name})
