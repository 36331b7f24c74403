"""`barnabas table export`: rows of a topic in a file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.output import Output, output_option
from barnabas.cli.table import print_account
from barnabas.cli.table_options import TableOptions, query_options, table_options
from barnabas.cli.types import COUNT, FilePath
from barnabas.signals import interrupted_by_sigterm

if TYPE_CHECKING:
    from barnabas.tables.query import Query

FORMATS = ("parquet", "csv", "json", "arrow")
Show = Callable[[int], None]


@click.command()
@click.argument("topic")
@click.argument("file", type=FilePath(dir_okay=False))
@click.option("--to", "form", type=click.Choice(FORMATS), help="The format; otherwise the ending of FILE says it.")
@click.option("-n", "--rows", "most", type=COUNT, help="Write at most so many rows.")
@query_options
@table_options
@output_option
def export(
    options: TableOptions, output: Output, topic: str, file: str, form: str | None, most: int | None, select: str | None,
    where: str | None, explain: bool,
) -> None:  # fmt: skip
    """Write the rows of TOPIC to FILE: Parquet, CSV, JSON lines or Arrow.

    The endings are .parquet, .csv, .json, .jsonl, .ndjson, .arrow and .feather. FILE appears when it is complete, and replaces an
    older one. With - as FILE and --to, the rows go to standard output.
    """
    with options.opened(topic) as table, interrupted_by_sigterm():
        from barnabas.tables import export as files
        from barnabas.tables.query import Query

        chosen = files.format_of(file, form)
        with Query(table, select, where, most) as query:
            if file == "-":
                rows = files.export(query.batches(), query.schema, sys.stdout.buffer, chosen)
            else:
                with files.replaced(file) as target:
                    rows = files.export(_shown(query), query.schema, target, chosen)
            print_account(query, explain)
    if file != "-":
        output.done(f"wrote {rows} rows to {file}", {"topic": topic, "file": file, "format": chosen, "rows": rows})


def _shown(query: Query) -> Iterator[Any]:
    """The rows of a query, with a progress bar on a terminal."""
    account = query.explain()
    total = 0 if account is None else account.offsets - account.skipped_offsets
    with _progress(total) as show:
        for batch in query.batches():
            yield batch
            account = query.explain()
            show(0 if account is None else account.rows_decoded)


@contextmanager
def _progress(total: int) -> Iterator[Show]:
    if not sys.stderr.isatty():
        yield lambda rows: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("records", total=total or None)
        yield lambda rows: progress.update(task, completed=rows)
