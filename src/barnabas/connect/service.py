"""Connect as a service: a worker of its group, with Kafka Connect's REST interface. Imports no Spark: the engine runs the tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from secrets import token_hex
from urllib.parse import urlsplit

from barnabas.connect.definitions import WORKER_DEFAULTS
from barnabas.connect.herder.overrides import POLICY, policy_of
from barnabas.connect.http.exchange import error_response
from barnabas.connect.http.routes import add_routes
from barnabas.connect.http.surface import Surface
from barnabas.connect.leading.leader import Leader, Worker
from barnabas.connect.levels import Levels
from barnabas.connect.references import Resolver
from barnabas.connect.store.connect_topics import CONFIGS, ConnectTopics
from barnabas.connect.worker import Requests
from barnabas.engine.elected_service import ElectedService
from barnabas.engine.membership import RULES, Member, take_part
from barnabas.security.rights import ClusterRights
from barnabas.web.routing import HttpError, Response, Router
from barnabas.web.service import ServiceContext

GROUP, DEFAULT_GROUP = "group.id", "connect-cluster"
OF_CLIENTS = ("producer.", "consumer.")
OF_TASKS = (  # settings of workers that tasks need
    "key.converter", "value.converter", "header.converter", "config.providers", "offset.storage.", "topic.creation.enable", POLICY,
    *OF_CLIENTS,
)  # fmt: skip
# clients of tasks connect as the engine does, and secrets are not for the topic of jobs
OF_CONNECTIONS = tuple(f"{client}{name}" for client in OF_CLIENTS for name in ("bootstrap.servers", "security.", "ssl.", "sasl."))
PROTOCOL_TYPE, PROTOCOL = "connect", "barnabas-v1"  # the type is Kafka Connect's, so that its workers cannot join such a group


class ConnectService(ElectedService):
    """See `web/service.py: Service`.

    Args:
        context: of the host. Settings by Kafka's names: `group.id`, `config.storage.topic`, `status.storage.topic`,
            `offset.storage.topic`, `key.converter`, `value.converter`, `header.converter` with theirs, `config.providers` with theirs.
    """

    ready_lines: Sequence[str] = ()  # it has no other port

    def __init__(self, context: ServiceContext) -> None:
        settings = context.settings
        topics = ConnectTopics(context.client, settings)
        resolver, levels = Resolver(settings), Levels()
        group = settings.get(GROUP, DEFAULT_GROUP)
        policy_of(settings)  # a wrong one is an error of the start
        worker = Worker(urlsplit(context.listener).netloc, of_tasks(settings, group, topics.names))
        leader = Leader(context.client, topics, worker, resolver, levels)
        rights = ClusterRights(context.client, settings) if context.secured else None
        requests = Requests(context.client, topics, worker, resolver, leader)
        surface = Surface(requests, levels, context.listener, topics.names[CONFIGS], rights)
        rules = RULES._replace(protocol_type=PROTOCOL_TYPE, protocol=PROTOCOL)
        election = take_part(
            context.client, Member(context.listener, token_hex(8)), lambda is_active, _: leader.activate(is_active), group, rules
        )
        super().__init__(leader, election, rights, surface, requests, topics)
        self.router = Router()
        add_routes(self.router, surface)

    async def metrics(self) -> bytes:
        """None of its own: the tasks are jobs of the engine, which counts them."""
        return b""

    def error(self, error: HttpError) -> Response:
        return error_response(error)


def of_tasks(settings: Mapping[str, str], group: str, topics: Mapping[str, str]) -> dict[str, str]:
    """The settings of a worker that are in the jobs of its tasks, where others may read them."""
    given = {key: settings[key] for key in settings if key.startswith(OF_TASKS) and not key.startswith(OF_CONNECTIONS)}
    return {**WORKER_DEFAULTS, **given, **topics, GROUP: group}
