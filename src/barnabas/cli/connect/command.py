"""`barnabas connect`: connectors, and the worker that runs them."""

from __future__ import annotations

import click

from barnabas.cli.lazy import HELP_OPTIONS, Entry, LazyGroup


@click.group(
    cls=LazyGroup,
    entries={
        "start": Entry("services", "connect_start", "Run a worker of Connect until it is told to stop."),
        "run": Entry(
            "connect.run",
            "run",
            "Run the connectors of a Python FILE until Ctrl-C: functions with @source or @sink, and classes.",
        ),
    },
    context_settings=HELP_OPTIONS,
)
def connect() -> None:
    """Create, list and change connectors, or run a worker of Connect."""
