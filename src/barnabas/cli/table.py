"""`barnabas table`: topics as tables with columns."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connection import Connection
from barnabas.cli.lazy import HELP_OPTIONS, Entry, LazyGroup
from barnabas.cli.output import Output, output_option, print_table
from barnabas.cli.table_options import TableOptions, condition_options, place_options, query_options, table_errors, table_options
from barnabas.cli.types import COUNT

if TYPE_CHECKING:
    from barnabas.tables.query import Query

COMMANDS = {
    "list": Entry("table", "list_tables", "List the topics that can be read as tables."),
    "describe": Entry("table", "describe", "Show the columns of TOPIC and its partitions."),
    "infer": Entry("table", "infer", "Print columns for TOPIC that fit its records of JSON."),
    "head": Entry("table", "head", "Print the first rows of TOPIC."),
    "count": Entry("table", "count", "Print the number of rows of TOPIC."),
    "export": Entry("table_export", "export", "Write the rows of TOPIC to FILE: Parquet, CSV, JSON lines or Arrow."),
}


@click.group(cls=LazyGroup, entries=COMMANDS, context_settings=HELP_OPTIONS)
def table() -> None:
    """Read topics as tables: columns, rows, counts, files."""


@click.command("list")
@click.option("--all", "with_internal", is_flag=True, help="Also topics that brokers and services keep for themselves.")
@place_options
@output_option
def list_tables(connection: Connection, output: Output, data_folder: str | None, with_internal: bool) -> None:
    """List the topics that can be read as tables.

    OFFSETS is the number of offsets: a topic has at most so many rows. It is empty while a partition has no leader.
    """
    with table_errors():
        from barnabas.tables import catalog

        if data_folder is not None:
            found = catalog.topics_of_folder(data_folder)
        else:
            connection.require_broker()
            settings = TableOptions(connection, None).client_settings()
            found = catalog.topics_of_cluster({**settings, "bootstrap.servers": connection.bootstrap})
    rows = [
        {"topic": each.topic, "partitions": each.partitions, "offsets": each.offsets}
        for each in found
        if with_internal or not each.is_internal
    ]
    output.table(rows, {"topic": "TOPIC", "partitions": "PARTITIONS", "offsets": "OFFSETS"}, empty="there is no topic")


@click.command()
@click.argument("topic")
@table_options
@output_option
def describe(options: TableOptions, output: Output, topic: str) -> None:
    """Show the columns of TOPIC and its partitions.

    The types are those of SQL. A partition has rows from its first offset to its last.
    """
    with options.opened(topic) as table:
        from barnabas.tables.column_types import type_name

        columns = [{"column": each.name, "type": type_name(each)} for each in table.schema]
        ranges = table.explain().planned
        partitions = [
            {"partition": partition, "first": bounds[0].start, "last": bounds[-1].end - 1}
            for partition, bounds in sorted(ranges.items())
        ]
    if output.as_json:
        output.json({"topic": topic, "columns": columns, "partitions": partitions})
        return
    print_table(columns, {"column": "COLUMN", "type": "TYPE"})
    click.echo()
    output.table(partitions, {"partition": "PARTITION", "first": "FIRST", "last": "LAST"}, empty="it has no rows")


@click.command()
@click.argument("topic")
@click.option(
    "--sample", type=click.IntRange(1, 1_000_000), default=1_000, show_default=True, help="The number of records to look at."
)
@place_options
@output_option
def infer(connection: Connection, output: Output, data_folder: str | None, topic: str, sample: int) -> None:
    """Print columns for TOPIC that fit its records of JSON.

    The line is a declaration for --columns with --format json. It comes from the last records of each partition; records that do not
    fit it have nulls.
    """
    with TableOptions(connection, data_folder).opened(topic) as table:
        from barnabas.tables.column_types import columns_text, type_name
        from barnabas.tables.inference import infer

        fields = infer(table.source, sample=sample)
    columns = [{"column": each.name, "type": type_name(each)} for each in fields]
    output.done(columns_text(fields), {"topic": topic, "columns": columns, "declaration": columns_text(fields)})


@click.command()
@click.argument("topic")
@click.option("-n", "--rows", "most", type=COUNT, default=10, show_default=True, help="The number of rows.")
@query_options
@table_options
@output_option
def head(
    options: TableOptions, output: Output, topic: str, most: int, select: str | None, where: str | None, explain: bool
) -> None:
    """Print the first rows of TOPIC.

    Rows come partition by partition. The rest of the topic is not read.
    """
    with options.opened(topic) as table:
        from barnabas.tables import rendering
        from barnabas.tables.query import Query

        with Query(table, select, where, most) as query:
            batches = list(query.batches())
            names = query.schema.names
            if output.as_json:
                output.json([row for batch in batches for row in rendering.json_rows(batch)])
            else:
                rows = [
                    dict(zip(map(str, range(len(names))), row, strict=True))
                    for batch in batches
                    for row in rendering.cells(batch)
                ]
                print_table(rows, {str(place): name for place, name in enumerate(names)})
            print_account(query, explain)


@click.command()
@click.argument("topic")
@condition_options
@table_options
@output_option
def count(options: TableOptions, output: Output, topic: str, where: str | None, explain: bool) -> None:
    """Print the number of rows of TOPIC."""
    with options.opened(topic) as table:
        from barnabas.tables.query import Query

        if where is None and not explain:
            rows = table.count()
        else:
            with Query(table, "_offset", where) as query:
                rows = sum(batch.num_rows for batch in query.batches())
                print_account(query, explain)
    output.done(str(rows), {"topic": topic, "rows": rows})


def print_account(query: Query, wanted: bool) -> None:
    """Print what a query read, to standard error."""
    account: Any = query.explain() if wanted else None
    if account is not None:
        click.echo(str(account), file=sys.stderr)
