"""A click group that imports a command when it is called, not when its name is shown.

So `barnabas --help` and shell completion import only click. A group has the name, the module and one line of help of each
command. A test compares this line with the command's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import click

from barnabas.cli.types import strict

HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}


class Entry(NamedTuple):
    """Names a command: `module` under barnabas.cli, `attribute` in it, and the line that help shows."""

    module: str
    attribute: str
    short_help: str


class LazyGroup(click.Group):
    """A group with an `Entry` for each command; it imports a command when it runs."""

    def __init__(self, *args: Any, entries: Mapping[str, Entry], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.entries.get(cmd_name)
        if entry is None:
            return None
        command = getattr(import_module(f"barnabas.cli.{entry.module}"), entry.attribute)
        assert isinstance(command, click.Command)
        return strict(command)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and name not in self.entries and not ctx.resilient_parsing and not name.startswith("-"):
            close = _close_to(name, self.entries)
            hint = f"; did you mean {close}?" if close else f"; there are {', '.join(self.entries)}"
            raise click.UsageError(f"no command {name!r}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.short_help) for name, entry in self.entries.items()])


def _close_to(name: str, names: Mapping[str, Entry]) -> str | None:
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, names, n=1)), None)
