"""The page docs/reference/cli.md, written from the commands themselves: `python -m barnabas.cli.reference > docs/reference/cli.md`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from barnabas.cli.main import cli

INTRODUCTION = """\
# The command line

Written from the commands by `python -m barnabas.cli.reference`; a test holds it to what they say.

Exit codes: 0 done, 1 the operation failed, 2 the input was wrong and nothing was done. Errors are one line on standard error,
results go to standard output: as tables on a terminal, as plain columns into a pipe or file, as JSON with `--json`.

Every command that talks to a cluster takes `--bootstrap-server`, `--command-config`, `-X`, `--timeout`; they work with any cluster that
speaks the Kafka protocol. Settings are those of librdkafka; a file that was written for Kafka's own tools is understood too.
"""


def walk(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Every command under its full name, groups before what is in them."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None
            yield from walk(found, f"{name} {child}")


def reference() -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    for name, command in walk(cli, "barnabas"):
        if not isinstance(command, click.Group):
            parts.append(_page_of(name, command))
    return "\n".join(parts)


def _page_of(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=name)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    lines = [f"## {name}", "", "```", usage, "```", ""]
    lines += _paragraphs(inspect.cleandoc(command.help or ""))
    options = [record for parameter in command.get_params(context) if (record := parameter.get_help_record(context)) is not None]
    lines += ["| option | |", "|---|---|"]
    lines += [f"| `{_cell(option)}` | {_cell(text)} |" for option, text in options if option != "-h, --help"]
    return "\n".join(lines) + "\n"


def _paragraphs(text: str) -> list[str]:
    """Help text as Markdown: a paragraph that click keeps as it is becomes a block of code."""
    lines = []
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("\b"):
            lines += ["```", *paragraph.splitlines()[1:], "```", ""]
        else:
            lines += [paragraph, ""]
    return lines


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    click.echo(reference(), nl=False)
