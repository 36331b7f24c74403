"""The settings of a topic in DescribeConfigs: every key has a value, set or not."""

from __future__ import annotations

from barnabas.config import definitions
from barnabas.config.broker import BrokerConfig
from barnabas.config.describe import Layers, TopicEntries, broker_entries, topic_entries


def layers(**settings: str) -> Layers:
    config, _ = BrokerConfig.from_properties({name.replace("_", "."): value for name, value in settings.items()})
    return Layers(config, {}, {})


def test_every_key_of_a_topic_without_settings_is_told_with_its_default() -> None:
    told = {entry.name: entry.value for entry in topic_entries({}, layers())}
    assert set(told) == {key.name for key in definitions.TOPIC.values() if not key.hidden}
    assert told["cleanup.policy"] == "delete"
    assert told["leader.replication.throttled.replicas"] == ""
    assert told["follower.replication.throttled.replicas"] == ""


def test_lists_are_told_in_the_order_they_were_given() -> None:
    throttled = {"leader.replication.throttled.replicas": "1:2,0:1"}
    told = {entry.name: entry.value for entry in topic_entries(throttled, layers(log_cleanup_policy="delete,compact"))}
    assert told["leader.replication.throttled.replicas"] == "1:2,0:1"
    assert told["cleanup.policy"] == "delete,compact"


def test_what_is_taken_from_another_key_has_no_value_of_its_own() -> None:
    keys = ["advertised.listeners", "log.dirs", "listeners"]
    told = {entry.name: entry.value for entry in broker_entries(layers(listeners="PLAINTEXT://127.0.0.1:9"), keys)}
    assert told == {"advertised.listeners": None, "log.dirs": None, "listeners": "PLAINTEXT://127.0.0.1:9"}
    told = {entry.name: entry.value for entry in broker_entries(layers(log_dirs="/b,/a"), keys[1:2])}
    assert told == {"log.dirs": "/b,/a"}


def test_topics_share_what_they_do_not_set() -> None:
    over = layers(log_retention_ms="7000", log_segment_bytes="9000000")
    together = TopicEntries(over)
    settings = [
        {},
        {"retention.ms": "5"},
        {"segment.bytes": "2000000"},
        {"internal.segment.bytes": "1000"},
        {"cleanup.policy": "compact", "retention.ms": "6"},
        {},
    ]
    for of_topic in settings:
        assert together.of(of_topic) == topic_entries(of_topic, over)
        assert together.of(of_topic, ["retention.ms"]) == topic_entries(of_topic, over, ["retention.ms"])
    first, last = together.of({}), together.of({"retention.ms": "5"})
    assert [entry.name for entry, other in zip(first, last, strict=True) if entry is not other] == ["retention.ms"]
