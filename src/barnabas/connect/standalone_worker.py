"""A worker of its own: Kafka Connect's standalone mode. It runs its tasks in threads of its process, without the engine and without Spark.

Configs and statuses are in its memory, and end with it. Offsets lie where those of all workers lie: those of sources in the topic
`offset.storage.topic`, those of a sink in its group.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.connect.herder.overrides import policy_of
from barnabas.connect.herder.records import Changes, Target, Value
from barnabas.connect.herder.state import Configs, Statuses
from barnabas.connect.http.exchange import error_response
from barnabas.connect.http.routes import add_routes
from barnabas.connect.http.surface import Surface
from barnabas.connect.leading.leader import Leader, Worker
from barnabas.connect.levels import Levels
from barnabas.connect.references import Resolver
from barnabas.connect.runtime.opening import opened
from barnabas.connect.service import GROUP, of_tasks
from barnabas.connect.store.connect_topics import CONFIGS, ConnectTopics
from barnabas.connect.worker import Requests
from barnabas.engine.job_loop import JobLoop
from barnabas.engine.jobs import Job, JobState
from barnabas.engine.service import OF_CLIENTS
from barnabas.engine.stores import JobStores, KeptRecords, progress_of
from barnabas.errors import BarnabasError
from barnabas.security.rights import ClusterRights
from barnabas.web.routing import HttpError, Response, Router
from barnabas.web.service import ServiceContext, ServiceError

DEFAULT_GROUP = "connect-standalone"
logger = logging.getLogger(__name__)


class Given(NamedTuple):
    """A connector that the worker begins with."""

    name: str
    config: Mapping[str, str]
    target: Target | None


class KeptTopics(ConnectTopics):
    """Configs and statuses in memory, offsets in their topic."""

    def __init__(self, config: ClientConfig, settings: Mapping[str, str]) -> None:
        super().__init__(config, settings)
        self._kept_configs, self._kept_statuses = KeptRecords[Value](), KeptRecords[Value]()

    def configs(self) -> Configs:
        return Configs(self._kept_configs.records)

    def statuses(self) -> Statuses:
        return Statuses(self._kept_statuses.records)

    def change_configs(self, client: BlockingClient, decide: Callable[[Configs], Changes]) -> None:
        self._kept_configs.change(client, lambda records: decide(Configs(records)))

    def put_statuses(self, client: BlockingClient, changes: Changes) -> None:
        self._kept_statuses.put(client, changes)


class StandaloneWorker:
    """See the module, and `web/service.py: Service`."""

    ready_lines: Sequence[str] = ()

    def __init__(self, context: ServiceContext, connectors: Sequence[Given]) -> None:
        settings = context.settings
        policy_of(settings)  # a wrong one is an error of the start
        self._connectors = connectors
        self._topics = topics = KeptTopics(context.client, settings)
        resolver, levels = Resolver(settings), Levels()
        stores = JobStores(KeptRecords[Job](), KeptRecords[JobState](), progress_of(context.client))
        worker = Worker(urlsplit(context.listener).netloc, of_tasks(settings, settings.get(GROUP, DEFAULT_GROUP), topics.names))
        self._leader = leader = Leader(context.client, topics, worker, resolver, levels, stores)
        self._requests = Requests(context.client, topics, worker, resolver, leader)
        self._rights = ClusterRights(context.client, settings) if context.secured else None
        self._surface = Surface(self._requests, levels, context.listener, topics.names[CONFIGS], self._rights)
        self._stopping = threading.Event()
        client = {key: settings[key] for key in settings if key.startswith(OF_CLIENTS)}
        loop = JobLoop(context.client, lambda job: opened(job, client, _logger(job)), lambda jobs: jobs, stores=stores)
        self._driver = threading.Thread(target=loop.run, args=(self._stopping,), name="connect-tasks", daemon=True)
        self._is_ready = False
        self.router = Router()
        add_routes(self.router, self._surface)

    async def start(self) -> None:
        """Begin with the connectors that are given. Raises ServiceError for one that has a fault."""
        await asyncio.to_thread(self._create)
        self._leader.start()
        self._leader.activate(True)
        self._driver.start()
        self._is_ready = True

    def _create(self) -> None:
        for name, config, target in self._connectors:
            try:
                self._requests.create(name, config, target)
                self._requests.unused(name)  # the log names them
            except HttpError as error:
                raise ServiceError(f"the connector {name}: {' '.join(error.message.split())}") from None
            except BarnabasError as error:
                raise ServiceError(f"the connector {name}: {error}") from None

    async def close(self) -> None:
        """End the tasks."""
        if not self._is_ready:
            return
        self._is_ready = False
        self._stopping.set()
        await asyncio.to_thread(self._driver.join)
        await asyncio.to_thread(self._leader.close)
        for each in (self._surface, self._requests, self._topics):
            each.close()
        if self._rights is not None:
            await self._rights.close()

    def is_ready(self) -> bool:
        """Whether it was started, and not closed."""
        return self._is_ready

    def error(self, error: HttpError) -> Response:
        """As Kafka Connect has it."""
        return error_response(error)

    async def metrics(self) -> bytes:
        """None of its own."""
        return b""


def _logger(job: Job) -> logging.Logger:
    """Of a task; its lines go to the log of the worker."""
    made = logging.Logger(f"barnabas.connector.{job.name}")  # not by `getLogger`, for which a dot in a name is a parent's
    made.parent = logging.getLogger("barnabas.connector")
    return made
