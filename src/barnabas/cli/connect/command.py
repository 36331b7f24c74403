"""`barnabas connect`: connectors, and the worker that runs them."""

from __future__ import annotations

import click

from barnabas.cli.lazy import HELP_OPTIONS, Entry, LazyGroup

COMMANDS = {
    "plugins": Entry("connect.connectors", "plugins", "List the connector classes that a worker has."),
    "create": Entry("connect.connectors", "create", "Create the connectors of files: YAML, JSON or properties."),
    "validate": Entry("connect.connectors", "validate", "Check the connectors of files; none is created."),
    "apply": Entry("connect.apply", "apply", "Make connectors equal to the files of a folder."),
    "list": Entry("connect.connectors", "list_connectors", "List the connectors: state, tasks and the last error."),
    "status": Entry("connect.connectors", "status", "Show what connectors and their tasks do."),
    "describe": Entry("connect.connectors", "describe", "Show a connector: its config, status, topics and offsets."),
    "pause": Entry("connect.connectors", "pause", "Let the tasks of connectors rest."),
    "resume": Entry("connect.connectors", "resume", "Let connectors go on that were paused or stopped."),
    "stop": Entry("connect.connectors", "stop", "End the tasks of connectors; configs and offsets stay."),
    "restart": Entry("connect.connectors", "restart", "Restart connectors with their tasks."),
    "delete": Entry("connect.connectors", "delete", "Delete connectors."),
    "offsets": Entry("connect.offsets", "offsets", "Show the offsets of a connector, or change those of a stopped one."),
    "logs": Entry("connect.task_logs", "logs", "Print the last lines of the logs of a connector's tasks."),
    "run": Entry(
        "connect.run", "run", "Run the connectors of a Python FILE until Ctrl-C: functions with @source or @sink, and classes."
    ),
    "start": Entry("connect.worker", "start", "Run a worker of Connect until it is told to stop."),
    "standalone": Entry("connect.worker", "standalone", "Run connectors of files in one process until it is told to stop."),
}


@click.group(cls=LazyGroup, entries=COMMANDS, context_settings=HELP_OPTIONS)
def connect() -> None:
    """Create, list and change connectors, or run a worker of Connect."""
