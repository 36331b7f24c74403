"""`barnabas connect run`: the connectors of a Python file, in this process."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Sequence
from pathlib import Path

import click

from barnabas.cli.connection import Connection, connection_options
from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.properties import parse_pairs
from barnabas.cli.types import READABLE
from barnabas.errors import BarnabasError, ConfigError


@click.command("run")
@click.argument("file", type=READABLE)
@click.option(
    "--config",
    "pairs",
    multiple=True,
    metavar="KEY=VALUE",
    help="A config key of the connectors, such as topic, transforms or value.converter; repeatable.",
)
@connection_options
def run(connection: Connection, file: str, pairs: tuple[str, ...]) -> None:
    """Run the connectors of a Python FILE until Ctrl-C: functions with @source or @sink, and classes.

    Keys and values are JSON without schemas unless --config names other converters. A source goes on from its last offset, which lies in
    the topic connect-offsets.
    """
    from barnabas.client.errors import ClientError
    from barnabas.connect.errors import ConnectError
    from barnabas.connect.standalone import connectors_of
    from barnabas.connect.standalone import run as run_all
    from barnabas.errors import KafkaError

    config = parse_pairs(pairs, "--config")
    connection.require_broker()
    logging.basicConfig(level="CRITICAL")  # the error comes in one line
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: stopping.set())
    settings = {"client.id": "barnabas-connect", **connection.properties, "bootstrap.servers": connection.bootstrap}
    path = Path(file)
    try:
        classes = connectors_of(path)
    except ConnectError as error:
        raise BadInput(str(error)) from None
    except Exception as error:  # noqa: BLE001 - the file's own error
        raise BadInput(f"{path} cannot be run: {type(error).__name__}: {error}") from None
    try:
        run_all(classes, config, settings, stopping, _started)
    except ConfigError as error:
        raise BadInput(str(error)) from None
    except (ConnectError, KafkaError, ClientError, BarnabasError) as error:
        raise Failure(str(error)) from None


def _started(names: Sequence[str]) -> None:
    click.echo(f"barnabas: running {', '.join(names)}; Ctrl-C ends")
