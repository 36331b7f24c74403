"""From properties to BrokerConfig."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.config import definitions
from barnabas.config.broker import BrokerConfig
from barnabas.config.config_key import ConfigKey, Effect, text_of
from barnabas.config.topic import TopicConfig
from barnabas.errors import ConfigError


def config(**properties: str) -> BrokerConfig:
    return BrokerConfig.from_properties({key.replace("_", "."): value for key, value in properties.items()})[0]


def test_without_properties_everything_is_kafkas_default() -> None:
    made, warnings = BrokerConfig.from_properties({})
    assert warnings == ()
    assert made.topic_defaults == TopicConfig()
    assert made.listeners == made.advertised_listeners == ("PLAINTEXT://:9092",)
    assert made.log_dirs == ("/tmp/kafka-logs",)
    assert (made.num_partitions, made.auto_create_topics_enable, made.log_retention_ms) == (1, True, None)


def test_values_are_typed() -> None:
    made = config(num_partitions=" 7 ", delete_topic_enable="FALSE", log_dirs="/a, /b", log_cleaner_min_cleanable_ratio="1e-1")
    assert made.num_partitions == 7
    assert made.delete_topic_enable is False
    assert made.log_dirs == ("/a", "/b")
    assert made.log_cleaner_min_cleanable_ratio == 0.1


def test_unknown_and_idle_keys_are_warnings() -> None:
    made, warnings = BrokerConfig.from_properties({"num.partitons": "3", "num.io.threads": "8", "num.partitions": "2"})
    assert warnings == (
        "unknown configuration key num.partitons",
        "configuration key num.io.threads is accepted and has no effect",
    )
    assert made.num_partitions == 2


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("num.partitions", "0", "Value must be at least 1"),
        ("num.partitions", "x", "Not a number of type INT"),
        ("num.partitions", "", "Not a number of type INT"),
        ("num.partitions", "3.0", "Not a number of type INT"),
        ("num.partitions", "1_000", "Not a number of type INT"),
        ("num.partitions", str(2**31), "Not a number of type INT"),
        ("log.retention.bytes", str(-(2**63) - 1), "Not a number of type LONG"),
        ("offsets.topic.replication.factor", "40000", "Not a number of type SHORT"),
        ("delete.topic.enable", "yes", "Expected value to be either true or false"),
        ("compression.type", "zip", "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"),
        ("compression.gzip.level", "10", "Value must be between 1 and 9 or equal to -1"),
        ("log.cleanup.policy", "compact,shrink", "String must be one of: compact, delete"),
        ("log.cleaner.min.cleanable.ratio", "1.5", "Value must be no more than 1"),
        ("listeners", "localhost:9092", "NAME://host:port"),
        ("listeners", "PLAINTEXT://:70000", "0 to 65535"),
        ("listeners", "FOO://:9092", "listener.security.protocol.map knows"),
        ("listeners", "PLAINTEXT://:1,PLAINTEXT://:2", "a name of its own"),
        ("listeners", "", "at least one"),
        ("advertised.listeners", "SSL://a:1", "the name of a listener: PLAINTEXT"),
        ("advertised.listeners", "PLAINTEXT://0.0.0.0:1", "clients can reach"),
        ("listener.security.protocol.map", "A:B", "with a protocol out of"),
        ("group.min.session.timeout.ms", "99999999", "at most group.max.session.timeout.ms"),
        ("group.consumer.max.size", "0", "Value must be at least 1"),
        ("group.consumer.min.heartbeat.interval.ms", "6000", "at most group.consumer.heartbeat.interval.ms"),
        ("group.consumer.session.timeout.ms", "70000", "at most group.consumer.max.session.timeout.ms"),
        ("group.consumer.assignors", "uniform,org.example.Mine", "String must be one of"),
        ("group.coordinator.rebalance.protocols", "consumer", "a list with classic, which cannot be switched off"),
        ("group.consumer.migration.policy", "sideways", "String must be one of"),
        ("log.cleaner.max.compaction.lag.ms", "1", "min.compaction.lag.ms"),
    ],
)
def test_a_bad_value_names_the_key_and_what_is_allowed(key: str, value: str, allowed: str) -> None:
    properties = {"log.cleaner.min.compaction.lag.ms": "2", key: value}
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.from_properties(properties)
    assert caught.value.key in {key, "max.compaction.lag.ms"}
    assert allowed in str(caught.value)


@pytest.mark.parametrize(
    ("properties", "retention_ms"),
    [
        ({}, 604_800_000),
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.minutes": "-1"}, -1),
    ],
)
def test_the_finer_unit_wins(properties: dict[str, str], retention_ms: int) -> None:
    assert BrokerConfig.from_properties(properties)[0].topic_defaults.retention_ms == retention_ms


def test_node_id_and_broker_id_are_one() -> None:
    assert (config(broker_id="7").node_id, config(node_id="7").broker_id) == (7, 7)
    with pytest.raises(ConfigError, match=r"broker\.id"):
        config(broker_id="7", node_id="8")


def test_log_dir_stands_in_for_log_dirs() -> None:
    assert config(log_dir="/a").log_dirs == ("/a",)
    assert config(log_dir="/a", log_dirs="/b").log_dirs == ("/b",)


def test_listeners_are_parsed_and_the_quorums_left_out() -> None:
    made, _ = BrokerConfig.from_properties(
        {
            "listeners": "PLAINTEXT://:9092,INTERNAL://[::1]:0,CONTROLLER://:9093",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT",
            "advertised.listeners": "PLAINTEXT://broker.example:9092",
        }
    )
    assert [tuple(endpoint) for endpoint in made.listener_endpoints] == [
        ("PLAINTEXT", "", 9092, "PLAINTEXT"),
        ("INTERNAL", "::1", 0, "PLAINTEXT"),
    ]
    assert [endpoint.host for endpoint in made.advertised_endpoints] == ["broker.example"]


def test_it_never_changes_and_shows_no_secret() -> None:
    made, _ = BrokerConfig.from_properties({"ssl.key.password": "geheim", "unknown.password": "geheim", "num.partitions": "2"})
    with pytest.raises(AttributeError):
        made.num_partitions = 3
    assert "geheim" not in repr(made)
    assert "num.partitions" in repr(made)


def test_dynamic_settings_make_another() -> None:
    made = config(message_max_bytes="5", log_dirs="/a")
    other = made.with_dynamic({"message.max.bytes": "6", "never.heard.of": "x"})
    assert (made.message_max_bytes, other.message_max_bytes, other.topic_defaults.max_message_bytes) == (5, 6, 6)
    assert (other.given, other.log_dirs) == (made.given, ("/a",))


KEYS = [*definitions.BROKER.values(), *definitions.TOPIC.values(), *definitions.GROUP.values()]


@given(st.sampled_from(KEYS), st.text(max_size=12))
def test_any_text_is_a_value_or_a_config_error(key: ConfigKey, text: str) -> None:
    try:
        value = key.read(text)
    except ConfigError:
        return
    assert key.read(text_of(value)) == value


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_every_default_is_allowed_and_documented(key: ConfigKey) -> None:
    text = key.default_text()
    if text is not None:
        assert key.read(text) == key.default
    assert key.doc.endswith(".")


@pytest.mark.parametrize(
    ("value", "text"),
    [(sys.float_info.max, "1.7976931348623157E308"), (0.5, "0.5"), (1e-9, "1.0E-9"), (1e7, "1.0E7"), (2.0, "2.0")],
)
def test_doubles_are_written_as_java_writes_them(value: float, text: str) -> None:
    assert text_of(value) == text


def test_the_topic_settings_we_honour_are_fields_of_topic_config() -> None:
    honoured = {key.attribute for key in definitions.TOPIC.values() if key.effect is Effect.HONOURED and not key.hidden}
    assert honoured <= set(TopicConfig.__struct_fields__)
    for key in definitions.TOPIC.values():
        if key.attribute in honoured:
            default = getattr(TopicConfig(), key.attribute)
            assert default == (frozenset(key.default) if isinstance(key.default, tuple) else key.default)


def test_importing_the_configuration_is_light() -> None:
    script = "import sys; import barnabas.config.broker; print(' '.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert {"asyncio", "json", "logging", "socket", "urllib"}.isdisjoint(loaded)
