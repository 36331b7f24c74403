"""Classes that are asked for tasks: their errors, and when these end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.connect.errors import ConnectError
from barnabas.connect.leading import task_maker
from barnabas.connect.leading.task_maker import TaskMaker
from barnabas.connect.references import Resolver

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
