"""`barnabas services start`, `registry start`, `sql start` and `engine start`: HTTP services against any Kafka cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from barnabas.addresses import host_and_port
from barnabas.cli.broker import LOG_LEVELS
from barnabas.cli.connection import DEFAULT_BOOTSTRAP, parse_addresses
from barnabas.cli.errors import BadInput
from barnabas.cli.lazy import HELP_OPTIONS, Entry, LazyGroup
from barnabas.cli.properties import parse_pairs, read_properties_file
from barnabas.cli.types import READABLE, FilePath, Text, checked
from barnabas.sql.listening import DEFAULT_POSTGRES, POSTGRES

if TYPE_CHECKING:
    from barnabas.services.host import Place

LISTENER, ADDRESS = "http://HOST:PORT", "HOST:PORT"
ENGINE_DATA_DIR = "barnabas-data-engine"


@click.group(
    cls=LazyGroup,
    entries={"start": Entry("services", "services_start", "Run several HTTP services in one process until it is told to stop.")},
    context_settings=HELP_OPTIONS,
)
def services() -> None:
    """Run several HTTP services in one process."""


@click.group(
    cls=LazyGroup,
    entries={"start": Entry("services", "engine_start", "Run the engine of views and pipelines until it is told to stop.")},
    context_settings=HELP_OPTIONS,
)
def engine() -> None:
    """Run the engine of views and pipelines."""


@click.group(
    cls=LazyGroup,
    entries={"start": Entry("services", "registry_start", "Run a schema registry until it is told to stop.")},
    context_settings=HELP_OPTIONS,
)
def registry() -> None:
    """Run a schema registry."""


def host_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--log-level", type=click.Choice(LOG_LEVELS, case_sensitive=False), default="warning", show_default=True,
                     help="The lowest level of log lines on standard error; info has a line for each request."),
        click.option("-X", "settings", metavar="KEY=VALUE", multiple=True, help="A setting of the file, here; repeatable."),
        click.option("--command-config", type=READABLE,
                     help="A file of settings (key=value lines): of the client to the cluster, of TLS and log-in of callers."),
        click.option("-b", "--bootstrap-server", type=Text(checked(parse_addresses)), envvar="BARNABAS_BOOTSTRAP_SERVERS",
                     show_envvar=True, metavar="HOST:PORT,...", help=f"Brokers to ask first.  [default: {DEFAULT_BOOTSTRAP}]"),
    ):  # fmt: skip
        function = option(function)
    return function


def parse_listening(text: str) -> tuple[str, int]:
    """HOST:PORT. Raises BadInput."""
    try:
        return host_and_port(text)
    except ValueError as error:
        raise BadInput(str(error)) from None


def beside_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Where SQL, the engine and Connect run beside other services."""
    for option in (
        click.option("--connect-listener", metavar=LISTENER, help="Where Connect accepts HTTP; its tasks run on the engine.  "
                     "[default: http://127.0.0.1:8083]"),
        click.option("--engine-listener", metavar=LISTENER, help="Where the engine accepts HTTP.  [default: http://127.0.0.1:8086]"),
        click.option("--postgres-listener", metavar=ADDRESS, type=Text(checked(parse_listening)), help="Where SQL accepts Postgres "
                     f"clients.  [default: {DEFAULT_POSTGRES}]"),
        click.option("--sql-listener", metavar=LISTENER, help="Where SQL accepts HTTP.  [default: http://127.0.0.1:8088]"),
    ):  # fmt: skip
        function = option(function)
    return function


@click.command("start")
@click.option("--listener", metavar=LISTENER, default="http://127.0.0.1:8081", show_default=True,
              help="Where it accepts connections, http:// or https://; port 0 takes a free port.")  # fmt: skip
@host_options
def registry_start(listener: str, **options: Any) -> int:
    """Run a schema registry until it is told to stop.

    When it accepts connections, it prints a line with its address to standard output. SIGTERM, SIGHUP and Ctrl-C stop it.
    """
    return _run(["registry"], {"registry": listener}, {}, option="--listener", **options)


@click.command("start")
@click.option("--listener", metavar=LISTENER, default="http://127.0.0.1:8088", show_default=True,
              help="Where it accepts HTTP, http:// or https://; port 0 takes a free port.")  # fmt: skip
@click.option("--postgres", "--postgres-listener", "postgres_listener", metavar=ADDRESS, type=Text(checked(parse_listening)),
              default=DEFAULT_POSTGRES, show_default=True, help="Where it accepts Postgres clients; port 0 takes a free port.")  # fmt: skip
@click.option("--data-dir", metavar="DIR", help="Where queries put rows that their memory does not hold, and where the index of "
              "keys and the rows of tables in memory stay for the next start.  [default: a temporary folder; nothing stays]")  # fmt: skip
@host_options
def sql_start(listener: str, postgres_listener: str, data_dir: str | None, **options: Any) -> int:
    """Run SQL over topics until it is told to stop.

    When it accepts connections, it prints a line for HTTP and one for Postgres to standard output. SIGTERM, SIGHUP and Ctrl-C stop it.
    """
    extra = {"sql.preload": "true", POSTGRES: postgres_listener}
    if data_dir is not None:
        extra["sql.data.dir"] = data_dir
    return _run(["sql"], {"sql": listener}, extra, option="--listener", **options)


@click.command("start")
@click.option("--listener", metavar=LISTENER, default="http://127.0.0.1:8086", show_default=True,
              help="Where it accepts connections, http:// or https://; port 0 takes a free port.")  # fmt: skip
@click.option("--data-dir", metavar="DIR", default=ENGINE_DATA_DIR, show_default=True, type=FilePath(file_okay=False),
              help="The folder of the state and the logs of jobs; made with the first job.")  # fmt: skip
@click.option("--master", metavar="URL", help="Spark's master: local[N], spark://host:port, yarn, k8s://...  [default: local[*]]")
@click.option("--conf", "conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark; repeatable.")
@click.option("--pipelines", metavar="DIR", type=FilePath(file_okay=False), help="The folder of the pipelines that jobs may run.  "
              "[default: none may run]")  # fmt: skip
@host_options
def engine_start(
    listener: str, data_dir: str, master: str | None, conf: tuple[str, ...], pipelines: str | None, **options: Any
) -> int:
    """Run the engine of views and pipelines until it is told to stop.

    It runs the jobs of a cluster on Spark, which starts with the first job. When it accepts connections, it prints a line with its
    address to standard output. SIGTERM, SIGHUP and Ctrl-C stop it. Of several engines of a cluster one works; another takes over when
    it is gone.
    """
    extra = {"engine.data.dir": data_dir, **parse_pairs(conf, "--conf")}
    if wrong := [key for key in extra if not key.startswith(("spark.", "engine."))]:
        raise BadInput(f"--conf {wrong[0]!r} is no setting of Spark; their names begin with spark.")
    extra |= {"engine.spark.master": master} if master is not None else {}
    extra |= {"engine.pipelines.dir": pipelines} if pipelines is not None else {}
    return _run(["engine"], {"engine": listener}, extra, option="--listener", **options)


@click.command("start")
@click.option("--services", "names", metavar="NAME,...", help="Which services.  [default: all]")
@click.option("--registry-listener", metavar=LISTENER, help="Where the schema registry accepts connections.  "
              "[default: http://127.0.0.1:8081]")  # fmt: skip
@beside_options
@host_options
def services_start(
    names: str | None, registry_listener: str | None, sql_listener: str | None, postgres_listener: str | None,
    engine_listener: str | None, connect_listener: str | None, **options: Any,
) -> int:  # fmt: skip
    """Run several HTTP services in one process until it is told to stop.

    When all accept connections, it prints a line for each to standard output. SIGTERM, SIGHUP and Ctrl-C stop it.
    """
    chosen = names_of(names)
    listeners = {"registry": registry_listener, "sql": sql_listener, "engine": engine_listener, "connect": connect_listener}
    return _run(chosen, listeners, {POSTGRES: postgres_listener or DEFAULT_POSTGRES} if "sql" in chosen else {}, **options)


def names_of(text: str | None) -> list[str]:
    """The names in `registry,…`; all services if the text is None."""
    from barnabas.services.table import SERVICES

    return list(SERVICES) if text is None else [name.strip() for name in text.split(",") if name.strip()]


def places_of(
    names: Sequence[str], listeners: Mapping[str, str | None], scheme: str = "http", *, option: str | None = None
) -> list[Place]:
    """The addresses of these services; raises BadInput for an unknown service and for an invalid address.

    Args:
        option: of the command, if it is not the one for a service beside others.
    """
    from barnabas.services.host import Place
    from barnabas.services.listener import option_of, parse_listener
    from barnabas.services.table import entries
    from barnabas.web.service import ServiceError

    try:
        found = [
            Place(
                each,
                parse_listener(listeners.get(each.name) or f"{scheme}://127.0.0.1:{each.port}", each.port),
                option or option_of(each),
            )
            for each in entries(names)
        ]
    except ServiceError as error:
        raise BadInput(str(error)) from None
    if not found:
        raise BadInput("--services names no service")
    return found


def _run(
    names: Sequence[str], listeners: Mapping[str, str | None], extra: Mapping[str, str], *, bootstrap_server: str | None,
    command_config: str | None, settings: tuple[str, ...], log_level: str, option: str | None = None,
) -> int:  # fmt: skip
    places = places_of(names, listeners, option=option)
    properties = {**extra, **given_settings([command_config] if command_config else [], settings, bootstrap_server)}
    from barnabas.services.host import run

    return run(places, properties, log_level=log_level.lower())


def given_settings(files: Sequence[str], pairs: tuple[str, ...], bootstrap_server: str | None) -> dict[str, str]:
    """The settings of files, then of `-X`, then the address of the brokers. Raises BadInput."""
    found: dict[str, str] = {}
    for each in files:
        found |= read_properties_file(each)
    found |= parse_pairs(pairs, "-X")
    if bootstrap_server is not None:
        found["bootstrap.servers"] = bootstrap_server
    found.setdefault("bootstrap.servers", DEFAULT_BOOTSTRAP)
    return found
