"""Settings changed, described and listed through the handlers, as Kafka 4.3 does it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.cluster.planning.instructions import UpdateBrokerConfig, UpdateTopicConfig
from barnabas.cluster.planning.topics import NewTopic
from barnabas.protocol.messages import alter_configs as legacy
from barnabas.protocol.messages import incremental_alter_configs as incremental
from barnabas.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.cluster.harness import FakeBroker

SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
AT_FIRST = {(BROKER, ""): {"min.insync.replicas": "1"}}
Change = tuple[str, int, str | None]
Synonyms = list[tuple[str, str | None, int]]


async def broker_with_topic(**properties: str) -> FakeBroker:
    broker = FakeBroker({key.replace("_", "."): value for key, value in properties.items()})
    await broker.controller.create_topics([NewTopic("t", 1, 1)])
    broker.instructions.clear()
    return broker


async def alter(broker: FakeBroker, kind: int, name: str, *changes: Change, **rest: Any) -> tuple[int, str | None]:
    configs = [incremental.AlterableConfig(name=key, config_operation=op, value=value) for key, op, value in changes]
    resource = incremental.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    answer = await broker.ask(incremental.IncrementalAlterConfigsRequest(resources=[resource], **rest), 1)
    (told,) = answer.responses
    assert (told.resource_type, told.resource_name) == (kind, name)
    return told.error_code, told.error_message


async def replace(
    broker: FakeBroker, kind: int, name: str, *pairs: tuple[str, str | None], **rest: Any
) -> tuple[int, str | None]:
    configs = [legacy.AlterableConfig(name=key, value=value) for key, value in pairs]
    resource = legacy.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    answer = await broker.ask(legacy.AlterConfigsRequest(resources=[resource], **rest), 2)
    (told,) = answer.responses
    return told.error_code, told.error_message


async def describe(broker: FakeBroker, kind: int, name: str, *keys: str, version: int = 4, **rest: Any) -> Any:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys or None)
    answer = await broker.ask(DescribeConfigsRequest(resources=[resource], **rest), version)
    return answer.results[0]


async def value_of(broker: FakeBroker, kind: int, name: str, key: str) -> tuple[str | None, int, Synonyms]:
    (config,) = (await describe(broker, kind, name, key, include_synonyms=True)).configs
    return config.value, config.config_source, [(s.name, s.value, s.source) for s in config.synonyms]


async def test_append_and_subtract_start_from_the_default() -> None:
    async with await broker_with_topic() as broker:
        for change, policy in [
            (("cleanup.policy", APPEND, "compact"), "delete,compact"),
            (("cleanup.policy", APPEND, "compact"), "delete,compact"),
            (("cleanup.policy", SUBTRACT, "delete"), "compact"),
            (("cleanup.policy", SUBTRACT, "delete"), "compact"),
            (("cleanup.policy", APPEND, " delete , compact "), "compact,delete"),
            (("cleanup.policy", SUBTRACT, "compact,delete"), ""),
            (("cleanup.policy", SET, "compact"), "compact"),
            (("cleanup.policy", DELETE, "ignored"), "delete"),
        ]:
            assert await alter(broker, TOPIC, "t", change) == (0, None)
            assert (await value_of(broker, TOPIC, "t", "cleanup.policy"))[0] == policy


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ([("retention.ms", APPEND, "5")], 40, "Can't APPEND to key retention.ms because its type is not LIST."),
        ([("nope", SUBTRACT, "5")], 40, "Can't SUBTRACT to key nope because its type is not LIST."),
        ([("nope", SET, "5")], 40, "Unknown topic config name: nope"),
        ([("nope", DELETE, None)], 0, None),
        ([("retention.ms", SET, None)], 42, "Null value not supported for : retention.ms"),
        ([("retention.ms", SET, "1"), ("retention.ms", DELETE, None)], 42, "Error due to duplicate config keys"),
        ([("retention.ms", 9, "1")], 42, "Unknown operation 9 for key retention.ms"),
        ([("retention.ms", SET, "x")], 40, "Invalid value x for configuration retention.ms: Not a number of type LONG"),
        (
            [("cleanup.policy", APPEND, "foo")],
            40,
            "Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        ([], 0, None),
    ],
)
async def test_what_a_topic_may_not_be_set(changes: list[Change], code: int, message: str | None) -> None:
    async with await broker_with_topic() as broker:
        assert await alter(broker, TOPIC, "t", *changes) == (code, message)
        assert broker.metadata.topic_config("t") == {}
        assert broker.instructions == []


@pytest.mark.parametrize(
    ("kind", "name", "change", "code", "message"),
    [
        (TOPIC, "nono", ("retention.ms", SET, "1"), 3, "The topic 'nono' does not exist."),
        (TOPIC, "", ("retention.ms", SET, "1"), 42, "Default topic resources are not allowed."),
        (BROKER, "1", ("num.partitions", SET, "3"), 42, "Cannot update these configs dynamically: [num.partitions]"),
        (BROKER, "9", ("message.max.bytes", SET, "3"), 42, "Unexpected broker id, expected 1, but received 9"),
        (BROKER, "x", ("message.max.bytes", SET, "3"), 42, "Node id must be an integer, but it is: x"),
        (
            BROKER,
            "",
            ("message.max.bytes", SET, "-1"),
            42,
            "Invalid value -1 for configuration message.max.bytes: Value must be at least 0",
        ),
        (
            BROKER,
            "",
            ("ssl.client.auth", SET, "none"),
            42,
            "Cannot update these configs at default cluster level, broker id must be specified: [ssl.client.auth]",
        ),
        (
            BROKER,
            "1",
            ("ssl.keystore.password", SET, "x"),
            42,
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            "[ssl.keystore.password]",
        ),
        (GROUP, "", ("consumer.session.timeout.ms", SET, "50000"), 42, "Default group resources are not allowed."),
        (GROUP, "g", ("nope", SET, "1"), 40, "Unknown group config name: nope"),
        (
            GROUP,
            "g",
            ("consumer.session.timeout.ms", SET, "1"),
            40,
            "consumer.session.timeout.ms must be greater than or equal to group.consumer.min.session.timeout.ms",
        ),
        (METRICS, "", ("interval.ms", SET, "1000"), 42, "Subscription name can't be empty"),
        (METRICS, "m", ("nope", SET, "1"), 42, "Unknown client metrics configuration: nope"),
        (METRICS, "m", ("match", SET, "client_id=("), 40, "Illegal client matching pattern: client_id=("),
        (
            METRICS,
            "m",
            ("interval.ms", SET, "1"),
            42,
            "Invalid value 1 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        ),
        (99, "x", ("a", SET, "b"), 42, "Unknown resource type 99"),
    ],
)
async def test_what_other_resources_may_not_be_set(kind: int, name: str, change: Change, code: int, message: str) -> None:
    async with await broker_with_topic() as broker:
        assert await alter(broker, kind, name, change) == (code, message)
        assert broker.metadata.configs == AT_FIRST


async def test_the_legacy_request_replaces_all_settings() -> None:
    async with await broker_with_topic() as broker:
        assert await replace(broker, TOPIC, "t", ("retention.ms", "5"), ("segment.ms", "6")) == (0, None)
        assert await replace(broker, TOPIC, "t", ("retention.ms", "7")) == (0, None)
        assert broker.metadata.topic_config("t") == {"retention.ms": "7"}
        assert await replace(broker, TOPIC, "t", ("retention.ms", None)) == (42, "Null value not supported for : retention.ms")
        assert await replace(broker, TOPIC, "t", ("retention.ms", "9"), validate_only=True) == (0, None)
        assert broker.metadata.topic_config("t") == {"retention.ms": "7"}
        assert await replace(broker, TOPIC, "t") == (0, None)
        assert broker.metadata.configs == AT_FIRST
        assert await replace(broker, LOGGER, "1", ("root", "INFO")) == (42, "Unknown resource type 8")


async def test_a_resource_named_twice_is_refused_and_the_others_are_not() -> None:
    def resource(name: str, value: str) -> incremental.AlterConfigsResource:
        config = incremental.AlterableConfig(name="retention.ms", config_operation=SET, value=value)
        return incremental.AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=[config])

    async with await broker_with_topic() as broker:
        await broker.controller.create_topics([NewTopic("u", 1, 1)])
        request = incremental.IncrementalAlterConfigsRequest(
            resources=[resource("t", "1"), resource("u", "2"), resource("t", "3")]
        )
        answer = await broker.ask(request, 1)
        assert [(r.resource_name, r.error_code) for r in answer.responses] == [("t", 42), ("u", 0), ("t", 42)]
        assert dict(broker.metadata.configs) == {**AT_FIRST, (TOPIC, "u"): {"retention.ms": "2"}}


async def test_a_value_has_all_its_sources() -> None:
    async with await broker_with_topic(message_max_bytes="2000000", log_retention_hours="5") as broker:
        assert await value_of(broker, TOPIC, "t", "retention.ms") == ("18000000", 5, [])
        await alter(broker, BROKER, "", ("message.max.bytes", SET, "3000000"), ("log.retention.ms", SET, "12345"))
        await alter(broker, BROKER, "1", ("message.max.bytes", SET, "4000000"))
        await alter(broker, TOPIC, "t", ("max.message.bytes", SET, "555"))
        of_broker: Synonyms = [
            ("message.max.bytes", "4000000", 2),
            ("message.max.bytes", "3000000", 3),
            ("message.max.bytes", "2000000", 4),
            ("message.max.bytes", "1048588", 5),
        ]
        assert await value_of(broker, TOPIC, "t", "max.message.bytes") == (
            "555",
            1,
            [("max.message.bytes", "555", 1), *of_broker],
        )
        assert await value_of(broker, BROKER, "1", "message.max.bytes") == ("4000000", 2, of_broker)
        assert await value_of(broker, BROKER, "", "message.max.bytes") == ("3000000", 3, [("message.max.bytes", "3000000", 3)])
        retention: Synonyms = [
            ("log.retention.ms", "12345", 3),
            ("log.retention.hours", "5", 4),
            ("log.retention.hours", "168", 5),
        ]
        assert await value_of(broker, TOPIC, "t", "retention.ms") == ("12345", 3, retention)
        assert await value_of(broker, BROKER, "1", "log.retention.hours") == ("5", 4, retention[1:])


async def test_dynamic_settings_reach_the_topics() -> None:
    async with await broker_with_topic() as broker:
        await alter(broker, BROKER, "", ("log.retention.ms", SET, "77"))
        kinds = [type(instruction) for instruction in broker.instructions]
        assert kinds == [UpdateBrokerConfig, UpdateTopicConfig]
        assert broker.controller.topic_config("t").retention_ms == 77
        assert broker.controller.config.log_retention_ms == 77
        await alter(broker, TOPIC, "t", ("retention.ms", SET, "5"), ("cleanup.policy", SET, "compact"))
        told = broker.instructions[-1]
        assert isinstance(told, UpdateTopicConfig)
        assert (told.config.retention_ms, told.config.cleanup_policy) == (5, frozenset({"compact"}))
        await alter(broker, BROKER, "", ("log.retention.ms", DELETE, None))
        assert broker.controller.config.log_retention_ms is None


async def test_describing_a_topic() -> None:
    async with await broker_with_topic() as broker:
        every = await describe(broker, TOPIC, "t", include_documentation=True)
        assert (every.error_code, every.error_message, len(every.configs)) == (0, "", 33)
        assert all(config.documentation and config.config_type for config in every.configs)
        chosen = await describe(broker, TOPIC, "t", "retention.ms", "nope")
        assert [(c.name, c.synonyms, c.documentation) for c in chosen.configs] == [("retention.ms", [], None)]
        for name, code in (("nono", 3), ("", 17), ("a b", 17)):
            assert (await describe(broker, TOPIC, name)).error_code == code


@pytest.mark.parametrize("version", range(1, 5))
async def test_every_version_of_describe_configs(version: int) -> None:
    async with await broker_with_topic() as broker:
        assert len((await describe(broker, BROKER, "1", version=version, include_synonyms=True)).configs) > 300


async def test_describing_a_broker_shows_no_secret() -> None:
    properties = {"ssl.truststore.password": "geheim", "never.heard.of": "geheim"}
    async with FakeBroker(properties) as broker:
        for key, config_type in (("ssl.truststore.password", 9), ("never.heard.of", 0)):
            (config,) = (await describe(broker, BROKER, "1", key, include_synonyms=True)).configs
            assert (config.value, config.is_sensitive, config.config_source, config.config_type) == (None, True, 4, config_type)
            assert [s.value for s in config.synonyms] == [None]
        for name in ("9", "x"):
            assert (await describe(broker, BROKER, name)).error_code == 42


async def test_groups_and_client_metrics() -> None:
    async with FakeBroker() as broker:
        assert await alter(broker, GROUP, "g/1", ("consumer.session.timeout.ms", SET, "50000")) == (0, None)
        assert await alter(broker, GROUP, "g/1", ("share.auto.offset.reset", SET, "by_duration:PT1H")) == (0, None)
        assert await alter(broker, METRICS, "m", ("metrics", SET, "a,b"), ("match", SET, "client_id=x.*")) == (0, None)
        assert await value_of(broker, GROUP, "g/1", "consumer.session.timeout.ms") == (
            "50000",
            8,
            [("consumer.session.timeout.ms", "50000", 8), ("group.consumer.session.timeout.ms", "45000", 5)],
        )
        assert await value_of(broker, METRICS, "m", "metrics") == ("a,b", 7, [("metrics", "a,b", 7)])
        assert await value_of(broker, METRICS, "m", "interval.ms") == ("300000", 5, [])
        for kind in (GROUP, METRICS, LOGGER, 1, 99):
            assert (await describe(broker, kind, "")).error_code == 42


@pytest.fixture
def restored_level() -> Iterator[None]:
    before = logging.getLogger("barnabas").level
    yield
    logging.getLogger("barnabas").setLevel(before)


@pytest.mark.usefixtures("restored_level")
async def test_levels_of_loggers() -> None:
    async with FakeBroker() as broker:
        assert await alter(broker, LOGGER, "1", ("barnabas", SET, "TRACE")) == (0, None)
        assert logging.getLogger("barnabas").level == 5
        assert (await value_of(broker, LOGGER, "1", "barnabas"))[:2] == ("TRACE", 6)
        assert await alter(broker, LOGGER, "1", ("barnabas", SET, "WARN"), validate_only=True) == (0, None)
        assert logging.getLogger("barnabas").level == 5
        assert await alter(broker, LOGGER, "1", ("barnabas", DELETE, None)) == (0, None)
        assert logging.getLogger("barnabas").level == logging.NOTSET
        for name, change, code in [
            ("1", ("nope.x", SET, "DEBUG"), 40),
            ("1", ("root", SET, "LOUD"), 40),
            ("1", ("root", DELETE, ""), 42),
            ("1", ("root", APPEND, "INFO"), 42),
            ("1", ("root", SET, None), 42),
            ("9", ("root", SET, "INFO"), 42),
            ("", ("root", SET, "INFO"), 42),
        ]:
            assert (await alter(broker, LOGGER, name, change))[0] == code


async def test_listing_resources() -> None:
    async with await broker_with_topic() as broker:
        await alter(broker, GROUP, "g", ("consumer.session.timeout.ms", SET, "50000"))
        await alter(broker, METRICS, "m", ("interval.ms", SET, "1000"))
        for version, kinds, expected in [
            (1, [], {("t", TOPIC), ("1", BROKER), ("1", LOGGER), ("m", METRICS), ("g", GROUP)}),
            (0, [], {("m", METRICS)}),
            (1, [GROUP, TOPIC], {("t", TOPIC), ("g", GROUP)}),
        ]:
            answer = await broker.ask(ListConfigResourcesRequest(resource_types=kinds), version)
            assert {(r.resource_name, r.resource_type) for r in answer.config_resources} == expected
        assert (await broker.ask(ListConfigResourcesRequest(resource_types=[TOPIC, 99]), 1)).error_code == 35


WORDS = st.lists(st.sampled_from(["compact", "delete"]), max_size=3)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([SET, DELETE, APPEND, SUBTRACT]), WORDS), max_size=8))
async def test_list_operations_against_a_model(operations: list[tuple[int, list[str]]]) -> None:
    model: list[str] | None = None
    async with await broker_with_topic() as broker:
        for operation, words in operations:
            assert await alter(broker, TOPIC, "t", ("cleanup.policy", operation, ",".join(words))) == (0, None)
            now = ["delete"] if model is None else model
            if operation == SET:
                model = words
            elif operation == DELETE:
                model = None
            elif operation == APPEND:
                model = now + [w for w in dict.fromkeys(words) if w not in now]
            else:
                model = [w for w in now if w not in words]
            expected = frozenset({"delete"} if model is None else model)
            assert broker.controller.topic_config("t").cleanup_policy == expected


@pytest.mark.parametrize("order", [1, -1])
async def test_what_is_changed_together_counts_together(order: int) -> None:
    changes = [
        (TOPIC, "t", "max.message.bytes", "200"),
        (BROKER, "", "log.retention.ms", "77"),
        (BROKER, "1", "message.max.bytes", "5000"),
    ]
    resources = [
        incremental.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[incremental.AlterableConfig(name=key, config_operation=SET, value=value)],
        )
        for kind, name, key, value in changes[::order]
    ]
    async with await broker_with_topic() as broker:
        answer = await broker.ask(incremental.IncrementalAlterConfigsRequest(resources=resources), 1)
        assert {told.error_code for told in answer.responses} == {0}
        of_broker, of_topic = broker.instructions
        assert isinstance(of_broker, UpdateBrokerConfig)
        assert (of_broker.config.log_retention_ms, of_broker.config.message_max_bytes) == (77, 5000)
        assert isinstance(of_topic, UpdateTopicConfig)
        assert (of_topic.config.max_message_bytes, of_topic.config.retention_ms) == (200, 77)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("num.io.threads", "17", "value should not be greater than double the current value 8"),
        ("num.io.threads", "3", "value should be at least half the current value 8"),
        ("num.replica.fetchers", "5", "value should not be greater than double the current value 1"),
    ],
)
async def test_numbers_of_threads_change_by_half_or_double_at_most(key: str, value: str, reason: str) -> None:
    async with await broker_with_topic() as broker:
        code, message = await alter(broker, BROKER, "1", (key, SET, value))
        assert (code, message) == (42, f"Dynamic thread count update validation failed for {key}={value}, {reason}")
        assert await alter(broker, BROKER, "1", (key, SET, "2" if key.startswith("num.replica") else "16")) == (0, None)
