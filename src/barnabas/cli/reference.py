"""Generates the page docs/reference/cli.md from the commands.

python -m barnabas.cli.reference > docs/reference/cli.md
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from barnabas.cli.connection import connection_options
from barnabas.cli.main import cli
from barnabas.cli.output import output_option

INTRODUCTION = """\
# The command line

Written from the commands by `python -m barnabas.cli.reference`; a test holds it to what they say.

Exit codes: 0 done, 1 the operation failed, 2 the input was wrong and nothing was done. Errors are one line on standard error,
results go to standard output: as tables on a terminal, as plain columns into a pipe or file, as JSON with `--json`.

A standard stream that is closed when a command starts (`<&-`) is the null device. It is a failure if standard output
cannot be written, unless its reader closed the pipe (`| head`). Texts are UTF-8 and not empty; names of files may be any bytes.
`BARNABAS_TRACEBACK=1` shows the traceback of an unexpected error.

Commands that talk to a cluster work with any that speaks the Kafka protocol. Settings are those of librdkafka; a file for
Kafka's own tools works too. These options are common to all of them:

"""


def walk(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Every command under its full name, groups before their commands."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None
            yield from walk(found, f"{name} {child}")


def reference() -> str:
    """The whole page."""
    common = _options_of(_common_options())
    parts = [INTRODUCTION + "\n".join(_table(common)) + "\n"]
    for name, command in walk(cli, "barnabas"):
        if not isinstance(command, click.Group) or command.invoke_without_command:
            parts.append(_page_of(name, command, common))
    return "\n".join(parts)


def _common_options() -> click.Command:
    @click.command()
    @connection_options
    @output_option
    def command() -> None:
        """A command with only the options that commands share."""

    return command


def _page_of(name: str, command: click.Command, common: dict[str, str]) -> str:
    usage = " ".join([name, *command.collect_usage_pieces(click.Context(command, info_name=name))])
    own = {option: text for option, text in _options_of(command).items() if common.get(option) != text}
    lines = [f"## {name}", "", "```", usage, "```", "", *_paragraphs(inspect.cleandoc(command.help or ""))]
    shared = [
        option.split()[-2 if " " in option else 0].strip("`,")
        for option, text in common.items()
        if _options_of(command).get(option) == text
    ]
    if shared:
        lines += [f"Also {', '.join(f'`{flag}`' for flag in shared)}.", ""]
    return "\n".join(lines + (_table(own) if own else [])) + "\n"


def _options_of(command: click.Command) -> dict[str, str]:
    """A dict of each option, as typed, to its help; without arguments and --help."""
    context = click.Context(command)
    records = [p.get_help_record(context) for p in command.params if isinstance(p, click.Option)]
    return dict(filter(None, records))


def _table(options: dict[str, str]) -> list[str]:
    return ["| option | |", "|---|---|", *(f"| `{_cell(option)}` | {_cell(text)} |" for option, text in options.items())]


def _paragraphs(text: str) -> list[str]:
    """Help text as Markdown: a paragraph that click does not rewrap becomes a block of code."""
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
