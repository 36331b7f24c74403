"""Records of topics go to an HTTP interface."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from barnabas.connect.config_types import ConfigError
from barnabas.connect.plugins.http.client import Client
from barnabas.connect.plugins.http.lanes import ORDERS, Sent, lanes_of
from barnabas.connect.plugins.http.sink import HttpSink
from barnabas.connect.runtime.opening import config_of
from barnabas.connect.runtime.source_offsets import records_of
from barnabas.engine.jobs import Job
from tests.connect.files.test_source import JSON
from tests.connect.runtime.tasks import Tasks
from tests.connect.runtime.test_kills import die_once
from tests.connect.web.conftest import Call, Reply, WebServer
from tests.waiting import wait_until


def sink(tasks: Tasks, web: WebServer, path: str = "/x", **config: str) -> Job:
    given = {"http.url": web.url + path, "topics": tasks.topic, "retry.backoff.ms": "5"}
    given |= {key.replace("__", "."): each for key, each in config.items()}
    return tasks.job("barnabas.HttpSink", "sink", given, JSON)


def bodies(web: WebServer) -> list[Any]:
    return [json.loads(each.body) for each in web.calls]


def objects(*names: int) -> list[str]:
    return [json.dumps({"id": each}) for each in names]


def done(tasks: Tasks, count: int) -> bool:
    return tasks.committed() == {0: (count, "")}


def test_each_record_is_a_request_with_its_own_key(tasks: Tasks, web: WebServer) -> None:
    tasks.create_topic()
    tasks.produce(*objects(1, 2), key="a/b")
    job = sink(tasks, web, "/${topic}/${key}/${value.id}", http__method="PUT")
    with tasks.running(job) as task:
        tasks.until(lambda: done(tasks, 2), task, "the records were not taken")
    assert [(each.method, each.path) for each in web.calls] == [("PUT", f"/{tasks.topic}/a%2Fb/{each}") for each in (1, 2)]
    assert bodies(web) == [{"id": 1}, {"id": 2}]
    assert [each.headers["idempotency-key"] for each in web.calls] == [f"{tasks.name}/{tasks.topic}-0-{each}" for each in (0, 1)]
    assert web.calls[0].headers["content-type"] == "application/json"


def test_batches_are_arrays(tasks: Tasks, web: WebServer) -> None:
    tasks.create_topic()
    tasks.produce(*objects(1, 2, 3))
    with tasks.running(sink(tasks, web, batch__max__size="2")) as task:
        tasks.until(lambda: done(tasks, 3), task, "the records were not taken")
    assert bodies(web) == [[{"id": 1}, {"id": 2}], [{"id": 3}]]
    assert web.calls[0].headers["idempotency-key"] == f"{tasks.name}/{tasks.topic}-0-0/{tasks.topic}-0-1/2"


@pytest.mark.parametrize("size", ["1", "4"])
def test_records_that_the_server_refuses_are_dead_letters_and_others_go_once(tasks: Tasks, web: WebServer, size: str) -> None:
    tasks.create_topic()
    tasks.produce(*objects(1, 2, 3, 4))
    taken: list[int] = []

    def answer(call: Call) -> Reply:
        found = json.loads(call.body)
        rows = [each["id"] for each in (found if isinstance(found, list) else [found])]
        if 3 in rows:
            return Reply(status=422)
        taken.extend(rows)
        return Reply()

    web.answer = answer
    letters = f"dlq-{tasks.name}"
    config = {
        "batch.max.size": size, "errors.tolerance": "all", "errors.deadletterqueue.topic.name": letters,
        "errors.deadletterqueue.context.headers.enable": "true",
    }  # fmt: skip
    with tasks.running(sink(tasks, web, **config)) as task:
        tasks.until(lambda: done(tasks, 4), task, "the records were not taken")
    assert taken == [1, 2, 4]
    (letter,) = records_of(tasks._client, letters)
    headers = {name: bytes(value or b"").decode() for name, value in letter.headers}
    assert headers["__connect.errors.exception.message"] == f"POST {web.url}/x answers 422 Unprocessable Entity"


def test_a_refused_record_ends_the_task_by_default(tasks: Tasks, web: WebServer) -> None:
    tasks.create_topic()
    tasks.produce(*objects(1))
    web.answer = lambda _: Reply(status=400)
    task = tasks.start(sink(tasks, web))
    wait_until(lambda: task.failure() is not None, "it did not fail")
    assert task.failure() == f"{tasks.topic}-0 offset 0 cannot be written: POST {web.url}/x answers 400 Bad Request"


def test_a_busy_server_gets_the_rest_of_the_batch_again(tasks: Tasks, web: WebServer) -> None:
    tasks.create_topic()
    tasks.produce(*objects(1, 2, 3))
    codes = [200, 503, 429, 200, 200]
    web.answer = lambda _: Reply(status=codes[len(web.calls) - 1], headers={"Retry-After": "0"})
    with tasks.running(sink(tasks, web)) as task:
        tasks.until(lambda: done(tasks, 3), task, "the records were not taken")
    assert [each["id"] for each in bodies(web)] == [1, 2, 2, 2, 3]


def test_a_server_that_stays_away_ends_the_task(tasks: Tasks, web: WebServer) -> None:
    tasks.create_topic()
    tasks.produce(*objects(1))
    web.answer = lambda _: Reply(status=502)
    task = tasks.start(sink(tasks, web, max__retries="2"))
    wait_until(lambda: task.failure() is not None, "it did not fail")
    assert task.failure() == f"POST {web.url}/x answers 502 Bad Gateway, after 3 tries"


@pytest.mark.parametrize("after", [False, True])
def test_a_request_that_comes_again_after_a_kill_has_its_key(
    tasks: Tasks, web: WebServer, monkeypatch: pytest.MonkeyPatch, *, after: bool
) -> None:  # fmt: skip
    tasks.create_topic()
    tasks.produce(*objects(1, 2, 3))
    with monkeypatch.context() as dying:
        died = die_once(dying, Client, "send", after=after)
        task = tasks.start(sink(tasks, web, batch__max__size="2"))
        wait_until(lambda: died and task.failure() is not None, "it did not die")
        tasks.stop(task)
    tasks.produce(*objects(4))
    with tasks.running(sink(tasks, web, batch__max__size="2")) as again:
        tasks.until(lambda: done(tasks, 4), again, "the sink did not go on")
    by_key = {each.headers["idempotency-key"]: json.loads(each.body) for each in web.calls}
    assert list(by_key.values()) == [[{"id": 1}, {"id": 2}], [{"id": 3}], [{"id": 4}]]
    assert len(web.calls) == 3 + after


@pytest.mark.parametrize("behavior", ["ignore", "delete", "fail"])
def test_records_without_a_value(tasks: Tasks, web: WebServer, behavior: str) -> None:
    tasks.create_topic()
    tasks.produce(None, key="a")
    task = tasks.start(sink(tasks, web, "/${key}", behavior__on__null__values=behavior))
    if behavior == "fail":
        wait_until(lambda: task.failure() is not None, "it did not fail")
        assert "it has no value" in str(task.failure())
    else:
        tasks.until(lambda: done(tasks, 1), task, "the record was not taken")
        assert [(each.method, each.path) for each in web.calls] == ([("DELETE", "/a")] if behavior == "delete" else [])


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"http.url": "x"}, "a URL that begins"), ({"http.url": "http://x/${nope}"}, "places are topic"),
        ({"http.url": "http://x/${key}", "batch.max.size": "2"}, "batch.max.size must be 1"),
        ({"auth.type": "oauth2"}, "oauth2.token.url is needed"), ({"max.retries": "-2"}, "at least -1"),
    ],
)  # fmt: skip
def test_a_wrong_config_is_refused(config: Mapping[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        config_of(HttpSink(), {"http.url": "http://x", **config})


def keyed(tasks: Tasks, count: int, keys: int) -> None:
    for number in range(count):
        tasks.produce(*objects(number), key=f"k{number % keys}")


@pytest.mark.parametrize(("order", "config"), [("key", {}), ("partition", {}), ("none", {}), ("key", {"batch.max.size": "3"})])
def test_requests_are_in_flight_at_once_and_keep_an_order(
    tasks: Tasks, web: WebServer, order: str, config: dict[str, str]
) -> None:
    tasks.create_topic()
    keyed(tasks, 24, 6)
    seen: list[list[int]] = []
    both = threading.Barrier(2, timeout=30)
    lock = threading.Lock()

    def answer(call: Call) -> Reply:
        with lock:
            found = json.loads(call.body)
            seen.append([each["id"] for each in (found if isinstance(found, list) else [found])])
            first = len(seen) <= 2
        if first and order != "partition":
            both.wait()  # the second one comes while the first one waits
        return Reply()

    web.answer = answer
    job = sink(tasks, web, max__in__flight="4", **{"max.in.flight.order": order, **config})
    with tasks.running(job) as task:
        tasks.until(lambda: done(tasks, 24), task, "the records were not taken")
    numbers = [each for some in seen for each in some]
    assert sorted(numbers) == list(range(24))
    if order == "partition":
        assert numbers == list(range(24))
    if order == "key":
        by_key = [[each for each in numbers if each % 6 == key] for key in range(6)]
        assert all(each == sorted(each) for each in by_key)


def test_a_record_that_was_sent_is_not_sent_again_with_requests_in_flight(tasks: Tasks, web: WebServer) -> None:
    tasks.create_topic()
    keyed(tasks, 12, 6)
    failed: list[int] = []
    lock = threading.Lock()

    def answer(call: Call) -> Reply:
        number = json.loads(call.body)["id"]
        with lock:
            if number in {3, 7} and number not in failed:
                failed.append(number)
                return Reply(status=503)
        return Reply(status=400 if number == 5 else 200)

    web.answer = answer
    config = {"errors.tolerance": "all", "max.in.flight": "3"}
    with tasks.running(sink(tasks, web, **config)) as task:
        tasks.until(lambda: done(tasks, 12), task, "the records were not taken")
    sent = [each["id"] for each in bodies(web)]
    assert {each: sent.count(each) for each in range(12) if each not in {3, 5, 7}} == dict.fromkeys(
        {0, 1, 2, 4, 6, 8, 9, 10, 11}, 1
    )
    assert {sent.count(3), sent.count(7)} == {2}


def test_lanes_of_a_batch_are_always_the_same() -> None:
    rows = [Sent(row, ("t", row % 3, row), None if row % 4 == 0 else f"k{row % 5}", None, b"") for row in range(40)]
    for order in ORDERS:
        lanes = lanes_of(rows, order=order, most=4, size=3)
        assert lanes == lanes_of(rows, order=order, most=4, size=3)
        assert sorted(each.row for lane in lanes for some in lane for each in some) == list(range(40))
        assert max(len(some) for lane in lanes for some in lane) <= 3
    assert [[each.row for each in some] for some in lanes_of(rows, order="none", most=1, size=40)[0]] == [list(range(40))]
