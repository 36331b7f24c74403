"""`barnabas connect start` and `standalone`: workers of Connect, with the worker files of Kafka Connect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.connect.files import read_file
from barnabas.cli.errors import BadInput
from barnabas.cli.services import ENGINE_DATA_DIR, LISTENER, given_settings, host_options, places_of
from barnabas.cli.types import READABLE, FilePath
from barnabas.errors import ConfigError
from barnabas.listening import listening_socket

if TYPE_CHECKING:
    from barnabas.connect.worker_settings import WorkerSettings
    from barnabas.web.service import ServiceEntry

ENGINE_DATA_SETTING = "engine.data.dir"
WARM = {"engine.runner.warm.ms": "60000"}  # a worker starts shortly before its first connector
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
@click.option("--engine-listener", metavar=LISTENER, default="http://127.0.0.1:0", show_default=True,
              help="Where the engine of this worker accepts HTTP; port 0 takes a free port.")  # fmt: skip
@click.option("--data-dir", metavar="DIR", type=FilePath(file_okay=False), help="The folder of the logs of tasks.  "
              f"[default: {ENGINE_DATA_DIR}]")  # fmt: skip
@click.option("--no-engine", is_flag=True, help="Run no tasks here: engines elsewhere in the cluster run them.")
@host_options
def start(
    worker: str | None, listener: str | None, group_id: str | None, engine_listener: str, data_dir: str | None, no_engine: bool,
    **options: Any,
) -> int:  # fmt: skip
    """Run a worker of Connect until it is told to stop.

    WORKER is a worker file of Kafka Connect, such as connect-distributed.properties. The worker has Kafka Connect's REST interface,
    and an engine that runs its share of the tasks. When both accept connections, it prints a line with the address of each to
    standard output. SIGTERM, SIGHUP and Ctrl-C stop it. Of several workers of a group each answers every request, and runs some of
    the tasks; another one leads when the leader is gone.
    """
    found = _settings(worker, options)
    if group_id is not None:
        found.settings["group.id"] = group_id
    if data_dir is not None:
        found.settings[ENGINE_DATA_SETTING] = data_dir
    places = places_of(["connect"], {"connect": listener or found.listener}, option="--listener")
    if not no_engine:
        places += places_of(["engine"], {"engine": engine_listener}, option="--engine-listener")
        found = found._replace(settings={**WARM, **found.settings})
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
