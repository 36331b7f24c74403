"""The engine as a service: the supervisor, its election, and its HTTP interface. Imports no Spark."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from secrets import token_hex
from urllib.parse import urlsplit

from barnabas.digits import is_number
from barnabas.engine import pipeline_unit, spark_unit
from barnabas.engine.elected_service import ElectedService
from barnabas.engine.http import Surface, error_response
from barnabas.engine.membership import Member, take_part
from barnabas.engine.supervisor import EngineSettings, Supervisor
from barnabas.errors import ConfigError
from barnabas.security.rights import ClusterRights
from barnabas.streams import drop_standard_output
from barnabas.web.routing import HttpError, Response, Router
from barnabas.web.service import ServiceContext

logger = logging.getLogger(__name__)
DATA_DIR, DEFAULT_DATA_DIR = "engine.data.dir", "barnabas-data-engine"
MASTER, LINGER, WARM = "engine.spark.master", "engine.linger.ms", "engine.runner.warm.ms"
LINGER_MS = 10_000
CONNECT = "connect"  # the service whose address names this engine in statuses of tasks, as in Kafka Connect
SPARK = "spark."  # settings of Spark begin with it
OF_CLIENTS = (
    "bootstrap.servers",
    "security.protocol",
    "ssl.",
    "sasl.",
    "client.id",
    "request.timeout.ms",
    "default.api.timeout.ms",
    "schema.registry.",
)


class EngineService(ElectedService):
    """See `web/service.py: Service`.

    Args:
        context: of the host. Settings: `engine.data.dir`, `engine.spark.master`, `engine.linger.ms`, `engine.runner.warm.ms`,
            `engine.pipelines.dir`, and those of Spark, which begin with `spark.`.
        driver, pipeline: commands of the processes, for tests.
    """

    ready_lines: Sequence[str] = ()  # it has no other port

    def __init__(
        self, context: ServiceContext, *, driver: tuple[str, ...] = spark_unit.COMMAND,
        pipeline: tuple[str, ...] = pipeline_unit.COMMAND,
    ) -> None:  # fmt: skip
        settings = context.settings
        pipelines = settings.get(pipeline_unit.FOLDER_SETTING)
        self._settings = EngineSettings(
            client={key: settings[key] for key in settings if key.startswith(OF_CLIENTS)},
            folder=Path(settings.get(DATA_DIR, DEFAULT_DATA_DIR)).absolute(),
            master=settings.get(MASTER, "local[*]"),
            conf={key: settings[key] for key in settings if key.startswith(SPARK)},
            pipelines=None if pipelines is None else Path(pipelines).absolute(),
            linger_s=_seconds(settings, LINGER, LINGER_MS),
            warm_s=_seconds(settings, WARM, 0),
            driver=driver,
            pipeline=pipeline,
        )
        rights = ClusterRights(context.client, settings) if context.secured else None
        member = Member(
            context.listener, token_hex(8), worker_id=urlsplit(context.neighbours.get(CONNECT, context.listener)).netloc
        )
        self._supervisor = Supervisor(context.client, self._settings, _say, member)
        self._surface = Surface(context.client, self._supervisor, self._settings, rights)
        election = take_part(context.client, member, self._supervisor.activate)
        super().__init__(self._supervisor, election, rights, self._surface)
        self.router: Router = self._surface.router

    async def metrics(self) -> bytes:
        """The jobs, for `/metrics`."""
        return await self._surface.metrics()

    def error(self, error: HttpError) -> Response:
        return error_response(error)


def _seconds(settings: Mapping[str, str], key: str, default_ms: int) -> float:
    text = settings.get(key, str(default_ms))
    if not is_number(text, 2**31 - 1):
        raise ConfigError(key, text, "a number of milliseconds")
    return int(text) / 1000


def _say(line: str) -> None:
    """Print a line on standard output; the engine goes on if nobody reads it."""
    try:
        print(f"barnabas: {line}", flush=True)
    except OSError:
        drop_standard_output()
    logger.info("event=engine-says line=%r", line)
