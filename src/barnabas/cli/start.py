"""`barnabas start`: a broker without configuration."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from barnabas.cli.broker import broker_options, collect_properties, is_given, run_server, server_options
from barnabas.cli.services import beside_options
from barnabas.cli.services_beside import ServicesAsked, beside
from barnabas.cli.types import READABLE, DataFolder

DATA_DIR = "barnabas-data"
LISTENERS = "PLAINTEXT://127.0.0.1:9092"
# as in the server.properties that Kafka ships: the first member of a group, and so each service, begins at once
NO_DELAY = {"group.initial.rebalance.delay.ms": "0"}


@click.command()
@click.option("--data-dir", type=DataFolder(), default=DATA_DIR, show_default=True, envvar="BARNABAS_DATA_DIR", show_envvar=True,
              help="The folder of the topics, created if missing. log.dirs in the settings overrides "
                  "the environment variable and the default.")  # fmt: skip
@click.option(
    "--listeners", metavar="NAME://HOST:PORT,...", help=f"The addresses that accept connections.  [default: {LISTENERS}]"
)
@click.option("--secure", "is_secure", is_flag=True, help="Require TLS, log-in by password and access control; the first start creates "
    "certificates and a user in the folder DATA_DIR-security.")  # fmt: skip
@click.option("--services", "names", metavar="NAME,...", help="The HTTP services beside the broker.  [default: all, if the "
    "broker has the default listener]")  # fmt: skip
@click.option("--no-services", is_flag=True, help="Run the broker alone.")
@click.option("--registry-listener", metavar="http://HOST:PORT", help="Where the schema registry accepts connections; port 0 takes "
    "a free port.  [default: http://127.0.0.1:8081]")  # fmt: skip
@beside_options
@click.option("--services-config", type=READABLE, help="A file of settings for the services, as `registry start --command-config` "
    "takes it.")  # fmt: skip
@broker_options
def start(
    data_dir: str, listeners: str | None, is_secure: bool, names: str | None, no_services: bool, registry_listener: str | None,
    sql_listener: str | None, postgres_listener: str | None, engine_listener: str | None, connect_listener: str | None,
    services_config: str | None, **options: Any,
) -> int:  # fmt: skip
    """Run a broker with friendly defaults.

    Data is in the folder barnabas-data of the current folder; clients connect to 127.0.0.1:9092. Ctrl-C stops the broker; the
    next start in the same folder has all data again. A child process runs the schema registry at http://127.0.0.1:8081, and SQL at
    http://127.0.0.1:8088 and for Postgres clients at 127.0.0.1:5433. If PySpark is installed, it also runs the engine at
    http://127.0.0.1:8086, where Spark starts with the first job, and Connect at http://127.0.0.1:8083. The first member of a
    consumer group does not wait for others (group.initial.rebalance.delay.ms=0).
    """
    properties = collect_properties(
        data_dir=data_dir if is_given("data_dir") else None, listeners=listeners, **server_options(options)
    )
    if not {"log.dirs", "log.dir"} & properties.keys():
        properties["log.dirs"] = data_dir
    if not properties.get("zookeeper.connect"):
        properties = {**NO_DELAY, **properties}
    admin_file: Path | None = None
    if is_secure:
        from barnabas.cli.secure import greet, secure

        has_default_listener = "listeners" not in properties
        admin_file = secure(properties)
        greet(admin_file)
    else:
        has_default_listener = properties.setdefault("listeners", LISTENERS) == LISTENERS and listeners is None
    listeners_of = {"registry": registry_listener, "sql": sql_listener, "engine": engine_listener, "connect": connect_listener}
    asked = ServicesAsked(names, no_services, listeners_of, services_config, postgres_listener)
    supervisor = beside(asked, properties, admin_file, options["log_level"], by_default=has_default_listener)
    if sys.stderr.isatty() and not is_secure:
        _greet(properties.get("log.dirs") or properties["log.dir"])
    if supervisor is None:
        return run_server(properties, options["metrics_listener"], options["log_level"])
    try:
        # the services end before the broker, because their ends need it: groups are left, states are written
        return run_server(properties, options["metrics_listener"], options["log_level"], supervisor.start, supervisor.stop)
    finally:
        supervisor.stop()


def _greet(data_dir: str) -> None:
    click.echo(f"barnabas keeps its data in {data_dir}; Ctrl-C stops it. In another terminal:", err=True)
    click.echo("  echo hello | barnabas produce greetings", err=True)
    click.echo("  barnabas consume greetings --from earliest", err=True)
