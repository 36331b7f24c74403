"""Records of an HTTP interface come into a topic, each once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from barnabas.connect.config_types import ConfigError
from barnabas.connect.plugins.http.source import HttpSource
from barnabas.connect.plugins.http.templates import at_pointer
from barnabas.connect.runtime.opening import config_of
from barnabas.engine.jobs import Job
from tests.connect.files.test_source import JSON
from tests.connect.runtime.tasks import Tasks
from tests.connect.web.conftest import Call, Reply, WebServer
from tests.waiting import wait_until


def source(tasks: Tasks, web: WebServer, path: str, **config: str) -> Job:
    given = {
        "http.url": web.url + path, "topic": tasks.topic, "poll.interval.ms": "20", "retry.backoff.ms": "5",
        "http.response.list.pointer": "/items",
    }  # fmt: skip
    given |= {key.replace("__", "."): each for key, each in config.items()}
    return tasks.job("barnabas.HttpSource", "source", given, JSON)


def rows(tasks: Tasks) -> list[Any]:
    return [json.loads(each) for each in tasks.values() if each is not None]


def query(call: Call) -> dict[str, str]:
    return {name: each[0] for name, each in parse_qs(urlsplit(call.path).query, keep_blank_values=True).items()}


def items(count: int, first: int = 0) -> list[dict[str, int]]:
    return [{"id": each} for each in range(first, first + count)]


@pytest.mark.parametrize("mode", ["page", "offset", "cursor", "link", "link-header"])
def test_pages_come_once_also_those_that_are_filled_later(tasks: Tasks, web: WebServer, mode: str) -> None:
    there = items(5)

    def answer(call: Call) -> Reply:
        at = int(query(call).get("at") or 0)
        page = there[at : at + 2] if mode != "page" else there[(at - 1) * 2 : at * 2]
        more = at + 2 < len(there)
        body: dict[str, Any] = {"items": page}
        if mode == "cursor":
            body["next"] = at + 2 if more else None
        if mode == "link":
            body["next"] = f"/x?at={at + 2}" if more else None
        return Reply(body, headers={"Link": f'</x?at={at + 2}>; rel="next"'} if mode == "link-header" and more else {})

    web.answer = answer
    path = {"page": "/x?at=${offset.page}", "offset": "/x?at=${offset.start}", "cursor": "/x?at=${offset.cursor}"}.get(mode, "/x")
    config = {"http.page.mode": mode.removesuffix("-header")}
    if mode == "page":
        config["http.page.size"] = "2"
    if mode in {"cursor", "link"}:
        config["http.next.page.pointer"] = "/next"
    with tasks.running(source(tasks, web, path, **config)) as task:
        tasks.until(lambda: rows(tasks) == items(5), task, "the records did not come")
        there += items(2, first=5)
        tasks.until(lambda: rows(tasks) == items(7), task, "later records did not come")
    there += items(1, first=7)
    with tasks.running(source(tasks, web, path, **config)) as task:
        tasks.until(lambda: len(rows(tasks)) >= 8, task, "the source did not go on")
    assert rows(tasks) == items(8)


@pytest.mark.parametrize("order", [1, -1])
def test_times_are_offsets_and_the_last_one_comes_once(tasks: Tasks, web: WebServer, order: int) -> None:
    there = [{"id": 1, "at": "2025-01-01"}, {"id": 2, "at": "2025-01-02"}, {"id": 3, "at": "2025-01-02"}]
    web.answer = lambda call: Reply({"items": [each for each in there if str(each["at"]) >= query(call)["since"]][::order]})
    config = {"http.offset.initial": "since=2025", "http.response.record.offset.pointer": "since=/at"}
    with tasks.running(source(tasks, web, "/x?since=${offset.since}", **config)) as task:
        tasks.until(lambda: len(rows(tasks)) == 3, task, "the records did not come")
        there.append({"id": 4, "at": "2025-01-02"})
        tasks.until(lambda: len(rows(tasks)) == 4, task, "the record did not come")
    there.append({"id": 5, "at": "2025-01-03"})
    with tasks.running(source(tasks, web, "/x?since=${offset.since}", **config)) as task:
        tasks.until(lambda: query(web.calls[-1]) == {"since": "2025-01-03"}, task, "the source did not go on")
    assert sorted(each["id"] for each in rows(tasks)) == [1, 2, 3, 4, 5]


def test_all_pages_of_a_round_are_asked_with_one_offset(tasks: Tasks, web: WebServer) -> None:
    there = [{"id": each, "at": 100 - each} for each in range(5)]

    def answer(call: Call) -> Reply:
        asked = query(call)
        newer = [each for each in there if each["at"] > int(asked["since"])]
        return Reply({"items": newer[int(asked["page"]) * 2 :][:2]})

    web.answer = answer
    config = {
        "http.offset.initial": "since=0,page=0", "http.response.record.offset.pointer": "since=/at", "http.page.mode": "page",
    }  # fmt: skip
    with tasks.running(source(tasks, web, "/x?since=${offset.since}&page=${offset.page}", **config)) as task:
        tasks.until(lambda: web.calls and query(web.calls[-1]) == {"since": "100", "page": "0"}, task, "there is no second round")
        tasks.until(lambda: len(rows(tasks)) >= len(there), task, "the records did not come")
    assert rows(tasks) == there


def test_a_body_and_a_key(tasks: Tasks, web: WebServer) -> None:
    web.answer = lambda call: Reply([{"node": {"id": 7}}] if json.loads(call.body)["after"] == 'a"b' else [])
    config = {
        "http.method": "POST", "http.body": '{"after":"${offset.after}"}', "http.offset.initial": 'after=a"b',
        "http.response.list.pointer": "", "http.response.record.pointer": "/node", "http.response.record.key.pointer": "/node/id",
        "http.headers": "X-A: 1|X-B: b",
    }  # fmt: skip
    with tasks.running(source(tasks, web, "/x", **config)) as task:
        tasks.until(lambda: rows(tasks)[:1] == [{"id": 7}], task, "the record did not come")
    assert web.calls[0].headers["x-b"] == "b"


def test_a_busy_server_is_asked_again_when_it_says(tasks: Tasks, web: WebServer) -> None:
    replies = [Reply(status=503), Reply(status=429, headers={"Retry-After": "0"}), Reply({"items": items(1)})]
    web.answer = lambda _: replies.pop(0) if len(replies) > 1 else replies[0]
    with tasks.running(source(tasks, web, "/x", poll__interval__ms="60000")) as task:
        tasks.until(lambda: rows(tasks) == items(1), task, "the record did not come")
    assert len(web.calls) == 3


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Reply(status=500), "answers 500 Internal Server Error, after 3 tries"), (Reply(status=404), "answers 404 Not Found"),
        (Reply(status=401), "refuses the log-in: 401 Unauthorized"), (Reply(b"<html>"), "the answer is no JSON but bytes"),
        (Reply({"items": 1}), "the answer has no list at the pointer '/items'"),
    ],
)  # fmt: skip
def test_an_error_ends_the_task_in_one_line_without_secrets(tasks: Tasks, web: WebServer, reply: Reply, says: str) -> None:
    tasks.create_topic()
    web.answer = lambda _: reply
    task = tasks.start(source(tasks, web, "/x?key=hunter2", max__retries="2", auth__type="bearer", bearer__token="hunter3"))
    wait_until(lambda: task.failure() is not None, "it did not fail")
    assert says in str(task.failure())
    assert "hunter" not in str(task.failure())


def test_a_server_that_is_away_is_told(tasks: Tasks, web: WebServer) -> None:
    tasks.create_topic()
    job = source(tasks, web, "/x", max__retries="1")
    web.close()
    task = tasks.start(job)
    wait_until(lambda: task.failure() is not None, "it did not fail")
    assert task.failure() == f"GET {web.url}/x has no answer: [Errno 111] Connection refused, after 2 tries"


@pytest.mark.parametrize("kind", ["basic", "bearer", "oauth2"])
def test_log_ins(tasks: Tasks, web: WebServer, kind: str) -> None:
    tokens: list[str] = []

    def answer(call: Call) -> Reply:
        if call.path == "/token":
            assert parse_qs(call.body.decode())["client_secret"] == ["s"]
            tokens.append(f"t{len(tokens)}")
            return Reply({"access_token": tokens[-1], "expires_in": 3600})
        wanted = {"basic": "Basic dTpw", "bearer": "Bearer b", "oauth2": "Bearer t1"}[kind]  # the first token was withdrawn
        return Reply({"items": items(1)}) if call.headers.get("authorization") == wanted else Reply(status=401)

    web.answer = answer
    config = {
        "auth.type": kind, "connection.user": "u", "connection.password": "p", "bearer.token": "b", "oauth2.client.id": "c",
        "oauth2.client.secret": "s", "oauth2.token.url": f"{web.url}/token", "poll.interval.ms": "60000",
    }  # fmt: skip
    with tasks.running(source(tasks, web, "/x", **config)) as task:
        tasks.until(lambda: rows(tasks), task, "the record did not come")
    assert rows(tasks) == items(1)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"http.url": "ftp://x"}, "a URL that begins"), ({"http.url": "http://x/${offset.a}"}, "nothing gives this offset a value"),
        ({"http.page.mode": "page"}, r"neither http\.url nor http\.body has"), ({"http.headers": "x"}, "a header such as"),
        ({"retry.on.status.codes": "5xx"}, "a code such as 429"), ({"auth.type": "basic"}, "connection.user is needed"),
        ({"http.response.list.pointer": "items"}, "a JSON pointer"), ({"http.offset.initial": "x"}, "a name, =, and a value"),
        ({"http.response.record.offset.pointer": "page=/x"}, "an offset of this name itself"),
        ({"http.page.mode": "page", "http.url": "http://x/${offset.page}"}, "http.page.size"),
        ({"http.page.mode": "cursor", "http.url": "http://x/${offset.cursor}"}, "http.next.page.pointer is needed"),
    ],
)  # fmt: skip
def test_a_wrong_config_is_refused(config: Mapping[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        config_of(HttpSource(), {"topic": "t", "http.url": "http://x", **config})


def test_json_pointers() -> None:
    document = {"a/b": [{"~": 1}], "": 2}
    assert [at_pointer(document, each) for each in ("/a~1b/0/~0", "/", "/a~1b/1", "/x/y")] == [1, 2, None, None]
