"""`barnabas connect logs`: the last lines of the logs of a connector's tasks, which the engine has."""

from __future__ import annotations

import click

from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import Failure
from barnabas.cli.job import NO_ENGINE, opened


@click.command()
@click.argument("name")
@click.option("--task", type=click.IntRange(0, 2**31 - 1), metavar="N", help="Only this task.")
@click.option("--lines", type=click.IntRange(1, 10_000), default=100, show_default=True, help="The number of lines of each task.")
@connection_options
def logs(connection: Connection, name: str, task: int | None, lines: int) -> None:
    """Print the last lines of the logs of a connector's tasks.

    The engine that runs a task has its log, so it must work. Kafka Connect has none.
    """
    from barnabas.cli.engine_http import EngineHttp
    from barnabas.engine.jobs import ConnectorWork
    from barnabas.engine.membership import active_engine
    from barnabas.engine.operations import UnknownJob

    with opened(connection) as it:
        works = {job.name: job.work for job in it.jobs.follow().values() if isinstance(job.work, ConnectorWork)}
        found = sorted((work.task, job) for job, work in works.items() if work.connector == name and task in (None, work.task))
        if not found:
            raise UnknownJob(
                f"the connector {name} has no such task" if task is not None else f"the connector {name} has no tasks"
            )
        engine = active_engine(it.client)
        if engine is None:
            raise Failure(NO_ENGINE.removeprefix("barnabas: "))
        for number, job in found:
            if len(found) > 1:
                click.echo(f"== {name} task {number}")
            state = it.reports(job)[0].state
            url = (state and state.url) or engine.url  # of the engine that runs it
            click.echo(EngineHttp(url, it.config).get("jobs", job, "logs", lines=lines), nl=False)
