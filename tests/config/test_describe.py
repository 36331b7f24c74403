"""What DescribeConfigs tells of a topic: every key has a value, set or not."""

from __future__ import annotations

from barnabas.config import definitions
from barnabas.config.broker import BrokerConfig
from barnabas.config.describe import Layers, broker_entries, topic_entries


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
