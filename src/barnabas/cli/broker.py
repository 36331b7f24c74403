"""`barnabas broker start`: from options, settings file and `--config` to the properties of the server.

A later source wins: the environment, then the settings file, then --config, then options with a name of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from barnabas.cli.lazy import HELP_OPTIONS, Entry, LazyGroup
from barnabas.cli.properties import parse_pairs, read_properties_file
from barnabas.cli.types import BROKER_ID, READABLE, DataFolder
from barnabas.cli.zookeeper import environment_settings

F = TypeVar("F", bound=Callable[..., Any])

# Kafka's class name selects the built-in authorizer
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
LOG_LEVELS = ["debug", "info", "warning", "error"]


def broker_options(function: F) -> F:
    """The options that `broker start` and `start` share."""
    for option in reversed(
        [
            click.option("--config", "pairs", metavar="KEY=VALUE", multiple=True, help="A setting by Kafka's name; repeatable."),
            click.option("--config-file", type=READABLE, help="A server.properties file."),
            click.option("--broker-id", type=BROKER_ID, help="The id of this broker in its cluster (node.id)."),
            click.option("--metadata", metavar="ADDRESS", help="Join the cluster whose metadata is at zookeeper://HOST:PORT,.../ROOT. "
                "Without this option the broker stands alone."),
            click.option("--authorizer", type=click.Choice(["acl", "none"]), help="acl: access control lists decide what clients may do "
                "(authorizer.class.name); super.users may do everything."),
            click.option("--metrics-listener", metavar="HOST:PORT", help="The address that serves /metrics, /healthz and /readyz."),
            click.option("--log-level", type=click.Choice(LOG_LEVELS, case_sensitive=False), default="info", show_default=True,
                         help="The lowest level of log lines on standard error."),
        ]
    ):  # fmt: skip
        function = option(function)
    return function


@click.group(
    cls=LazyGroup,
    entries={
        "start": Entry("broker", "broker_start", "Run a broker until it is told to stop (SIGTERM, SIGHUP or Ctrl-C)."),
        "adopt": Entry("adopt", "adopt", "Adopt the data folders of a stopped Apache Kafka broker (KRaft)."),
        "drain": Entry("reassign", "drain_broker", "Move every replica off a broker, so that you can remove the broker."),
    },
    context_settings=HELP_OPTIONS,
)
def broker() -> None:
    """Run a broker, adopt the data folders of Kafka, or drain a broker."""


@click.command("start")
@click.option(
    "--data-dir",
    type=DataFolder(),
    envvar="BARNABAS_DATA_DIR",
    show_envvar=True,
    help="The folder of the topics, created if missing. log.dirs in the settings overrides the environment variable.",
)
@click.option(
    "--listeners", metavar="NAME://HOST:PORT,...", help="The addresses that accept connections; port 0 takes a free port."
)
@broker_options
def broker_start(data_dir: str | None, listeners: str | None, **options: Any) -> int:
    """Run a broker until it is told to stop (SIGTERM, SIGHUP or Ctrl-C).

    When it accepts connections, it prints a line with its addresses to standard output.
    """
    said = data_dir if is_given("data_dir") else None
    properties = collect_properties(data_dir=said, listeners=listeners, **server_options(options))
    if not {"log.dirs", "log.dir"} & properties.keys():
        if data_dir is None:
            raise click.UsageError("no data folder: give --data-dir, or log.dirs in the settings")
        properties["log.dirs"] = data_dir
    return run_server(properties, options["metrics_listener"], options["log_level"])


def is_given(name: str) -> bool:
    """Whether the value of an option comes from the command line, not from the environment or the default."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def server_options(options: dict[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in ("pairs", "config_file", "broker_id", "metadata", "authorizer")}


def collect_properties(
    *,
    data_dir: str | None,
    listeners: str | None,
    pairs: tuple[str, ...],
    config_file: str | None,
    broker_id: int | None,
    metadata: str | None = None,
    authorizer: str | None = None,
) -> dict[str, str]:
    """The server's properties that the user set; the server adds its defaults."""
    properties = read_properties_file(config_file) if config_file else {}
    properties.update(parse_pairs(pairs, "--config"))
    named = {"log.dirs": data_dir, "listeners": listeners, "node.id": None if broker_id is None else str(broker_id)}
    properties.update({key: value for key, value in named.items() if value is not None})
    if authorizer is not None:
        properties["authorizer.class.name"] = STANDARD_AUTHORIZER if authorizer == "acl" else ""
    if metadata is not None:
        properties = {**environment_settings(), **properties, "zookeeper.connect": parse_metadata(metadata)}
    return properties


def parse_metadata(address: str) -> str:
    """`zookeeper.connect` for a --metadata address; raises UsageError."""
    from barnabas.cluster.zookeeper.address import SCHEME, parse_address

    try:
        return str(parse_address(address)).removeprefix(SCHEME)
    except ValueError as error:
        raise click.UsageError(f"--metadata: {error}") from error


def run_server(
    properties: dict[str, str], metrics_listener: str | None, log_level: str, on_ready: Callable[[str], None] | None = None,
    on_stopping: Callable[[], None] | None = None,
) -> int:  # fmt: skip
    """Run the server in this process; returns its exit code.

    Args:
        on_ready: called with its address when the server accepts connections.
        on_stopping: called before it stops.
    """
    from barnabas.server.main import run

    return run(
        properties, metrics_listener=metrics_listener, log_level=log_level.lower(), on_ready=on_ready, on_stopping=on_stopping
    )
