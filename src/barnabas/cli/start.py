"""`barnabas start`: a broker without configuration."""

from __future__ import annotations

import sys
from typing import Any

import click

from barnabas.cli.broker import broker_options, collect_properties, is_given, run_server, server_options
from barnabas.cli.types import DataFolder

DATA_DIR = "barnabas-data"
LISTENERS = "PLAINTEXT://127.0.0.1:9092"


@click.command()
@click.option("--data-dir", type=DataFolder(), default=DATA_DIR, show_default=True, envvar="BARNABAS_DATA_DIR", show_envvar=True,
              help="The folder of the topics, created if missing. log.dirs in the settings overrides "
                  "the environment variable and the default.")  # fmt: skip
@click.option(
    "--listeners", metavar="NAME://HOST:PORT,...", help=f"The addresses that accept connections.  [default: {LISTENERS}]"
)
@click.option("--secure", "is_secure", is_flag=True, help="Require TLS, log-in by password and access control; the first start creates "
    "certificates and a user in the folder DATA_DIR-security.")  # fmt: skip
@broker_options
def start(data_dir: str, listeners: str | None, is_secure: bool, **options: Any) -> int:
    """Run a broker with friendly defaults.

    Data is in the folder barnabas-data of the current folder; clients connect to 127.0.0.1:9092. Ctrl-C stops the broker; the
    next start in the same folder has all data again.
    """
    properties = collect_properties(
        data_dir=data_dir if is_given("data_dir") else None, listeners=listeners, **server_options(options)
    )
    if not {"log.dirs", "log.dir"} & properties.keys():
        properties["log.dirs"] = data_dir
    if is_secure:
        from barnabas.cli.secure import greet, secure

        greet(secure(properties))
    properties.setdefault("listeners", LISTENERS)
    if sys.stderr.isatty() and not is_secure:
        _greet(properties.get("log.dirs") or properties["log.dir"])
    return run_server(properties, options["metrics_listener"], options["log_level"])


def _greet(data_dir: str) -> None:
    click.echo(f"barnabas keeps its data in {data_dir}; Ctrl-C stops it. In another terminal:", err=True)
    click.echo("  echo hello | barnabas produce greetings", err=True)
    click.echo("  barnabas consume greetings --from earliest", err=True)
