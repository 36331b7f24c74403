"""The topics that a source creates, by the groups of its config."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from barnabas.client.results import NewTopic
from barnabas.connect.catalog import Kind
from barnabas.connect.config_def import ConfigError
from barnabas.connect.definitions import connector
from barnabas.connect.topic_creation import TopicCreation

DEFAULTS = {"topic.creation.default.partitions": "3", "topic.creation.default.replication.factor": "-1"}
SOURCE = {"name": "s", "connector.class": "FileStreamSource"}


def test_a_config_that_says_nothing_leaves_topics_to_the_broker() -> None:
    assert TopicCreation({}, {}).wanted("t") is None
    assert TopicCreation(DEFAULTS, {"topic.creation.enable": "false"}).wanted("t") is None


def test_the_first_group_that_includes_a_topic_counts() -> None:
    config = {
        **DEFAULTS,
        "topic.creation.groups": "small,kept",
        "topic.creation.small.include": "a.*, b",
        "topic.creation.small.exclude": "ab.*",
        "topic.creation.small.partitions": "1",
        "topic.creation.kept.include": ".*b.*",
        "topic.creation.kept.replication.factor": "2",
        "topic.creation.kept.cleanup.policy": "compact",
    }
    found = TopicCreation(config, {})
    assert found.wanted("a1") == NewTopic("a1", 1, -1, {})
    assert found.wanted("b") == NewTopic("b", 1, -1, {})
    assert found.wanted("ab1") == NewTopic("ab1", 3, 2, {"cleanup.policy": "compact"})
    assert found.wanted("z") == NewTopic("z", 3, -1, {})


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"topic.creation.groups": ""}, "topic.creation.default.replication.factor"),
        ({**DEFAULTS, "topic.creation.groups": "a"}, "topic.creation.a.include"),
        ({**DEFAULTS, "topic.creation.default.partitions": "0"}, "topic.creation.default.partitions"),
        ({**DEFAULTS, "topic.creation.default.exclude": "(", }, "topic.creation.default.exclude"),
    ],
)  # fmt: skip
def test_a_wrong_group_is_an_error_of_its_key(config: Mapping[str, str], key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        TopicCreation(config, {})
    judged = connector({}, Kind.SOURCE, config).validate({**SOURCE, **config})
    assert judged[key].errors
