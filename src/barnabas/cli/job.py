"""`barnabas job`: the continuous work on Spark of a cluster. Reads and writes the topics of jobs; logs come from the engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.lazy import HELP_OPTIONS, Entry, LazyGroup
from barnabas.cli.output import Output, output_option, print_fields
from barnabas.cli.properties import parse_pairs
from barnabas.cli.types import WAIT
from barnabas.errors import BarnabasError, ConfigError

if TYPE_CHECKING:
    from barnabas.client.blocking import BlockingClient
    from barnabas.client.config import ClientConfig
    from barnabas.client.keyed_topic import KeyedTopic
    from barnabas.engine.jobs import Job
    from barnabas.engine.report import Report

COMMANDS = {
    "list": Entry("job", "list_jobs", "List the jobs: state, lag and the last error."),
    "describe": Entry("job", "describe", "Show a job with its state and its progress."),
    "pause": Entry("job", "pause", "Let jobs rest; they keep their state."),
    "resume": Entry("job", "resume", "Let jobs go on."),
    "restart": Entry("job", "restart", "Start jobs again, from their state or from nothing."),
    "logs": Entry("job", "logs", "Print the last lines of a job's log."),
    "create": Entry("job", "create", "Create a job that runs a pipeline."),
    "delete": Entry("job", "delete", "Delete jobs that run pipelines, and inserts."),
}
COLUMNS = {
    "name": "NAME",
    "kind": "KIND",
    "state": "STATE",
    "lag": "LAG",
    "rows": "ROWS",
    "since": "SINCE",
    "error": "LAST ERROR",
}
NO_ENGINE = "barnabas: no engine of this cluster works; `barnabas engine start` runs one"
NAMES = click.argument("names", nargs=-1, required=True, metavar="NAME...")


@click.group(cls=LazyGroup, entries=COMMANDS, context_settings=HELP_OPTIONS)
def job() -> None:
    """List, describe, pause, resume, restart and create jobs: views, inserts and pipelines on Spark."""


class Opened(Struct):
    """The client of a command, and the topic of jobs."""

    config: ClientConfig
    client: BlockingClient
    jobs: KeyedTopic[Job]

    def reports(self, name: str | None = None) -> list[Report]:
        """A job with its state and progress, or all of them. Raises UnknownJob."""
        from barnabas.engine.operations import UnknownJob
        from barnabas.engine.report import reports
        from barnabas.engine.stores import progress_of, states_of

        states, progress = states_of(self.config), progress_of(self.config)
        try:
            jobs = self.jobs.follow()
            if name is not None and name not in jobs:
                raise UnknownJob(f"there is no job {name}")
            return reports(self.client, jobs, states.follow(), progress.follow(), None if name is None else [name])
        finally:
            states.close()
            progress.close()


@contextmanager
def opened(connection: Connection) -> Iterator[Opened]:
    """Raises BadInput for what a user can mend, Failure for what the cluster refuses."""
    from barnabas.client.blocking import BlockingClient
    from barnabas.client.config import ClientConfig
    from barnabas.client.errors import ClientError
    from barnabas.engine.stores import jobs_of
    from barnabas.errors import KafkaError

    limit_ms = str(max(1, round(connection.timeout_s * 1000)))
    limits = {"client.id": "barnabas-cli", "request.timeout.ms": limit_ms, "default.api.timeout.ms": limit_ms}
    try:
        config = ClientConfig.from_options({**limits, **connection.properties, "bootstrap.servers": connection.bootstrap})
    except ConfigError as error:
        raise BadInput(str(error)) from error
    connection.require_broker()
    client, jobs = BlockingClient(config), jobs_of(config)
    try:
        yield Opened(config, client, jobs)
    except (KafkaError, ClientError) as error:
        raise Failure(str(error)) from None
    except BarnabasError as error:
        raise BadInput(str(error)) from None
    finally:
        jobs.close()
        client.close()


@click.command("list")
@connection_options
@output_option
def list_jobs(connection: Connection, output: Output) -> None:
    """List the jobs: state, lag and the last error.

    LAG is the number of records between a job and the ends of its topics.
    """
    from barnabas.engine.membership import active_engine
    from barnabas.engine.report import shown

    with opened(connection) as it:
        found = it.reports()
        engine = active_engine(it.client) if found else None
    rows = []
    for each in found:
        fields = shown(each)
        since = None if each.state is None else _time(each.state.since_ms)
        rows.append({**fields, "rows": None if each.progress is None else each.progress.total_in, "since": since})
    output.table(rows, COLUMNS, empty="there is no job")
    if found and engine is None:
        click.echo(NO_ENGINE, err=True)


@click.command()
@click.argument("name")
@connection_options
@output_option
def describe(connection: Connection, output: Output, name: str) -> None:
    """Show a job with its state and its progress."""
    from barnabas.engine.membership import active_engine
    from barnabas.engine.report import shown

    with opened(connection) as it:
        found = shown(it.reports(name)[0])
        engine = active_engine(it.client)
    found["engine"] = found.get("engine") or (None if engine is None else engine.url)
    if output.as_json:
        output.json(found)
        return
    progress = found.pop("progress") or {}
    offsets = progress.pop("offsets", {})
    for key in ("since_ms", "next_try_ms", "created_ms", "at_ms"):
        its = found if key in found else progress
        if key in its:
            its[key.removesuffix("_ms")] = _time(its.pop(key))
    lines = {f"offsets of {topic}": ", ".join(f"{at}: {offset}" for at, offset in its.items()) for topic, its in offsets.items()}
    print_fields({**{key: value for key, value in {**found, **progress}.items() if value not in (None, [], {})}, **lines})
    if engine is None:
        click.echo(NO_ENGINE, err=True)


@click.command()
@NAMES
@connection_options
@output_option
def pause(connection: Connection, output: Output, names: tuple[str, ...]) -> None:
    """Let jobs rest; they keep their state."""
    from barnabas.engine.operations import pause

    _each(connection, output, names, pause, "paused")


@click.command()
@NAMES
@connection_options
@output_option
def resume(connection: Connection, output: Output, names: tuple[str, ...]) -> None:
    """Let jobs go on."""
    from barnabas.engine.operations import resume

    _each(connection, output, names, resume, "resumed")


@click.command()
@NAMES
@click.option(
    "--rebuild", is_flag=True, help="Throw its state away, and compute everything again; refused for jobs that add rows."
)
@connection_options
@output_option
def restart(connection: Connection, output: Output, names: tuple[str, ...], rebuild: bool) -> None:
    """Start jobs again, from their state or from nothing.

    A paused job runs afterwards.
    """
    from barnabas.engine.operations import restart

    _each(connection, output, names, lambda *its: restart(*its, rebuild=rebuild), "restarted")


@click.command()
@NAMES
@connection_options
@output_option
def delete(connection: Connection, output: Output, names: tuple[str, ...]) -> None:
    """Delete jobs that run pipelines, and inserts.

    Views and streams are dropped by SQL.
    """
    from barnabas.engine.operations import delete

    _each(connection, output, names, delete, "deleted")


@click.command()
@click.argument("name")
@click.argument("target")
@click.argument("arguments", nargs=-1)
@click.option("--every", type=WAIT, metavar="SECONDS", help="Update a project again at this interval.")
@click.option("--conf", "conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark; repeatable.")
@connection_options
@output_option
def create(
    connection: Connection, output: Output, name: str, target: str, arguments: tuple[str, ...], every: float | None,
    conf: tuple[str, ...],
) -> None:  # fmt: skip
    """Create a job that runs a pipeline.

    It has the name NAME, and runs the project, specification or script TARGET with its ARGUMENTS. TARGET is a path on the machine of
    the engine. It lies in the folder that `barnabas engine start --pipelines` names; a path that is not absolute begins there.
    """
    from barnabas.engine import operations

    with opened(connection) as it:
        made = operations.pipeline(name, target, arguments, every, parse_pairs(conf, "--conf"))
        operations.create(it.jobs, it.client, made)
    output.done(f"created {name}", {"created": name})


@click.command()
@click.argument("name")
@click.option("--lines", type=click.IntRange(1, 10_000), default=100, show_default=True, help="The number of lines.")
@connection_options
def logs(connection: Connection, name: str, lines: int) -> None:
    """Print the last lines of a job's log.

    The engine has the log, so one must work.
    """
    from barnabas.cli.engine_http import EngineHttp
    from barnabas.engine.membership import active_engine

    with opened(connection) as it:
        state = it.reports(name)[0].state
        engine = active_engine(it.client)
        if engine is None:
            raise Failure(NO_ENGINE.removeprefix("barnabas: "))
        url = (state and state.url) or engine.url  # of the engine that runs it
        text = EngineHttp(url, it.config).get("jobs", name, "logs", lines=lines)
    click.echo(text, nl=False)


def _each(connection: Connection, output: Output, names: tuple[str, ...], change: Callable[..., Any], done: str) -> None:
    with opened(connection) as it:
        for name in names:
            change(it.jobs, it.client, name)
            if not output.as_json:
                click.echo(f"{done} {name}")
    if output.as_json:
        output.json({done: list(names)})


def _time(milliseconds: int | None) -> str | None:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(milliseconds / 1000)) if milliseconds else None
