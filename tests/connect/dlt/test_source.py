"""Sources of dlt in topics."""

from __future__ import annotations

import datetime
import json
import sqlite3
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from confluent_kafka import Consumer

from barnabas.connect.plugins.dlt_source import extraction
from barnabas.connect.plugins.dlt_source.source import DltSource
from tests.connect.dlt import sources
from tests.connect.runtime.tasks import JSON, Tasks
from tests.waiting import wait_until

SOURCE = "barnabas.DltSource"
HERE = "tests.connect.dlt.sources"


def config_of(tasks: Tasks, source: str, **arguments: str) -> dict[str, str]:
    return {
        "dlt.source": source, "topic.prefix": f"{tasks.topic}-", "poll.interval.ms": "100",
        **{f"dlt.arg.{name}": value for name, value in arguments.items()},
    }  # fmt: skip


def records(tasks: Tasks, resource: str) -> list[tuple[Any, Any]]:
    """Keys and values that are committed."""
    settings = {**tasks.settings, "group.id": "readers", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.partition.eof": True})
    topic = f"{tasks.topic}-{resource}"
    if topic not in consumer.list_topics().topics:
        consumer.close()
        return []
    consumer.subscribe([topic])
    found = []
    while True:
        message = consumer.poll(10)
        if message is None or message.error():
            break
        key, value = message.key(), message.value()
        found.append((key and json.loads(key), value and json.loads(value)))
    consumer.close()
    return found


def user(number: int, minute: int, **more: Any) -> dict[str, Any]:
    return {"id": number, "changed": datetime.datetime(2025, 1, 1, 0, minute, tzinfo=datetime.UTC), **more}


@pytest.fixture(autouse=True)
def _fresh() -> None:
    sources.ROWS[:], sources.CALLS[:] = [], []


def test_changes_come_once_and_the_state_outlasts_the_task(tasks: Tasks) -> None:
    sources.ROWS[:] = [user(1, 1), user(2, 2, deleted=False)]
    job = tasks.job(SOURCE, "source", config_of(tasks, f"{HERE}:shop", first="1") | {"dlt.resources": "users"}, JSON)
    with tasks.running(job) as task:
        tasks.until(lambda: len(records(tasks, "users")) == 2, task, "the rows did not come")
    sources.ROWS[:] = [user(0, 9), user(2, 2), user(1, 3, deleted=True), user(3, 4, deleted=False)]
    calls = len(sources.CALLS)
    with tasks.running(job) as task:
        tasks.until(lambda: len(records(tasks, "users")) == 4, task, "the changes did not come")
        tasks.until(lambda: len(sources.CALLS) > calls + 1, task, "no other round came")
    assert sources.CALLS[calls] == datetime.datetime(2025, 1, 1, 0, 2, tzinfo=datetime.UTC)
    found = records(tasks, "users")
    assert [key for key, _ in found] == [1, 2, 1, 3]
    assert [value and value["id"] for _, value in found] == [1, 2, None, 3]


def test_rows_stay_nested(tasks: Tasks) -> None:
    job = tasks.job(
        SOURCE, "source", config_of(tasks, f"{HERE}:shop") | {"dlt.resources": "items", "poll.interval.ms": "-1"}, JSON
    )
    with tasks.running(job) as task:
        tasks.until(lambda: len(records(tasks, "items")) == 2, task, "the rows did not come")
    (_, one), (_, two) = records(tasks, "items")
    assert one["tags"] == [{"name": "a"}]
    assert one["id"] == "00000000-0000-0000-0000-000000000001"
    assert two["more"] == {"deep": [1, 2]}
    assert (one["any"], two["any"]) == ("1", '{"x":1}')


def test_rows_choose_their_topic(tasks: Tasks) -> None:
    job = tasks.job(SOURCE, "source", config_of(tasks, f"{HERE}:mixed") | {"poll.interval.ms": "-1"}, JSON)
    with tasks.running(job) as task:
        tasks.until(lambda: records(tasks, "dogs"), task, "the rows did not come")
    assert records(tasks, "cats") == [({"a": 1, "b": 2}, {"kind": "cats", "a": 1, "b": 2})]


def test_a_round_that_fails_writes_nothing(tasks: Tasks) -> None:
    with tasks.running(tasks.job(SOURCE, "source", config_of(tasks, f"{HERE}:broken"), JSON)) as task:
        wait_until(lambda: task.failure() is not None, "it did not fail")
        assert "the service is away" in (task.failure() or "")
    assert records(tasks, "broken") == []


class Answers(BaseHTTPRequestHandler):
    """An interface with two pages of posts."""

    def do_GET(self) -> None:
        page = "page=2" in self.path
        body = json.dumps(
            {"items": [{"id": 2 if page else 1, "tags": ["a"]}], "next": None if page else "/posts?page=2"}
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def test_the_rest_source_of_dlt(tasks: Tasks) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    spec = {
        "client": {
            "base_url": f"http://127.0.0.1:{server.server_port}",
            "paginator": {"type": "json_link", "next_url_path": "next"},
        },
        "resources": [{"name": "posts", "primary_key": "id", "endpoint": {"path": "posts", "data_selector": "items"}}],
    }
    config = config_of(tasks, "dlt.sources.rest_api:rest_api_source", config=json.dumps(spec)) | {"poll.interval.ms": "-1"}
    try:
        with tasks.running(tasks.job(SOURCE, "source", config, JSON)) as task:
            tasks.until(lambda: len(records(tasks, "posts")) == 2, task, "the posts did not come")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert records(tasks, "posts") == [(n, {"id": n, "tags": ["a"]}) for n in (1, 2)]


@pytest.mark.filterwarnings("ignore:`detect_precision_hints`")  # dlt warns of its own argument
@pytest.mark.parametrize("backend", ["sqlalchemy", "pyarrow"])
def test_the_databases_of_dlt(tasks: Tasks, backend: str) -> None:
    path = tasks.folder / "shop.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT)")
        database.execute("INSERT INTO orders VALUES (1, 'tea'), (2, 'coffee')")
    database.close()
    config = config_of(tasks, "dlt.sources.sql_database:sql_database", credentials=f"sqlite:///{path}", backend=backend)
    with tasks.running(tasks.job(SOURCE, "source", config | {"poll.interval.ms": "-1"}, JSON)) as task:
        tasks.until(lambda: len(records(tasks, "orders")) == 2, task, "the rows did not come")
    assert records(tasks, "orders") == [(1, {"id": 1, "item": "tea"}), (2, {"id": 2, "item": "coffee"})]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("no_such_module:x", "the module no_such_module of dlt.source cannot be imported"),
        (f"{HERE}:absent", "tests.connect.dlt.sources has no function absent"),
    ],
)
def test_functions_that_are_not_there_are_refused(source: str, text: str) -> None:
    assert text in DltSource.validate({"dlt.source": source})["dlt.source"][0]


def test_a_missing_package_says_what_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extraction, "find_spec", lambda _: None)
    assert DltSource.validate({"dlt.source": "a:b"}) == {"dlt.source": ["dlt is not installed here: pip install 'barnabas[dlt]'"]}


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"dlt.source": f"{HERE}:nothing"}, "nothing gives int, and no source or resource of dlt"),
        ({"dlt.source": f"{HERE}:shop", "dlt.resources": "cats"}, "the source has no resource cats; it has users, items"),
        ({"dlt.source": f"{HERE}:nothing", "dlt.arg.x": "1"}, "nothing does not take the arguments dlt.arg"),
    ],
)
def test_sources_that_do_not_fit_fail_with_a_reason(tasks: Tasks, config: dict[str, str], text: str) -> None:
    with tasks.running(tasks.job(SOURCE, "source", config, JSON)) as task:
        wait_until(lambda: task.failure() is not None, "it did not fail")
        assert text in (task.failure() or "")
