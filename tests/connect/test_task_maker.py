"""Classes that are asked for tasks: their errors, and when these end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.connect import catalog, sink
from barnabas.connect.errors import ConnectError
from barnabas.connect.functions import connector_class
from barnabas.connect.herder.planning import Kinds, works
from barnabas.connect.leading import task_maker
from barnabas.connect.leading.task_maker import TaskMaker
from barnabas.connect.references import Resolver
from barnabas.connect.runtime.opening import task_of
from barnabas.connect.standalone import job_of

CONFIG = {"name": "c", "connector.class": "FileStreamSource"}


class Immediate:
    """A thread whose work is done when `start` returns."""

    def __init__(self, *, target: Callable[..., None], args: tuple[Any, ...], name: str, daemon: bool) -> None:
        self._work = partial(target, *args)

    def start(self) -> None:
        self._work()


def test_an_error_ends_with_the_try_that_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Exception | list[dict[str, str]]] = [ConnectError("the database is away"), [CONFIG]]

    def task_configs(*_: object) -> list[dict[str, str]]:
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(task_maker, "task_configs", task_configs)
    monkeypatch.setattr(task_maker, "threading", SimpleNamespace(Thread=Immediate))
    maker, later_s = TaskMaker({}, Resolver({}), threading.Event()), float("inf")
    assert maker.tasks("c", CONFIG, 0.0) is None
    assert maker.failures() == {"c": "the database is away"}
    assert maker.tasks("c", CONFIG, 0.0) is None  # its pause is not over
    assert maker.tasks("c", CONFIG, later_s) == [CONFIG]
    assert maker.failures() == {}


@pytest.mark.parametrize(("frames", "needs_spark"), [("arrow", False), ("spark", True)])
def test_the_work_of_a_task_says_whether_it_needs_spark(monkeypatch: pytest.MonkeyPatch, frames: Any, needs_spark: bool) -> None:
    @sink(topics="t", frames=frames)
    def show(records: object, identity: object) -> None: ...

    mine = catalog.Plugin("example.Show", catalog.Kind.SINK, (), "1", lambda: show)
    monkeypatch.setattr(catalog, "_installed", lambda: (*catalog.BUILT_IN, mine))
    monkeypatch.setattr(task_maker, "threading", SimpleNamespace(Thread=Immediate))
    maker = TaskMaker({}, Resolver({}), threading.Event())
    config = {"name": "c", "connector.class": "example.Show", "topics": "t"}
    maker.tasks("c", config, 0.0)
    tasks = maker.tasks("c", config, 0.0)
    assert tasks is not None
    [work] = works("c", tasks, Kinds("example.Show", "sink"), {}, needs_spark=maker.needs_spark("c")).values()
    assert work.needs_spark is needs_spark


def test_a_task_that_needs_spark_is_not_opened_without_it() -> None:
    @sink(topics="t", frames="spark")
    def show(records: object, identity: object) -> None: ...

    cls = connector_class(show)
    with pytest.raises(ConnectError, match="show needs Spark, and this process has no session"):
        task_of(job_of(cls, {}), {"bootstrap.servers": "127.0.0.1:1"}, cls(), logging.getLogger("tests"))  # type: ignore[arg-type]  # it is a sink
