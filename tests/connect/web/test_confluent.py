"""Configs of Confluent's sink of HTTP work unchanged."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

import pytest

from barnabas.connect.config_types import ConfigError
from barnabas.connect.plugins.dialects.confluent_http import ConfluentHttpSink
from barnabas.connect.runtime.opening import config_of
from barnabas.engine.jobs import Job
from tests.connect.files.test_source import JSON
from tests.connect.runtime.tasks import Tasks
from tests.connect.web.conftest import Reply, WebServer
from tests.waiting import wait_until

CLASS = "io.confluent.connect.http.HttpSinkConnector"
# the first example of its documentation has these keys, and an address
QUICKSTART = {
    "tasks.max": "1", "confluent.topic.bootstrap.servers": "localhost:9092", "confluent.topic.replication.factor": "1",
    "reporter.bootstrap.servers": "localhost:9092", "reporter.result.topic.name": "success-responses",
    "reporter.result.topic.replication.factor": "1", "reporter.error.topic.name": "error-responses",
    "reporter.error.topic.replication.factor": "1",
}  # fmt: skip


def sink(tasks: Tasks, web: WebServer, config: Mapping[str, str]) -> Job:
    given = {"http.api.url": web.url + "/messages", "topics": tasks.topic, "retry.backoff.ms": "1", **QUICKSTART}
    return tasks.job(CLASS, "sink", given | dict(config), JSON)


def is_done(tasks: Tasks, count: int) -> bool:
    return tasks.committed().get(0, (0, ""))[0] == count


def test_the_example_of_its_documentation(tasks: Tasks, web: WebServer) -> None:
    tasks.create_topic()
    tasks.produce('{"a": 1}', '{"a": 2}')
    with tasks.running(sink(tasks, web, {})) as task:
        tasks.until(lambda: is_done(tasks, 2), task, "the records are not there")
    assert [(each.method, each.path, each.body) for each in web.calls] == [
        ("POST", "/messages", b'{"a":1}'), ("POST", "/messages", b'{"a":2}'),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"request.body.format": "json", "batch.max.size": "3"}, [b'[{"a":1},{"a":2}]']),
        ({"batch.max.size": "3", "batch.prefix": "<", "batch.suffix": ">", "batch.separator": ";"}, [b'<{"a":1};{"a":2}>']),
        ({"batch.max.size": "3"}, [b'{"a":1},{"a":2}']),
        ({"regex.patterns": r'"a":(\d)~^\{', "regex.replacements": '"b":$1~{_'}, [b'{_"b":1}', b'{_"b":2}']),
        ({"request.body.format": "json", "batch.json.as.array": "true"}, [b'[{"a":1}]', b'[{"a":2}]']),
    ],
)
def test_bodies(tasks: Tasks, web: WebServer, config: Mapping[str, str], expected: list[bytes]) -> None:
    tasks.create_topic()
    tasks.produce('{"a": 1}', '{"a": 2}')
    with tasks.running(sink(tasks, web, config)) as task:
        tasks.until(lambda: is_done(tasks, 2), task, "the records are not there")
    assert [each.body for each in web.calls] == expected


def test_method_headers_and_log_in(tasks: Tasks, web: WebServer) -> None:
    tasks.create_topic()
    tasks.produce("1")
    config = {
        "request.method": "put", "headers": "Content-Type:application/vnd.x+json;X-Team: a", "header.separator": ";",
        "auth.type": "basic", "connection.user": "admin", "connection.password": "password",
    }  # fmt: skip
    with tasks.running(sink(tasks, web, config)) as task:
        tasks.until(lambda: is_done(tasks, 1), task, "the record is not there")
    (call,) = web.calls
    assert (call.method, call.headers["content-type"], call.headers["x-team"]) == ("PUT", "application/vnd.x+json", "a")
    assert call.headers["authorization"] == "Basic YWRtaW46cGFzc3dvcmQ="


@pytest.mark.parametrize("behaviour", ["log", "ignore"])
def test_refused_records_are_left_out(tasks: Tasks, web: WebServer, behaviour: str, caplog: pytest.LogCaptureFixture) -> None:
    web.answer = lambda call: Reply(status=400 if call.body == b"2" else 200)
    tasks.create_topic()
    tasks.produce("1", "2", "3")
    with (
        caplog.at_level(logging.WARNING),
        tasks.running(sink(tasks, web, {"behavior.on.error": behaviour, "max.retries": "2"})) as task,
    ):
        tasks.until(lambda: is_done(tasks, 3), task, "the records are not there")
    assert [each.body for each in web.calls] == [b"1", b"2", b"2", b"2", b"3"]
    assert "answers 400 Bad Request, after 3 tries" in caplog.text


def test_a_refused_record_ends_the_task(tasks: Tasks, web: WebServer) -> None:
    web.answer = lambda call: Reply(status=400 if call.body == b"2" else 200)
    tasks.create_topic()
    tasks.produce("1", "2")
    task = tasks.start(sink(tasks, web, {"max.retries": "0"}))
    wait_until(lambda: task.failure() is not None, "the task does not end")
    assert "answers 400 Bad Request, after 1 tries" in str(task.failure())
    assert [each.body for each in web.calls] == [b"1", b"2"]


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"http.api.url": "ftp://x"}, "Invalid value ftp://x for configuration http.api.url"),
        ({"request.method": "GET"}, "for configuration request.method"),
        ({"retry.on.status.codes": "4x"}, "Invalid value 4x for configuration retry.on.status.codes"),
        ({"auth.type": "BASIC"}, "connection.user is needed if auth.type is BASIC"),
        ({"http.proxy.host": "proxy"}, "This key is not supported: requests go to the server itself"),
        ({"batch.key.pattern": "${key}"}, "This key is not supported: a request has records of one topic"),
        ({"headers": "nonsense"}, "Invalid value nonsense for configuration headers"),
        ({"regex.patterns": "a~b", "regex.replacements": "c"}, "there are 2 regex.patterns"),
        ({"regex.patterns": "(", "regex.replacements": "c"}, "for configuration regex.patterns"),
        (
            {"regex.patterns": "a", "regex.replacements": "$1"},
            "Invalid value $1 for configuration regex.replacements: No group 1",
        ),
        (
            {"regex.patterns": "a", "regex.replacements": "\\"},
            "for configuration regex.replacements: character to be escaped is missing",
        ),
        (
            {"regex.patterns": "a{99999999999}", "regex.replacements": "b"},
            "for configuration regex.patterns: the repetition number is too large",
        ),
        ({"headers": "A: 1|2;B: 3", "header.separator": ";"}, "for configuration headers: a header cannot have |"),
        ({"http.api.url": "http://x/${nonsense}"}, "for configuration http.api.url"),
    ],
)
def test_what_is_wrong_is_said_by_the_key_that_was_written(config: Mapping[str, str], says: str) -> None:
    given: dict[str, Any] = {"http.api.url": "http://127.0.0.1:1/x", "topics": "t", **config}
    with pytest.raises(ConfigError) as caught:
        config_of(ConfluentHttpSink(), given)
    assert says in str(caught.value)
    assert "http.headers" not in str(caught.value)
    assert json.dumps(str(caught.value)).count("http.url") == 0
