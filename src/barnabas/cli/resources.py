"""Settings of topics, brokers, groups and every other resource that has settings: requests over the protocol.

librdkafka knows only three resource types and hides value types and documentation, so this module sends the requests itself. A
broker answers for its own settings; any broker answers for all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any

from msgspec import Struct

from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.wire import Wire
from barnabas.digits import is_number
from barnabas.error_codes import ErrorCode, code_name
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from barnabas.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.list_config_resources import ListConfigResourcesRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.values import ALL_BROKERS, ResourceType


class Operation(IntEnum):
    """The operation on one setting (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


SOURCES = {
    0: "unknown",
    1: "topic",
    2: "broker",
    3: "all brokers",
    4: "static broker",
    5: "default",
    6: "broker logger",
    7: "client metrics",
    8: "group",
    64: "link",
}
VALUE_TYPES = ["unknown", "boolean", "string", "int", "short", "long", "double", "list", "class", "password"]
CHANGED_HERE = {1, 2, 3, 6, 7, 8, 64}  # sources other than the default and the broker's settings file
OF_ALL_BROKERS, BUILT_IN = 3, 5
STATIC_BROKER = 4  # the broker's settings file: for a broker this is a change, for a topic only an inherited value


class Change(Struct, frozen=True):
    """One setting and the operation on it; `value` is None for DELETE."""

    name: str
    operation: Operation
    value: str | None


def resource_names(wire: Wire, kind: ResourceType) -> list[str]:
    """The names of all resources of this type that can have settings."""
    if kind is ResourceType.TOPIC:
        topics = wire.request(MetadataRequest(topics=None, allow_auto_topic_creation=False)).topics
        return sorted(topic.name for topic in topics)
    if kind in {ResourceType.BROKER, ResourceType.BROKER_LOGGER}:
        return sorted(str(broker.broker_id) for broker in wire.request(DescribeClusterRequest()).brokers)
    answer = wire.request(ListConfigResourcesRequest(resource_types=[int(kind)]))
    if answer.error_code:
        raise Failure(f"cannot list the settings: {code_name(answer.error_code)}")
    return sorted(resource.resource_name for resource in answer.config_resources)


def describe_settings(wire: Wire, kind: ResourceType, name: str) -> list[dict[str, Any]]:
    """The settings of one resource as plain values, sorted by name.

    Raises:
        Failure: the broker refused.
    """
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)],
        include_synonyms=True,
        include_documentation=True,
    )
    (result,) = _ask(wire, kind, name, request).results
    _check(result, kind, name)
    return sorted((_setting(config, kind) for config in result.configs), key=lambda setting: str(setting["name"]))


def _is_built_in(config: Any) -> bool:
    """Whether a setting of all brokers equals the default, as min.insync.replicas does from the first start on."""
    return config.config_source == OF_ALL_BROKERS and any(
        s.source == BUILT_IN and s.value == config.value for s in config.synonyms
    )


def _setting(config: Any, kind: ResourceType) -> dict[str, Any]:
    changed = CHANGED_HERE | {STATIC_BROKER} if kind is ResourceType.BROKER else CHANGED_HERE
    return {
        "name": config.name,
        "value": config.value,
        "source": SOURCES.get(config.config_source, "unknown"),
        "default": config.config_source not in changed or _is_built_in(config),
        "read_only": config.read_only,
        "sensitive": config.is_sensitive,
        "type": VALUE_TYPES[config.config_type] if 0 <= config.config_type < len(VALUE_TYPES) else "unknown",
        "synonyms": [{"name": s.name, "value": s.value, "source": SOURCES.get(s.source, "unknown")} for s in config.synonyms],
        "documentation": config.documentation,
    }


def alter_settings(wire: Wire, kind: ResourceType, name: str, changes: Iterable[Change], *, validate_only: bool) -> None:
    """Change settings of one resource: all of them or none.

    Raises:
        Failure: the broker refused.
    """
    configs = [AlterableConfig(name=c.name, config_operation=c.operation, value=c.value) for c in changes]
    request = IncrementalAlterConfigsRequest(
        resources=[AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)], validate_only=validate_only
    )
    (result,) = _ask(wire, kind, name, request).responses
    _check(result, kind, name)


def parse_changes(
    *, sets: Sequence[str], deletes: Sequence[str], appends: Sequence[str], subtracts: Sequence[str]
) -> list[Change]:
    """The changes that the options --set, --delete, --append and --subtract give; raises BadInput."""
    changes = [Change(name.strip(), Operation.DELETE, None) for name in deletes]
    for operation, option, pairs in (
        (Operation.SET, "--set", sets),
        (Operation.APPEND, "--append", appends),
        (Operation.SUBTRACT, "--subtract", subtracts),
    ):
        for pair in pairs:
            name, equals, value = pair.partition("=")
            if not equals or not name.strip():
                raise BadInput(f"{option} {pair!r} is not key=value")
            changes.append(Change(name.strip(), operation, value))
    return changes


def title_of(kind: ResourceType, name: str) -> str:
    if kind is ResourceType.BROKER and name == ALL_BROKERS:
        return "all brokers"
    return f"{kind.name.lower().replace('_', ' ')} {name}"


def _ask(wire: Wire, kind: ResourceType, name: str, request: Any) -> Any:
    if kind not in {ResourceType.BROKER, ResourceType.BROKER_LOGGER} or name == ALL_BROKERS:
        return wire.request(request)
    if not is_number(name):
        raise BadInput(f"a broker is named by its number, not {name!r}")
    for broker in wire.request(DescribeClusterRequest()).brokers:
        if broker.broker_id == int(name):
            with wire.to(broker.host, broker.port) as own:
                return own.request(request)
    raise Failure(f"there is no broker {name}")


def _check(result: Any, kind: ResourceType, name: str) -> None:
    if result.error_code != ErrorCode.NONE:
        reason = (result.error_message or "").rstrip(". ")
        code = code_name(result.error_code)
        raise Failure(f"{title_of(kind, name)}: {f'{reason} ({code})' if reason else code}")
