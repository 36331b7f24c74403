"""The records of Kafka Connect's topics, as Kafka Connect 4.3.0 wrote them, and what they mean."""

from __future__ import annotations

import json

import pytest

from barnabas.connect.herder.records import BadRecord, Status, Target, decode, encode, target_of, target_value, task_of, topic_of
from barnabas.connect.herder.state import Configs, Statuses

# written by a worker of Kafka Connect 4.3.0
KAFKAS = {
    "session-key": '{"key":"69cHj91ubLDqOFqU5Op5","algorithm":"HmacSHA256","creation-timestamp":1795994106176}',
    "connector-a-b": '{"properties":{"connector.class":"FileStreamSource","file":"/in","topic":"t","name":"a-b"}}',
    "task-a-b-0": '{"properties":{"connector.class":"FileStreamSource","file":"/in","topic":"t","name":"a-b","task.class":"T"}}',
    "commit-a-b": '{"tasks":1}',
    "tasks-fencing-a-b": '{"task-count":1}',
    "target-state-a-b": '{"state":"PAUSED","state.v2":"STOPPED"}',
    "logger-cluster-org.apache.zookeeper": '{"level":"WARN"}',
    "restart-connector-a-b": '{"include-tasks":true,"only-failed":true}',
}
STATUSES = {
    "status-connector-a-b": '{"state":"RUNNING","trace":null,"worker_id":"127.0.0.1:8083","generation":2,"version":"4.3.0"}',
    "status-task-a-b-1": '{"state":"FAILED","trace":"boom","worker_id":"127.0.0.1:8083","generation":5,"version":null}',
    "status-task-a-b-0": '{"state":"RUNNING","trace":null,"worker_id":"127.0.0.1:8083","generation":5}',
    "status-topic-t:connector-a-b": '{"topic":{"name":"t","connector":"a-b","task":0,"discoverTimestamp":1795994428831}}',
}


def records(texts: dict[str, str]) -> dict[str, dict[str, object]]:
    return {key: decode(text.encode()) for key, text in texts.items()}


def test_configs_of_kafka_connect_are_understood() -> None:
    configs = Configs(records(KAFKAS))
    assert list(configs.connectors) == ["a-b"]
    assert configs.connectors["a-b"]["file"] == "/in"
    assert [each["task.class"] for each in configs.tasks("a-b")] == ["T"]
    assert configs.target("a-b") is Target.STOPPED
    assert configs.wants_restart("a-b")
    assert configs.levels == {"org.apache.zookeeper": "WARN"}
    assert configs.task_keys("a-b") == ["task-a-b-0"]


def test_tasks_count_when_they_are_complete() -> None:
    found = records(KAFKAS)
    found["commit-a-b"] = {"tasks": 2}
    assert Configs(found).tasks("a-b") == []
    del found["connector-a-b"]
    found["commit-a-b"] = {"tasks": 1}
    assert Configs(found).tasks("a-b") == []


def test_statuses_of_kafka_connect_are_understood() -> None:
    statuses = Statuses(records(STATUSES))
    assert statuses.connector("a-b") == Status("RUNNING", None, "127.0.0.1:8083", 2, "4.3.0")
    assert {task: each.state for task, each in statuses.tasks("a-b").items()} == {0: "RUNNING", 1: "FAILED"}
    assert list(statuses.topics("a-b")) == ["t"]
    assert statuses.topics("b") == {}
    assert statuses.names() == {"a-b"}


def test_our_records_are_kafkas() -> None:
    assert json.loads(encode(target_value(Target.STOPPED))) == {"state": "PAUSED", "state.v2": "STOPPED"}
    assert json.loads(encode(target_value(Target.STARTED))) == {"state": "STARTED", "state.v2": "STARTED"}
    status = Status("RUNNING", None, "127.0.0.1:8083", 2, "4.3.0")
    assert json.loads(encode(status.value())) == json.loads(STATUSES["status-connector-a-b"])


@pytest.mark.parametrize("value", [None, {}, {"state": "STARTED"}, {"state": "huh"}, {"state.v2": 5}])
def test_a_connector_without_a_target_state_is_started(value: dict[str, object] | None) -> None:
    assert target_of(value) is Target.STARTED


@pytest.mark.parametrize(("key", "found"), [("task-a-1-2", ("a-1", 2)), ("task-a", None), ("task-a-x", None), ("task--3", ("", 3)),
                                            ("tasks-fencing-a", None), ("task-a-" + "9" * 30, None)])  # fmt: skip
def test_the_number_of_a_task_follows_the_last_dash(key: str, found: tuple[str, int] | None) -> None:
    assert task_of(key, "task-") == found


def test_names_may_look_like_keys() -> None:
    assert topic_of("status-topic-a:connector-b:connector-c", "c") == "a:connector-b"
    assert topic_of("status-topic-a:connector-b", "c") is None


@pytest.mark.parametrize("payload", [b"[1]", b"{", b"\xff", b"5"])
def test_other_values_are_refused(payload: bytes) -> None:
    with pytest.raises(BadRecord):
        decode(payload)
