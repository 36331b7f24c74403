"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and ListConfigResources."""

from __future__ import annotations

from functools import partial

from barnabas.protocol.messages import alter_configs, incremental_alter_configs
from barnabas.protocol.messages.alter_configs import AlterConfigsRequest
from barnabas.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.differential.talk import Talk
from tests.waiting import wait_until

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
BROKER_KEYS = [
    "auto.create.topics.enable", "compression.type", "default.replication.factor", "delete.topic.enable",
    "group.initial.rebalance.delay.ms", "group.max.session.timeout.ms", "group.min.session.timeout.ms", "log.cleanup.policy",
    "log.retention.bytes", "log.retention.hours", "log.retention.ms", "log.segment.bytes", "max.connections", "message.max.bytes",
    "min.insync.replicas", "num.partitions", "offsets.retention.minutes", "offsets.topic.num.partitions", "socket.request.max.bytes",
    "log.flush.interval.messages", "connections.max.idle.ms", "log.message.timestamp.type",
]  # fmt: skip


def _describe(kind: int, name: str, keys: list[str] | None = None, *, full: bool = False) -> DescribeConfigsRequest:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    return DescribeConfigsRequest(resources=[resource], include_synonyms=full, include_documentation=full)


def _alter(kind: int, name: str, configs: dict[str, str | None], *, validate_only: bool = False) -> AlterConfigsRequest:
    items = [alter_configs.AlterableConfig(name=key, value=value) for key, value in configs.items()]
    resource = alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=items)
    return AlterConfigsRequest(resources=[resource], validate_only=validate_only)


def _change(
    kind: int, name: str, *changes: tuple[int, str, str | None], validate_only: bool = False
) -> IncrementalAlterConfigsRequest:
    items = [
        incremental_alter_configs.AlterableConfig(name=key, config_operation=operation, value=value)
        for operation, key, value in changes
    ]
    resource = incremental_alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=items)
    return IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)


def _value(talk: Talk, kind: int, name: str, key: str) -> str:
    return str(talk.do(_describe(kind, name, [key]), 4).results[0].configs[0].value)


def describe_topic_configs(talk: Talk) -> None:
    plain, own = talk.create("plain"), talk.create("own", retention_ms="3600000", cleanup_policy="compact")
    for version in talk.versions_of("DescribeConfigs"):
        talk.ask("everything", _describe(TOPIC, plain), version)
        talk.ask("everything with synonyms and documentation", _describe(TOPIC, own, full=True), version)
        talk.ask("three keys", _describe(TOPIC, own, ["retention.ms", "cleanup.policy", "segment.bytes"]), version)
        talk.ask("unknown key", _describe(TOPIC, own, ["no.such.key", "retention.ms"]), version)
        talk.ask("no key", _describe(TOPIC, own, []), version)
        talk.ask("absent topic", _describe(TOPIC, talk.name("absent")), version)
        talk.ask("wrong topic", _describe(TOPIC, "a/b"), version)
        talk.ask("empty topic", _describe(TOPIC, ""), version)


def describe_other_configs(talk: Talk) -> None:
    for version in talk.versions_of("DescribeConfigs"):
        me = str(talk.node_id)
        talk.ask("of this broker", _describe(BROKER, me, BROKER_KEYS), version)
        talk.ask("of this broker with synonyms", _describe(BROKER, me, BROKER_KEYS, full=True), version)
        talk.ask("of all brokers", _describe(BROKER, ""), version)
        talk.ask("of another broker", _describe(BROKER, "99", ["num.partitions"]), version)
        talk.ask("of a broker that is no number", _describe(BROKER, "one", ["num.partitions"]), version)
        talk.ask("of loggers of a broker that is no number", _describe(BROKER_LOGGER, "one"), version)
        talk.ask("of an unknown type", _describe(99, "x"), version)
        talk.ask("of type 0", _describe(0, "x"), version)
        talk.ask("of nothing", DescribeConfigsRequest(resources=[]), version)
    resources = [DescribeConfigsResource(resource_type=TOPIC, resource_name=talk.name("absent"), configuration_keys=None)]
    resources.append(DescribeConfigsResource(resource_type=BROKER, resource_name="99", configuration_keys=None))
    talk.ask("two wrong resources", DescribeConfigsRequest(resources=resources), 4)


def alter_topic_configs(talk: Talk) -> None:
    for version in talk.versions_of("AlterConfigs"):
        name = talk.create(f"v{version}", retention_ms="1000")
        cases: dict[str, AlterConfigsRequest] = {
            "validate only": _alter(TOPIC, name, {"segment.ms": "5"}, validate_only=True),
            "one key replaces all": _alter(TOPIC, name, {"segment.ms": "60000"}),
            "unknown key": _alter(TOPIC, name, {"no.such.key": "1"}),
            "bad value": _alter(TOPIC, name, {"segment.ms": "soon"}),
            "null value": _alter(TOPIC, name, {"segment.ms": None}),
            "absent topic": _alter(TOPIC, talk.name("absent"), {"segment.ms": "60000"}),
            "wrong topic": _alter(TOPIC, "a/b", {"segment.ms": "60000"}),
            "empty topic": _alter(TOPIC, "", {"segment.ms": "60000"}),
            "unknown type": _alter(99, "x", {"a": "b"}),
            "nothing": AlterConfigsRequest(resources=[]),
        }
        for case, request in cases.items():
            talk.ask(case, request, version)
        talk.settle()
        talk.ask(f"after v{version}", _describe(TOPIC, name, ["retention.ms", "segment.ms"]), 4)
        talk.ask("back to the defaults", _alter(TOPIC, name, {}), version)
        talk.settle()
        talk.ask(f"after all of v{version}", _describe(TOPIC, name, ["retention.ms", "segment.ms"]), 4)


def change_topic_configs(talk: Talk) -> None:
    for version in talk.versions_of("IncrementalAlterConfigs"):
        name = talk.create(f"v{version}", retention_ms="1000")
        cases = {
            "validate only": _change(TOPIC, name, (SET, "segment.ms", "5"), validate_only=True),
            "set one": _change(TOPIC, name, (SET, "segment.ms", "60000")),
            "append to the default": _change(TOPIC, name, (APPEND, "cleanup.policy", "compact")),
            "append what is there": _change(TOPIC, name, (APPEND, "cleanup.policy", "compact")),
            "subtract one": _change(TOPIC, name, (SUBTRACT, "cleanup.policy", "delete")),
            "subtract what is not there": _change(TOPIC, name, (SUBTRACT, "cleanup.policy", "delete")),
            "append two at once": _change(TOPIC, name, (SET, "cleanup.policy", "delete"), (SET, "retention.ms", "5000")),
            "subtract the last": _change(TOPIC, name, (SUBTRACT, "cleanup.policy", "delete")),
            "append to a number": _change(TOPIC, name, (APPEND, "retention.ms", "5")),
            "subtract from a number": _change(TOPIC, name, (SUBTRACT, "retention.ms", "5")),
            "append to the empty list": _change(TOPIC, name, (APPEND, "leader.replication.throttled.replicas", "0:1,1:1")),
            "subtract from that list": _change(TOPIC, name, (SUBTRACT, "leader.replication.throttled.replicas", "0:1")),
            "delete one": _change(TOPIC, name, (DELETE, "retention.ms", None)),
            "delete one with a value": _change(TOPIC, name, (DELETE, "segment.ms", "5")),
            "delete what is not set": _change(TOPIC, name, (DELETE, "flush.ms", None)),
            "unknown key": _change(TOPIC, name, (SET, "no.such.key", "1")),
            "delete an unknown key": _change(TOPIC, name, (DELETE, "no.such.key", None)),
            "append an unknown key": _change(TOPIC, name, (APPEND, "no.such.key", "1")),
            "bad value": _change(TOPIC, name, (SET, "segment.ms", "soon")),
            "append a bad value": _change(TOPIC, name, (APPEND, "cleanup.policy", "burn")),
            "null value": _change(TOPIC, name, (SET, "segment.ms", None)),
            "unknown operation": _change(TOPIC, name, (9, "segment.ms", "5")),
            "one key twice": _change(TOPIC, name, (SET, "segment.ms", "5"), (SET, "segment.ms", "6")),
            "one good and one bad": _change(TOPIC, name, (SET, "flush.ms", "7"), (SET, "segment.ms", "soon")),
            "absent topic": _change(TOPIC, talk.name("absent"), (SET, "segment.ms", "60000")),
            "wrong topic": _change(TOPIC, "a/b", (SET, "segment.ms", "60000")),
            "empty topic": _change(TOPIC, "", (SET, "segment.ms", "60000")),
            "unknown type": _change(99, "x", (SET, "a", "b")),
            "nothing": IncrementalAlterConfigsRequest(resources=[]),
            "nothing of a topic": _change(TOPIC, name),
        }
        keys = ["retention.ms", "segment.ms", "cleanup.policy", "flush.ms", "leader.replication.throttled.replicas"]
        for case, request in cases.items():
            talk.ask(case, request, version)
            talk.settle()
            talk.ask(f"after v{version} {case}", _describe(TOPIC, name, keys), 4)
        one, other = (
            _change(TOPIC, name, (SET, "flush.ms", "8")).resources[0],
            _change(TOPIC, "a/b", (SET, "a", "b")).resources[0],
        )
        talk.ask("the same resource twice", IncrementalAlterConfigsRequest(resources=[one, one]), version)
        talk.ask("good and bad resources", IncrementalAlterConfigsRequest(resources=[one, other]), version)


def _has_value(talk: Talk, broker: str, key: str, value: str) -> bool:
    return _value(talk, BROKER, broker, key) == value


def change_broker_configs(talk: Talk) -> None:
    me = str(talk.node_id)
    for version in talk.versions_of("IncrementalAlterConfigs"):
        cases = {
            "of this broker": _change(BROKER, me, (SET, "log.cleaner.threads", "2")),
            "of this broker, undone": _change(BROKER, me, (DELETE, "log.cleaner.threads", None)),
            "of all brokers": _change(BROKER, "", (SET, "message.max.bytes", "1048000")),
            "of all brokers, undone": _change(BROKER, "", (DELETE, "message.max.bytes", None)),
            "of another broker": _change(BROKER, "99", (SET, "message.max.bytes", "1048000")),
            "of a broker that is no number": _change(BROKER, "one", (SET, "message.max.bytes", "1048000")),
            "a key that needs a restart": _change(BROKER, me, (SET, "node.id", "4")),
            "a key that needs a restart, for all": _change(BROKER, "", (SET, "num.partitions", "4")),
            "a bad value": _change(BROKER, "", (SET, "message.max.bytes", "many")),
            "an unknown key": _change(BROKER, "", (SET, "no.such.key", "4")),
        }
        took_effect = {
            "of this broker": ("log.cleaner.threads", "2"),
            "of this broker, undone": ("log.cleaner.threads", "1"),
            "of all brokers": ("message.max.bytes", "1048000"),
            "of all brokers, undone": ("message.max.bytes", "1048588"),
        }
        for case, request in cases.items():
            talk.ask(case, request, version)
            if case in took_effect:
                key, value = took_effect[case]
                wait_until(partial(_has_value, talk, me, key, value))
                talk.ask(f"after v{version} {case}", _describe(BROKER, me, [key], full=True), 4)
    talk.do(_change(BROKER, "", (DELETE, "no.such.key", None)), 1)  # other scenarios describe the defaults of all brokers
    talk.settle()


def a_broker_wide_setting_shows_in_topics(talk: Talk) -> None:
    name = talk.create("inherits")
    talk.do(_change(BROKER, "", (SET, "log.segment.bytes", "2000000")), 1)
    wait_until(lambda: _value(talk, TOPIC, name, "segment.bytes") == "2000000")
    talk.ask("inherited", _describe(TOPIC, name, ["segment.bytes"], full=True), 4)
    talk.do(_change(BROKER, "", (DELETE, "log.segment.bytes", None)), 1)
    wait_until(lambda: _value(talk, TOPIC, name, "segment.bytes") != "2000000")
    talk.ask("no longer", _describe(TOPIC, name, ["segment.bytes"], full=True), 4)


def list_config_resources(talk: Talk) -> None:
    talk.create("a", retention_ms="5")
    talk.create("b")
    for version in talk.versions_of("ListConfigResources"):
        for kinds in ((), (TOPIC,), (BROKER,), (TOPIC, BROKER), (CLIENT_METRICS,), (GROUP,), (BROKER_LOGGER,), (99,)):
            request = ListConfigResourcesRequest(resource_types=list(kinds))
            talk.ask(
                f"types {', '.join(map(str, kinds)) or 'not given'}", request, version, only_mine=not kinds or TOPIC in kinds
            )
