"""Output of results: JSON for programs, a table by rich on a terminal, the same columns as plain text anywhere else.

Plain text has each row on one line of any length, for `grep` and `awk`. The import of rich takes 0.1 s, so it happens only for
a terminal.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click
from msgspec import Struct

Row = Mapping[str, Any]


class Output(Struct, frozen=True):
    """Prints the results of a command."""

    as_json: bool

    def table(self, rows: Sequence[Row], columns: Mapping[str, str], *, title: str | None = None, empty: str = "nothing") -> None:
        """Prints rows under `columns` (field -> heading); with --json the rows with all fields."""
        if self.as_json:
            self.json(list(rows))
        elif not rows:
            click.echo(empty, err=True)
        else:
            print_table(rows, columns, title)

    def done(self, message: str, data: Any) -> None:
        """Prints that an action was done: the sentence, or the data as JSON."""
        if self.as_json:
            self.json(data)
        else:
            click.echo(message)

    def json(self, data: Any) -> None:
        click.echo(json.dumps(data, indent=2, ensure_ascii=False, default=str))


def print_table(rows: Sequence[Row], columns: Mapping[str, str], title: str | None = None) -> None:
    cells = [[cell(row.get(name)) for name in columns] for row in rows]
    numeric = [all(isinstance(row.get(name), int | float | None) for row in rows) for name in columns]
    if sys.stdout.isatty():
        _print_rich(list(columns.values()), cells, numeric, title)
    else:
        _print_plain(list(columns.values()), cells, numeric, title)


def print_fields(fields: Mapping[str, Any]) -> None:
    """Prints one object with few fields, one field a line."""
    width = max(map(len, fields), default=0)
    for name, value in fields.items():
        click.echo(f"{name:<{width}}  {cell(value)}")


def cell(value: Any) -> str:
    """A value as readable text."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, list | tuple | set):
        return ",".join(map(str, value)) or "-"
    return str(value)


def _print_plain(headings: list[str], cells: list[list[str]], numeric: list[bool], title: str | None) -> None:
    if title:
        click.echo(title)
    widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
    for line in [headings, *cells]:
        parts = [
            text.rjust(width) if right else text.ljust(width) for text, width, right in zip(line, widths, numeric, strict=True)
        ]
        click.echo("  ".join(parts).rstrip())


def _print_rich(headings: list[str], cells: list[list[str]], numeric: list[bool], title: str | None) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for heading, right in zip(headings, numeric, strict=True):
        table.add_column(heading, justify="right" if right else "left", overflow="fold")
    for line in cells:
        table.add_row(*map(Text, line))
    Console().print(table)


def output_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --json and call it with an `output`."""

    @functools.wraps(function)
    def command(*, as_json: bool, **options: Any) -> Any:
        return function(output=Output(as_json), **options)

    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def report_failures(failures: Sequence[str]) -> int:
    """Print one line for each part that failed; returns the exit code."""
    for failure in failures:
        click.echo(f"barnabas: {failure}", err=True)
    return 1 if failures else 0


def counted(number: int, noun: str) -> str:
    """The number and the noun, such as `1 topic` or `2 topics`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
