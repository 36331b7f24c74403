"""Changes settings of resources: AlterConfigs and IncrementalAlterConfigs (KIP-339).

Owns the merging of operations into settings, and the rules of settings for each resource. Pure: takes the image, fills a
`PlanBuilder`. Broker loggers are not here: their levels are state of the process, not of the cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import IntEnum

from msgspec import Struct

from barnabas.cluster.metadata.declared import Kind
from barnabas.cluster.metadata.image import MetadataImage, Resource
from barnabas.cluster.planning.instructions import UpdateBrokerConfig, UpdateTopicConfig
from barnabas.cluster.planning.plan import PlanBuilder
from barnabas.cluster.planning.topics import check_name, is_legal_name
from barnabas.config import definitions
from barnabas.config.broker import BrokerConfig, known_key
from barnabas.config.config_key import ConfigKey, ConfigType
from barnabas.config.cordoning import CORDONED_LOG_DIRS, check_cordoned, words_of
from barnabas.config.mirror_settings import MIRROR_KEYS, MIRROR_LINK, check_mirror
from barnabas.config.settings import (
    check_broker,
    check_client_metrics,
    check_group,
    check_link,
    check_schema_validation,
    check_topic,
    topic_config,
)
from barnabas.digits import is_number
from barnabas.errors import ConfigError, ErrorCode, KafkaError
from barnabas.protocol.values import ALL_BROKERS, ResourceType

LINK_PREFIX = "cluster.link.prefix"
MIN_IN_SYNC = "min.insync.replicas"
THREADS = frozenset(
    {"num.io.threads", "num.network.threads", "num.replica.fetchers", "num.recovery.threads.per.data.dir", "background.threads"}
)


class AlterOperation(IntEnum):
    """Numbers as in IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


Change = tuple[str, int, str | None]  # key, operation, value


class ResourceChange(Struct, frozen=True):
    """A change of one resource: operations, or with `replaces` the complete settings.

    Args:
        by_link: the controller's part of a mirror link makes the change.
    """

    kind: int
    name: str
    changes: Sequence[Change]
    replaces: bool = False
    by_link: bool = False


class ConfigPlanner:
    """Plans changes of settings on one image.

    Args:
        static: the broker's configuration without dynamic settings.
        config: the broker's configuration with dynamic settings.
        alone: there are no other brokers.
    """

    def __init__(
        self, image: MetadataImage, static: BrokerConfig, config: BrokerConfig, plan: PlanBuilder, *, alone: bool = True
    ) -> None:
        self._alone = alone
        self.image = image
        self.static = static
        self.config = config
        self.plan = plan

    def alter(self, requests: Sequence[ResourceChange]) -> list[KafkaError | None]:
        """Plan the changes; returns an outcome for each request, in their order, None for success."""
        times = Counter((request.kind, request.name) for request in requests)
        outcomes: list[KafkaError | None] = []
        for request in requests:
            try:
                if times[request.kind, request.name] > 1:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
                self._alter_one(request)
                outcomes.append(None)
            except KafkaError as error:
                outcomes.append(error)
        self._instruct()
        return outcomes

    def _alter_one(self, request: ResourceChange) -> None:
        resource = self._resource(request.kind, request.name)
        if max(Counter(key for key, _, _ in request.changes).values(), default=0) > 1:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
        before = self.image.config(*resource)
        after = settings_after(request, before)
        if request.replaces and resource[0] is ResourceType.TOPIC:  # clients that replace all settings do not know these
            after = {**{key: before[key] for key in MIRROR_KEYS if key in before}, **after}
        self._check(resource, after)
        self._check_minimum(resource, before, after)
        if resource[0] is ResourceType.TOPIC:
            self._check_mirror(request, before, after)
            check_schema_validation(before, after, self.config)
        if resource[0] is ResourceType.LINK and before and after and before.get(LINK_PREFIX) != after.get(LINK_PREFIX):
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{LINK_PREFIX} of a mirror link cannot be changed; create another link")
        if resource[0] is ResourceType.LINK and not after:
            self._check_unused(resource[1])
            for key in self.image.declarations(Kind.MIRRORED):
                if key.startswith(f"{resource[1]}/"):  # copied ACLs, quotas and users belong to this cluster now
                    self.plan.declare(Kind.MIRRORED, key, None)
        if after != dict(before):
            self.plan.set_config(resource, after)

    def _resource(self, kind: int, name: str) -> Resource:
        if kind == ResourceType.TOPIC:
            if not name:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
            check_name(name)
            if name not in self.image.topics:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
        elif kind == ResourceType.BROKER:
            self._check_broker_name(name)
        elif kind == ResourceType.GROUP and not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
        elif kind == ResourceType.CLIENT_METRICS and not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
        elif kind == ResourceType.LINK:
            if not is_legal_name(name):
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"A mirror link is named like a topic, not {name!r}")
        elif kind not in {ResourceType.GROUP, ResourceType.CLIENT_METRICS}:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")
        return ResourceType(kind), name

    def _check_broker_name(self, name: str) -> None:
        if name == ALL_BROKERS:
            return
        digits = name.removeprefix("-")
        if not is_number(digits):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
        expected = self.static.node_id
        if self._alone and int(name) != expected:
            reason = f"Unexpected broker id, expected {expected}, but received {name}"
            raise KafkaError(ErrorCode.INVALID_REQUEST, reason)

    def _check(self, resource: Resource, settings: Mapping[str, str]) -> None:
        kind, name = resource
        if kind is ResourceType.TOPIC:
            check_topic(settings, self.config.topic_defaults)
        elif kind is ResourceType.BROKER:
            check_broker(settings, of_all_brokers=name == ALL_BROKERS)
            self._check_threads(name, settings)
            if CORDONED_LOG_DIRS in settings:
                self._check_cordoned(int(name), settings[CORDONED_LOG_DIRS])
        elif kind is ResourceType.GROUP:
            check_group(settings, self.config)
        elif kind is ResourceType.LINK:
            check_link(settings)
        else:
            check_client_metrics(settings)

    def _check_mirror(self, request: ResourceChange, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        check_mirror(before, after, by_link=request.by_link)
        link = after.get(MIRROR_LINK)
        if link is not None and not self.image.config(ResourceType.LINK, link):
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"There is no mirror link {link!r}.")

    def _check_unused(self, link: str) -> None:
        """Check that no topic is a copy of a link that is deleted: such a topic would stay read-only."""
        copies = sorted(name for (kind, name), settings in self.image.configs.items()
                        if kind is ResourceType.TOPIC and settings.get(MIRROR_LINK) == link)  # fmt: skip
        if copies:
            reason = f"Topics are copies of the mirror link {link}: {', '.join(copies)}. Promote or delete them first."
            raise KafkaError(ErrorCode.POLICY_VIOLATION, reason)

    def _check_threads(self, broker: str, settings: Mapping[str, str]) -> None:
        """Check the sizes of a broker's thread pools. Only the broker itself knows its start configuration, and has checked
        the change against it before. Here only its later settings are known."""
        config = self.config
        if broker not in {ALL_BROKERS, str(self.static.node_id)}:
            layers = {**self.image.config(ResourceType.BROKER, ALL_BROKERS), **self.image.config(ResourceType.BROKER, broker)}
            settings = {name: settings[name] for name in THREADS & settings.keys() & layers.keys()}
            config = self.static.with_dynamic(layers)
        check_threads(config, settings)

    def _check_minimum(self, resource: Resource, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        """Check that all brokers of a cluster have one minimum, which may not be removed. A leader must not acknowledge with
        fewer in-sync replicas than the minimum that the controller knows. Otherwise eligible replicas (KIP-966) may lack
        acknowledged records."""
        kind, name = resource
        if kind is not ResourceType.BROKER or before.get(MIN_IN_SYNC) == after.get(MIN_IN_SYNC):
            return
        if name != ALL_BROKERS and MIN_IN_SYNC in after:
            reason = "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
            raise KafkaError(ErrorCode.INVALID_CONFIG, reason)
        if name == ALL_BROKERS and MIN_IN_SYNC not in after:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG, "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
            )

    def _check_cordoned(self, broker_id: int, text: str) -> None:
        """Check the named log directories; those of a broker that is down are unknown and not checked."""
        found = self.image.brokers.get(broker_id)
        known = self.static.log_dirs if broker_id == self.static.node_id else () if found is None else found.log_dir_paths
        try:
            if known:
                check_cordoned(words_of(text), known)
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error

    def _instruct(self) -> None:
        """Add the instructions for this broker that follow from all changes together."""
        broker_id = str(self.static.node_id)
        resources = [(ResourceType.BROKER, name) for name in (ALL_BROKERS, broker_id)]
        config, changed = self.config, self.plan.configs
        if any(resource in changed for resource in resources):
            of_all, of_one = (self._settings(resource) for resource in resources)
            config = self.static.with_dynamic({**of_all, **of_one})
            self.plan.instructions.append(UpdateBrokerConfig(config))
        has_other_defaults = config.topic_defaults != self.config.topic_defaults
        topics = self.image.topics if has_other_defaults else [name for kind, name in changed if kind is ResourceType.TOPIC]
        self.plan.instructions += [
            UpdateTopicConfig(topic, topic_config(self._settings((ResourceType.TOPIC, topic)), config.topic_defaults))
            for topic in topics
        ]

    def _settings(self, resource: Resource) -> Mapping[str, str]:
        return self.plan.configs.get(resource, self.image.config(*resource))


def check_threads(config: BrokerConfig, settings: Mapping[str, str]) -> None:
    """As in Kafka, a running pool may only shrink to half or grow to double its size; raises KafkaError.

    Args:
        config: the broker's current configuration.
        settings: after the change.
    """
    for name in sorted(THREADS & settings.keys()):
        key = definitions.BROKER[name]
        before, after = getattr(config, key.attribute), key.read(settings[name])
        reason = None
        if after > 2 * before:
            reason = f"value should not be greater than double the current value {before}"
        elif after < before // 2:
            reason = f"value should be at least half the current value {before}"
        if reason is not None:
            text = f"Dynamic thread count update validation failed for {name}={after}, {reason}"
            raise KafkaError(ErrorCode.INVALID_REQUEST, text)


def settings_after(request: ResourceChange, before: Mapping[str, str]) -> dict[str, str]:
    """The resulting settings of a resource; raises KafkaError."""
    after: dict[str, str] = {} if request.replaces else dict(before)
    for key, operation, value in request.changes:
        _merge(after, _key_of(ResourceType(request.kind), key), key, operation, value)
    return after


def _key_of(kind: ResourceType, name: str) -> ConfigKey | None:
    if kind is ResourceType.BROKER:
        return known_key(name)
    keys = {
        ResourceType.TOPIC: definitions.TOPIC,
        ResourceType.GROUP: definitions.GROUP,
        ResourceType.CLIENT_METRICS: definitions.CLIENT_METRICS,
        ResourceType.LINK: definitions.LINK,
    }
    return keys[kind].get(name)


def _merge(settings: dict[str, str], key: ConfigKey | None, name: str, operation: int, value: str | None) -> None:
    """Apply one operation to `settings`; raises KafkaError."""
    if operation == AlterOperation.DELETE:
        settings.pop(name, None)
        return
    if operation not in {AlterOperation.SET, AlterOperation.APPEND, AlterOperation.SUBTRACT}:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operation {operation} for key {name}")
    if value is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {name}")
    if operation == AlterOperation.SET:
        settings[name] = value
        return
    if key is None or key.type is not ConfigType.LIST:
        verb = AlterOperation(operation).name
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Can't {verb} to key {name} because its type is not LIST.")
    words = _words(settings[name] if name in settings else key.default_text() or "")
    given = _words(value)
    if operation == AlterOperation.APPEND:
        words += [word for word in dict.fromkeys(given) if word not in words]
    else:
        words = [word for word in words if word not in given]
    settings[name] = ",".join(words)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
