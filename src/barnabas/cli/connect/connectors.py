"""Commands about connectors: what there is, what it does, and changes of both."""

from __future__ import annotations

from typing import Any

import click

from barnabas.cli.connect.checking import errors_of
from barnabas.cli.connect.files import read_file
from barnabas.cli.connect.rest import Rest, rest_options
from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.output import Output, output_option, print_fields, print_table
from barnabas.cli.types import READABLE

NAMES = click.argument("names", nargs=-1, required=True, metavar="NAME...")
FILES = click.argument("files", nargs=-1, required=True, metavar="FILE...", type=READABLE)
COLUMNS = {"name": "NAME", "type": "TYPE", "class": "CLASS", "state": "STATE", "tasks": "TASKS", "error": "LAST ERROR"}
TASK_COLUMNS = {"connector": "CONNECTOR", "task": "TASK", "state": "STATE", "worker_id": "WORKER", "error": "ERROR"}


@click.command()
@click.option("--all", "is_all", is_flag=True, help="Also converters, transforms and predicates.")
@rest_options
@output_option
def plugins(rest: Rest, output: Output, is_all: bool) -> None:
    """List the connector classes that a worker has."""
    found = rest.get("connector-plugins", query={"connectorsOnly": "false" if is_all else "true"})
    output.table(found, {"class": "CLASS", "type": "TYPE", "version": "VERSION"}, empty="there is no plug-in")


@click.command("list")
@rest_options
@output_option
def list_connectors(rest: Rest, output: Output) -> None:
    """List the connectors: state, tasks and the last error."""
    found = rest.get("connectors", query={"expand": ["info", "status"]})
    rows = [_row(name, each.get("info") or {}, each.get("status") or {}) for name, each in sorted(found.items())]
    output.table(rows, COLUMNS, empty="there is no connector")


def _row(name: str, info: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
    tasks = status.get("tasks", [])
    running = sum(each["state"] == "RUNNING" for each in tasks)
    traces = [_first_line(each) for each in (status.get("connector", {}), *tasks) if each.get("trace")]
    return {
        "name": name,
        "type": info.get("type"),
        "class": info.get("config", {}).get("connector.class", "").rpartition(".")[2],
        "state": status.get("connector", {}).get("state"),
        "tasks": f"{running}/{len(tasks)}",
        "error": traces[0] if traces else None,
    }


def _first_line(part: dict[str, Any]) -> str:
    return str(part.get("trace") or "").split("\n", 1)[0]


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@rest_options
@output_option
def status(rest: Rest, output: Output, names: tuple[str, ...]) -> None:
    """Show what connectors and their tasks do.

    Without a name it shows all connectors. An error comes with its first line, with --json whole.
    """
    if names:
        found = [rest.get("connectors", name, "status") for name in names]
    else:
        every = rest.get("connectors", query={"expand": "status"})
        found = [each["status"] for _, each in sorted(every.items()) if each.get("status")]
    if output.as_json:
        output.json(found)
        return
    rows: list[dict[str, Any]] = []
    for each in found:
        parts = [("-", each["connector"]), *((str(task["id"]), task) for task in each["tasks"])]
        for task, part in parts:
            rows.append({"connector": each["name"], "task": task, **part, "error": _first_line(part) or None})
    if rows:
        print_table(rows, TASK_COLUMNS)
    else:
        click.echo("there is no connector")


@click.command()
@click.argument("name")
@rest_options
@output_option
def describe(rest: Rest, output: Output, name: str) -> None:
    """Show a connector: its config, status, topics and offsets."""
    info = rest.get("connectors", name)
    topics = rest.get("connectors", name, "topics").get(name, {}).get("topics", [])
    found = {
        **info,
        "status": rest.get("connectors", name, "status"),
        "topics": topics,
        "offsets": rest.get("connectors", name, "offsets")["offsets"],
    }
    if output.as_json:
        output.json(found)
        return
    row = _row(name, info, found["status"])
    print_fields(
        {
            "name": name,
            "type": info["type"],
            "state": row["state"],
            "tasks": row["tasks"],
            "topics": topics,
            "error": row["error"],
        }
    )
    print_table([{"key": key, "value": value} for key, value in sorted(info["config"].items())], {"key": "KEY", "value": "VALUE"})


@click.command()
@FILES
@rest_options
@output_option
def create(rest: Rest, output: Output, files: tuple[str, ...]) -> None:
    """Create the connectors of files: YAML, JSON or properties."""
    made = []
    for connector in [each for file in files for each in read_file(file)]:
        rest.ask("POST", "connectors", body=connector.request())
        made.append(connector.name)
        if not output.as_json:
            click.echo(f"created {connector.name}")
    if output.as_json:
        output.json({"created": made})


@click.command()
@FILES
@rest_options
@output_option
def validate(rest: Rest, output: Output, files: tuple[str, ...]) -> None:
    """Check the connectors of files; none is created.

    Each error is a line, and errors make the exit code 1.
    """
    rows = []
    for connector in [each for file in files for each in read_file(file)]:
        found = errors_of(rest, connector)
        rows += [{"connector": connector.name, "key": key, "error": error} for key, error in found]
    output.table(rows, {"connector": "CONNECTOR", "key": "KEY", "error": "ERROR"}, empty="no errors")
    if rows:
        raise Failure(f"{len(rows)} error{'s' if len(rows) > 1 else ''}")


@click.command()
@NAMES
@rest_options
@output_option
def pause(rest: Rest, output: Output, names: tuple[str, ...]) -> None:
    """Let the tasks of connectors rest."""
    _each(rest, output, names, "PUT", "pause", "paused")


@click.command()
@NAMES
@rest_options
@output_option
def resume(rest: Rest, output: Output, names: tuple[str, ...]) -> None:
    """Let connectors go on that were paused or stopped."""
    _each(rest, output, names, "PUT", "resume", "resumed")


@click.command()
@NAMES
@rest_options
@output_option
def stop(rest: Rest, output: Output, names: tuple[str, ...]) -> None:
    """End the tasks of connectors; configs and offsets stay.

    The offsets of a stopped connector may be changed.
    """
    _each(rest, output, names, "PUT", "stop", "stopped")


@click.command()
@NAMES
@rest_options
@output_option
def delete(rest: Rest, output: Output, names: tuple[str, ...]) -> None:
    """Delete connectors.

    The offsets of a source stay, for one of the same name.
    """
    _each(rest, output, names, "DELETE", None, "deleted")


@click.command()
@NAMES
@click.option("--task", type=click.IntRange(0, 2**31 - 1), metavar="N", help="Only this task.")
@click.option("--only-failed", is_flag=True, help="Only what has failed.")
@click.option("--no-tasks", is_flag=True, help="The connector, not its tasks.")
@rest_options
@output_option
def restart(
    rest: Rest, output: Output, names: tuple[str, ...], task: int | None, only_failed: bool, no_tasks: bool
) -> None:  # fmt: skip
    """Restart connectors with their tasks."""
    if task is not None and (only_failed or no_tasks):
        raise BadInput("--task excludes --only-failed and --no-tasks")
    for name in names:
        if task is not None:
            rest.ask("POST", "connectors", name, "tasks", str(task), "restart")
        else:
            query = {"includeTasks": str(not no_tasks).lower(), "onlyFailed": str(only_failed).lower()}
            rest.ask("POST", "connectors", name, "restart", query=query)
        if not output.as_json:
            click.echo(f"restarted {name}")
    if output.as_json:
        output.json({"restarted": list(names)})


def _each(rest: Rest, output: Output, names: tuple[str, ...], method: str, verb: str | None, done: str) -> None:
    for name in names:
        rest.ask(method, "connectors", name, *([] if verb is None else [verb]))
        if not output.as_json:
            click.echo(f"{done} {name}")
    if output.as_json:
        output.json({done: list(names)})
