"""`barnabas sql`: the shell, for a terminal, for statements of the command line, for files and for pipes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import BadInput
from barnabas.cli.lazy import HELP_OPTIONS, Entry, LazyGroup
from barnabas.cli.properties import parse_pairs
from barnabas.cli.registry_connection import URL
from barnabas.cli.sql.session_maker import SessionMaker, close_all, write_error
from barnabas.cli.sql.variables import checked_name
from barnabas.cli.types import ANY_TEXT, FilePath

if TYPE_CHECKING:
    from barnabas.cli.sql.shell import Options

FORMATS = ("table", "csv", "json", "jsonl", "vertical")


@click.group(
    cls=LazyGroup,
    entries={"start": Entry("services", "sql_start", "Run SQL over topics until it is told to stop.")},
    context_settings=HELP_OPTIONS,
    invoke_without_command=True,
)
@click.option("-c", "--command", "statements", metavar="STATEMENT", multiple=True, type=ANY_TEXT,
              help="Run these statements or this command with a backslash, and end; repeatable.")  # fmt: skip
@click.option("-f", "--file", "files", metavar="FILE", multiple=True, type=FilePath(exists=True, dir_okay=False, allow_dash=True),
              help="Run the statements of a file, - for standard input, and end; repeatable.")  # fmt: skip
@click.option(
    "--format", "format_name", type=click.Choice(FORMATS), default="table", show_default=True, help="How rows are shown."
)
@click.option("--no-header", is_flag=True, help="Leave out names of columns and counts of rows.")
@click.option("--timing", is_flag=True, help="Show the time of each statement.")
@click.option("-o", "--output", metavar="FILE", type=FilePath(dir_okay=False), help="Write results to a file.")
@click.option("-v", "--variable", "variables", metavar="NAME=VALUE", multiple=True, type=ANY_TEXT,
              help="A value for :NAME, :'NAME' and :\"NAME\" in statements; repeatable.")  # fmt: skip
@click.option("--schema-registry", "registry", type=URL, metavar="URL", envvar="SCHEMA_REGISTRY_URL",
              help="The registry for tables with schemas; the variable SCHEMA_REGISTRY_URL sets it too.")  # fmt: skip
@connection_options
@click.pass_context
def sql(
    context: click.Context, connection: Connection, statements: tuple[str, ...], files: tuple[str, ...], format_name: str,
    no_header: bool, timing: bool, output: str | None, variables: tuple[str, ...], registry: str | None,
) -> int | None:  # fmt: skip
    """Ask topics in SQL, or run SQL as a service.

    \b
    barnabas sql
    barnabas sql -c 'SELECT count(*) FROM orders'
    barnabas sql -f report.sql --format csv -o report.csv
    echo 'SHOW TABLES' | barnabas sql

    Without -c and -f it reads statements from the terminal or from standard input. Input that is not typed ends at the first
    error, with exit code 1; an open transaction is rolled back then.
    """
    if context.invoked_subcommand is not None:
        _refuse_options(context)
        return None
    if statements and files:
        raise click.UsageError("-c and -f exclude each other")
    from barnabas.services.table import SQL

    for library in SQL:
        if find_spec(library) is None:
            raise BadInput(f"SQL needs the library {library}: pip install 'barnabas[sql]'")
    options = _options(format_name, variables, header=not no_header, timing=timing)
    session_maker = SessionMaker(connection, registry)
    if statements or files or not sys.stdin.isatty():
        return _run_input(session_maker, options, statements, files, output)
    from barnabas.cli.sql.prompt import run_prompt

    return run_prompt(session_maker, options, output)


def _refuse_options(context: click.Context) -> None:
    given = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name and context.get_parameter_source(parameter.name) is click.core.ParameterSource.COMMANDLINE
    ]
    if given:
        raise click.UsageError(f"{given[0]} belongs behind the word {context.invoked_subcommand}, or is no option of it")


def _options(format_name: str, variables: Iterable[str], *, header: bool, timing: bool) -> Options:
    from barnabas.cli.sql.printers import Style
    from barnabas.cli.sql.shell import Options

    values = {checked_name(name): value for name, value in parse_pairs(variables, "-v").items()}
    return Options(Style(format_name, header), timing, variables=values)


def _run_input(
    maker: SessionMaker, options: Options, statements: tuple[str, ...], files: tuple[str, ...], output: str | None
) -> int:
    from barnabas.cli.sql.backslash import run_command
    from barnabas.cli.sql.shell import Failed, Shell

    shell = Shell(maker, write_error, run_command, options)
    try:
        if output is not None:
            shell.redirect(output)
        for source, lines in _inputs(statements, files):
            if not shell.has_ended:
                shell.run_lines(lines, source)
        shell.check_transaction()
    except Failed:
        return 1
    finally:
        close_all(shell, maker)
    return 0


def _inputs(statements: tuple[str, ...], files: tuple[str, ...]) -> Iterator[tuple[str, Iterable[str]]]:
    """The name of each input, which is empty for statements, and its lines."""
    for text in statements:
        yield "", text.splitlines(keepends=True)
    for path in files or (() if statements else ("-",)):
        if os.fsdecode(path) == "-":
            yield "<stdin>", _decoded(sys.stdin)
        else:
            yield os.fsdecode(path), _file_lines(path)


def _file_lines(path: str) -> Iterator[str]:
    with open(path, encoding="utf-8") as file:
        yield from _decoded(file)


def _decoded(lines: Iterable[str]) -> Iterator[str]:
    try:
        yield from lines
    except UnicodeDecodeError:
        raise BadInput("the input is not UTF-8") from None
