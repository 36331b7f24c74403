"""Records of topics come into Delta tables, each of them once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from deltalake import DeltaTable

from barnabas.connect.plugins.delta import delta_table as library
from barnabas.engine.jobs import Job
from tests.connect.runtime.tasks import JSON, STRINGS, Tasks
from tests.connect.runtime.test_kills import die_once
from tests.waiting import wait_until

WORKER = {**JSON, "key.converter": STRINGS["key.converter"]}


def sink(tasks: Tasks, task: int = 0, tasks_in_all: int = 1, **config: str) -> Job:
    """A job that commits what is there at once; a key with an empty value is left out."""
    given = {"store.url": str(tasks.folder / "lake"), "topics": tasks.topic, "flush.interval.ms": "1"}
    given |= {key.replace("__", "."): each for key, each in config.items()}
    chosen = {key: each for key, each in given.items() if each}
    return tasks.job("barnabas.connect.DeltaSink", "sink", chosen, WORKER, task=task, tasks=tasks_in_all)


def table(tasks: Tasks, name: str | None = None) -> DeltaTable:
    return DeltaTable(tasks.folder / "lake" / (name or tasks.topic))


def rows(tasks: Tasks, name: str | None = None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table(tasks, name).to_pyarrow_table().to_pylist()
    return sorted(found, key=str)


def objects(*ids: int) -> list[str]:
    return [json.dumps({"id": each}) for each in ids]


def ids(tasks: Tasks) -> list[int]:
    return sorted(each["id"] for each in rows(tasks))


def test_records_become_rows(tasks: Tasks) -> None:
    tasks.create_topic()
    tasks.produce('{"id":1,"name":"Ada","address":{"city":"Bern"},"tags":["x"]}', '{"id":2,"name":null}')
    with tasks.running(sink(tasks)) as task:
        tasks.until(lambda: tasks.committed() == {0: (2, "")}, task, "the offset was not committed")
    assert rows(tasks) == [
        {"id": 1, "name": "Ada", "address": {"city": "Bern"}, "tags": ["x"]},
        {"id": 2, "name": None, "address": None, "tags": None},
    ]
    assert table(tasks).transaction_version(f"{tasks.name}/{tasks.topic}/0") == 2


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", ["create", "commit", "offsets"])
def test_a_task_that_dies_writes_no_row_twice(tasks: Tasks, monkeypatch: pytest.MonkeyPatch, step: str, *, after: bool) -> None:
    tasks.create_topic(2)
    tasks.produce(*objects(1, 2))
    tasks.produce(*objects(3), partition=1)
    owner: Any = library if step == "create" else library.Delta
    with monkeypatch.context() as dying:
        died = die_once(dying, owner, step, after=after)
        task = tasks.start(sink(tasks))
        wait_until(lambda: died and task.failure() is not None, "it did not die")
        tasks.stop(task)
    tasks.produce(*objects(4))
    with tasks.running(sink(tasks)) as again:
        tasks.until(lambda: tasks.committed(2) == {0: (3, ""), 1: (1, "")}, again, "the sink did not go on")
    assert ids(tasks) == [1, 2, 3, 4]
