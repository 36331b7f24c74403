"""`barnabas connect start` and `standalone`: workers of Connect, with the worker files of Kafka Connect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connect.files import read_file
from barnabas.cli.errors import BadInput
from barnabas.cli.services import LISTENER, given_settings, host_options, places_of
from barnabas.cli.types import READABLE
from barnabas.errors import ConfigError
from barnabas.listening import listening_socket

if TYPE_CHECKING:
    from barnabas.connect.worker_settings import WorkerSettings
    from barnabas.web.service import ServiceEntry

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8083
DEFAULT = f"http://{DEFAULT_HOST}:{DEFAULT_PORT}"
LISTENER_OPTION = click.option(
    "--listener", metavar=LISTENER, help="Where it accepts connections, http:// or https://; port 0 takes a free port.  "
    f"[default: listeners of the worker file, or {DEFAULT}]",
)  # fmt: skip


@click.command()
@click.argument("worker", required=False, type=READABLE)
@LISTENER_OPTION
@click.option("--group-id", metavar="GROUP", help="The group of the workers that share the connectors.  "
              "[default: group.id of the worker file, or connect-cluster]")  # fmt: skip
@host_options
def start(worker: str | None, listener: str | None, group_id: str | None, **options: Any) -> int:
    """Run a worker of Connect until it is told to stop.

    WORKER is a worker file of Kafka Connect, such as connect-distributed.properties. The worker has Kafka Connect's REST interface;
    its tasks run on the engine (`barnabas engine start`). When it accepts connections, it prints a line with its address to standard
    output. SIGTERM, SIGHUP and Ctrl-C stop it. Of several workers of a group each answers every request; another one leads when the
    leader is gone.
    """
    found = _settings(worker, options)
    if group_id is not None:
        found.settings["group.id"] = group_id
    places = places_of(["connect"], {"connect": listener or found.listener}, option="--listener")
    return _run(places, found, options)


@click.command()
@click.argument("worker", type=READABLE)
@click.argument("connectors", nargs=-1, type=READABLE, metavar="[CONNECTOR]...")
@LISTENER_OPTION
@host_options
def standalone(worker: str, connectors: tuple[str, ...], listener: str | None, **options: Any) -> int:
    """Run connectors of files in one process until it is told to stop.

    WORKER is a worker file of Kafka Connect, such as connect-standalone.properties. Each CONNECTOR is a file in properties, JSON or
    YAML. The tasks run in this process, without the engine. The worker has Kafka Connect's REST interface. Connectors that it changes
    or creates end with the process; offsets stay in the cluster.
    """
    from barnabas.connect.http.exchange import STATES
    from barnabas.connect.standalone_worker import Given, StandaloneWorker

    files = [each for path in connectors for each in read_file(path)]
    if unknown := [each for each in files if each.initial_state is not None and each.initial_state not in STATES]:
        raise BadInput(f"the initial_state of {unknown[0].name} is one of {', '.join(STATES)}, not {unknown[0].initial_state}")
    given = [Given(each.name, each.config, STATES[each.initial_state] if each.initial_state else None) for each in files]
    found = _settings(worker, options)
    address = listener or found.listener or _free(DEFAULT_HOST, DEFAULT_PORT)
    places = places_of(["connect"], {"connect": address}, option="--listener")
    entry: ServiceEntry = places[0].entry._replace(
        libraries=("duckdb", "numba", "pyarrow"), load=lambda context: StandaloneWorker(context, given)
    )
    return _run([places[0]._replace(entry=entry)], found, options)


def _free(host: str, port: int) -> str:
    """The address of the REST interface. Its usual port is taken if `barnabas start` runs; then any other one does."""
    try:
        listening_socket(host, port).close()
    except OSError:
        return f"http://{host}:0"
    return f"http://{host}:{port}"


def _settings(worker: str | None, options: Mapping[str, Any]) -> WorkerSettings:
    from barnabas.connect.worker_settings import worker_settings

    files = [each for each in (worker, options["command_config"]) if each]
    try:
        return worker_settings(given_settings(files, options["settings"], options["bootstrap_server"]))
    except ConfigError as error:
        raise BadInput(str(error)) from None


def _run(places: Sequence[Any], found: WorkerSettings, options: Mapping[str, Any]) -> int:
    from barnabas.services.host import run

    for key, reason in sorted(found.idle.items()):
        click.echo(f"barnabas: {key} has no effect: {reason}", err=True)
    return run(places, found.settings, log_level=options["log_level"].lower())
