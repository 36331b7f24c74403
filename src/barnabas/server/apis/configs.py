"""Settings of topics, brokers, loggers, groups and client metrics: described, changed, listed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from barnabas.cluster.planning.configs import THREADS, AlterOperation, Change, ResourceChange, check_threads, settings_after
from barnabas.cluster.planning.topics import check_name
from barnabas.config.describe import (
    ConfigEntry,
    Source,
    TopicEntries,
    all_brokers_entries,
    broker_entries,
    client_metrics_entries,
    group_entries,
    link_entries,
)
from barnabas.config.settings import check_broker
from barnabas.digits import is_number
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.base_message import Message
from barnabas.protocol.messages import alter_configs as legacy
from barnabas.protocol.messages import incremental_alter_configs as incremental
from barnabas.protocol.messages.api_keys import ApiKey
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from barnabas.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from barnabas.protocol.values import ALL_BROKERS, USER_CREDENTIALS, ResourceType
from barnabas.security.acls import Operation
from barnabas.server.apis.loggers import alter_loggers, check_logger_resource, logger_entries
from barnabas.server.apis.user_credentials import credential_entries
from barnabas.server.handlers import Handler, Parts, takes
from barnabas.server.tls.changes import TlsBroker, refuse_security

if TYPE_CHECKING:
    from barnabas.server.authorization.access_control import AccessControl
    from barnabas.server.mirroring.mirrors import Mirrors
    from barnabas.server.requests import RequestContext

MALFORMED = (
    "This most likely occurs because of a request being malformed by the client library or the message was sent to an "
    "incompatible broker. See the broker logs for more details."
)
FIRST_LIST_VERSION_WITH_TYPES = 1
RESOURCES_PER_TURN = 100  # resources of one request; each takes 10 us
Outcome = tuple[ErrorCode, str | None]
Q = TypeVar("Q", incremental.IncrementalAlterConfigsRequest, legacy.AlterConfigsRequest)


class ConfigBroker(TlsBroker, Protocol):
    """The parts of the broker that this module uses."""

    authorizer: AccessControl | None
    mirrors: Mirrors


def handle_describe_configs(
    broker: ConfigBroker, context: RequestContext, request: DescribeConfigsRequest
) -> DescribeConfigsResponse | Awaitable[DescribeConfigsResponse]:
    """DescribeConfigs (api 32)."""
    describing = _Describing(broker, context, request)
    if len(request.resources) > RESOURCES_PER_TURN:
        return _describe_in_turns(describing, request)
    return DescribeConfigsResponse(results=[describing.result(resource) for resource in request.resources])


async def _describe_in_turns(describing: _Describing, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    results = []
    for count, resource in enumerate(request.resources):
        results.append(describing.result(resource))
        if count % RESOURCES_PER_TURN == RESOURCES_PER_TURN - 1:
            await asyncio.sleep(0)
    return DescribeConfigsResponse(results=results)


class _Describing:
    """The values that are made once for all resources of a request."""

    def __init__(self, broker: ConfigBroker, context: RequestContext, request: DescribeConfigsRequest) -> None:
        self._broker = broker
        self._context = context
        self._request = request
        self._of_topics = TopicEntries(broker.controller.layers)
        # By the id of the entry, which many topics may share.
        self._shown: dict[int, tuple[ConfigEntry, DescribeConfigsResourceResult]] = {}

    def result(self, resource: DescribeConfigsResource) -> DescribeConfigsResult:
        kind, name = resource.resource_type, resource.resource_name
        result = DescribeConfigsResult(resource_type=kind, resource_name=name, error_message="")
        try:
            if kind == ResourceType.TOPIC:
                entries = self._topic(name, resource.configuration_keys)
                result.configs = [self._result_of(entry) for entry in entries]
            elif kind == USER_CREDENTIALS:
                result.configs = [_shown(entry, self._request) for entry in credential_entries(self._broker, self._context)]
            else:
                entries = _describe(self._broker, kind, name, resource.configuration_keys)
                result.configs = [_shown(entry, self._request) for entry in entries]
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message or ""
        return result

    def _topic(self, name: str, keys: Sequence[str] | None) -> list[ConfigEntry]:
        check_name(name)
        metadata = self._broker.metadata
        if metadata.topic(name) is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return self._of_topics.of(metadata.topic_config(name), keys)

    def _result_of(self, entry: ConfigEntry) -> DescribeConfigsResourceResult:
        shown = self._shown.get(id(entry))
        if shown is None:
            shown = self._shown[id(entry)] = entry, _shown(entry, self._request)
        return shown[1]


def _describe(broker: ConfigBroker, kind: int, name: str, keys: Sequence[str] | None) -> list[ConfigEntry]:
    metadata, controller = broker.metadata, broker.controller
    if kind == ResourceType.BROKER:
        if name == ALL_BROKERS:
            return all_brokers_entries(metadata.config(ResourceType.BROKER, name), keys)
        _check_broker_id(name, broker.config.node_id, "or empty string, but ")
        return broker_entries(controller.layers, keys)
    if kind == ResourceType.BROKER_LOGGER:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
        _check_broker_id(name, broker.config.node_id)
        return logger_entries(keys)
    if kind == ResourceType.GROUP:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        return group_entries(metadata.config(ResourceType.GROUP, name), controller.layers, keys)
    if kind == ResourceType.CLIENT_METRICS:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
        return client_metrics_entries(metadata.config(ResourceType.CLIENT_METRICS, name), keys)
    if kind == ResourceType.LINK:
        settings = metadata.config(ResourceType.LINK, name)
        if not settings:
            raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, f"There is no mirror link {name!r}.")
        return link_entries(settings, broker.mirrors.status(name), keys)
    raise KafkaError(ErrorCode.INVALID_REQUEST, MALFORMED)


def _check_broker_id(name: str, node_id: int, otherwise: str = "but ") -> None:
    digits = name.removeprefix("-")
    if not is_number(digits):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if int(name) != node_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {node_id} {otherwise}received {name}")


def _shown(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = entry.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.is_read_only,
        config_source=entry.source,
        is_default=entry.source is Source.DEFAULT,
        is_sensitive=entry.is_sensitive,
        synonyms=[DescribeConfigsSynonym(name=s.name, value=s.value, source=s.source) for s in synonyms],
        config_type=entry.config_type,
        documentation=entry.documentation if request.include_documentation or entry.source is Source.BROKER_LOGGER else None,
    )


async def handle_alter_configs(
    broker: ConfigBroker, context: RequestContext, request: legacy.AlterConfigsRequest
) -> legacy.AlterConfigsResponse:
    """AlterConfigs (api 33): the given settings replace all settings of a resource."""
    changes = _replacements(request)
    outcomes = await _alter(broker, changes, {}, validate_only=request.validate_only)
    return legacy.AlterConfigsResponse(
        responses=[
            legacy.AlterConfigsResourceResponse(
                error_code=code, error_message=message, resource_type=change.kind, resource_name=change.name
            )
            for change, (code, message) in zip(changes, outcomes, strict=True)
        ]
    )


def _replacements(request: legacy.AlterConfigsRequest) -> list[ResourceChange]:
    return [
        ResourceChange(r.resource_type, r.resource_name, [(c.name, AlterOperation.SET, c.value) for c in r.configs], True)
        for r in request.resources
    ]


def _changes(request: incremental.IncrementalAlterConfigsRequest) -> list[ResourceChange]:
    return [
        ResourceChange(r.resource_type, r.resource_name, [(c.name, c.config_operation, c.value) for c in r.configs])
        for r in request.resources
    ]


def split(broker: ConfigBroker, request: Q, *, may_look: bool) -> tuple[Q | None, Q | None]:
    """Split a change of settings into the part that this broker answers itself and the part for the controller.

    Levels of loggers belong to the process. Some refusals need this broker's own files and settings: see `_refuse`.

    Args:
        may_look: the client may change settings; for other clients no file is read.
    """
    changes = _replacements(request) if isinstance(request, legacy.AlterConfigsRequest) else _changes(request)
    mine = {
        (change.kind, change.name)
        for change in changes
        if (change.kind == ResourceType.BROKER_LOGGER and not change.replaces)
        or (may_look and _refuse(broker, change) is not None)
    }
    here = [each for each in request.resources if (each.resource_type, each.resource_name) in mine]
    rest = [each for each in request.resources if (each.resource_type, each.resource_name) not in mine]
    if not rest:
        return request, None
    if not here:
        return None, request
    make = type(request)
    return make(resources=here, validate_only=request.validate_only), make(resources=rest, validate_only=request.validate_only)


def _refuse(broker: ConfigBroker, change: ResourceChange) -> KafkaError | None:
    """The error if this broker cannot take a change of its own settings. Only this broker can read its files and knows its thread counts
    at start.
    """
    error = refuse_security(broker, change)
    is_own = change.kind == ResourceType.BROKER and change.name == str(broker.config.node_id)
    if (
        error is not None
        or not is_own
        or broker.controller.is_controller
        or THREADS.isdisjoint(name for name, *_ in change.changes)
    ):
        return error
    try:
        after = settings_after(change, broker.metadata.config(ResourceType.BROKER, change.name))
        check_broker(after, of_all_brokers=False)
        check_threads(broker.controller.config, after)
    except KafkaError as refused:
        return refused
    return None


def join(request: Any, *answers: Any) -> Message:
    """Join the answers to the parts of a request into one answer, in the order of the request."""
    places = {(each.resource_type, each.resource_name): place for place, each in enumerate(request.resources)}
    responses = [each for answer in answers for each in answer.responses]
    responses.sort(key=lambda each: places[each.resource_type, each.resource_name])
    whole: Message = type(answers[0])(responses=responses)
    return whole


async def handle_incremental_alter_configs(
    broker: ConfigBroker, context: RequestContext, request: incremental.IncrementalAlterConfigsRequest
) -> incremental.IncrementalAlterConfigsResponse:
    """IncrementalAlterConfigs (api 44)."""
    changes = _changes(request)
    loggers = [change for change in changes if change.kind == ResourceType.BROKER_LOGGER]
    told = {
        place: _alter_loggers(broker, change, loggers, validate_only=request.validate_only)
        for place, change in enumerate(changes)
        if change.kind == ResourceType.BROKER_LOGGER
    }
    outcomes = await _alter(broker, changes, told, validate_only=request.validate_only)
    return incremental.IncrementalAlterConfigsResponse(
        responses=[
            incremental.AlterConfigsResourceResponse(
                error_code=code, error_message=message, resource_type=change.kind, resource_name=change.name
            )
            for change, (code, message) in zip(changes, outcomes, strict=True)
        ]
    )


async def _alter(
    broker: ConfigBroker, changes: Sequence[ResourceChange], told: Mapping[int, Outcome], *, validate_only: bool
) -> list[Outcome]:
    """Have the controller make the changes, except those whose outcome is in `told` (by place) and those that this broker refuses."""
    refused = {place: _refuse(broker, change) for place, change in enumerate(changes) if place not in told}
    here = {**told, **{place: (error.code, error.message) for place, error in refused.items() if error is not None}}
    others = [change for place, change in enumerate(changes) if place not in here]
    answers: Sequence[KafkaError | None]
    try:
        answers = await broker.controller.alter_configs(others, validate_only=validate_only)
    except KafkaError as error:
        answers = [error] * len(others)
    if any(change.kind == ResourceType.LINK for change in others):
        broker.mirrors.look_soon()
    left = iter(answers)
    return [here[place] if place in here else _outcome(next(left)) for place in range(len(changes))]


def _outcome(error: KafkaError | None) -> Outcome:
    return (ErrorCode.NONE, None) if error is None else (error.code, error.message)


def _alter_loggers(
    broker: ConfigBroker, change: ResourceChange, loggers: Sequence[ResourceChange], *, validate_only: bool
) -> Outcome:
    changes: Sequence[Change] = change.changes
    try:
        if sum(other.name == change.name for other in loggers) > 1:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        if len({name for name, _, _ in changes}) < len(changes):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
        check_logger_resource(change.name, broker.config.node_id)
        alter_loggers(changes, validate_only=validate_only)
    except KafkaError as error:
        return _outcome(error)
    return _outcome(None)


def handle_list_config_resources(
    broker: ConfigBroker, context: RequestContext, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    """ListConfigResources (api 74): the resources that can have settings (KIP-1142); version 0 lists client metrics only."""
    if context.api_version < FIRST_LIST_VERSION_WITH_TYPES:
        wanted = {int(ResourceType.CLIENT_METRICS)}
    else:
        # Kafka's clients do not know links, so only a client that asks for links gets them
        wanted = set(request.resource_types) or {int(kind) for kind in ResourceType if kind is not ResourceType.LINK}
    if not wanted <= {int(kind) for kind in ResourceType}:
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    metadata = broker.metadata
    brokers = [str(broker_id) for broker_id in metadata.brokers]
    names = {
        ResourceType.TOPIC: list(metadata.topics),
        ResourceType.BROKER: brokers,
        ResourceType.BROKER_LOGGER: brokers,
        ResourceType.GROUP: [name for kind, name in metadata.configs if kind is ResourceType.GROUP],
        ResourceType.CLIENT_METRICS: [name for kind, name in metadata.configs if kind is ResourceType.CLIENT_METRICS],
        ResourceType.LINK: [name for kind, name in metadata.configs if kind is ResourceType.LINK],
    }
    resources = [
        ConfigResource(resource_name=name, resource_type=kind) for kind in ResourceType if kind in wanted for name in names[kind]
    ]
    return ListConfigResourcesResponse(config_resources=resources)


HANDLERS: dict[int, Handler[ConfigBroker]] = {
    ApiKey.DESCRIBE_CONFIGS: takes(DescribeConfigsRequest, handle_describe_configs),
    ApiKey.ALTER_CONFIGS: takes(legacy.AlterConfigsRequest, handle_alter_configs),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: takes(incremental.IncrementalAlterConfigsRequest, handle_incremental_alter_configs),
    ApiKey.LIST_CONFIG_RESOURCES: takes(ListConfigResourcesRequest, handle_list_config_resources),
}


def parts(broker: ConfigBroker, context: RequestContext, request: Message) -> tuple[Message | None, Message | None]:
    """Split a change of settings into the part that this broker answers itself and the part for the controller.

    The guard refuses a client that may not change settings. For such a client the broker opens no file that a change names.
    """
    authorizer = broker.authorizer
    may_look = authorizer is None or authorizer.of_request(context).silent.allows_cluster(Operation.ALTER_CONFIGS)
    if isinstance(request, legacy.AlterConfigsRequest):
        return split(broker, request, may_look=may_look)
    assert isinstance(request, incremental.IncrementalAlterConfigsRequest)
    return split(broker, request, may_look=may_look)


PARTS: dict[int, Parts[ConfigBroker]] = {ApiKey.ALTER_CONFIGS: parts, ApiKey.INCREMENTAL_ALTER_CONFIGS: parts}
