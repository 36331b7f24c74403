"""Exceptions that may cross a border of processes arrive with their fields: every class of ours that the pipelines can meet."""

from __future__ import annotations

import inspect
import pickle
import pkgutil
from importlib import import_module
from typing import Any

import pytest

import barnabas.client
import barnabas.pipelines
from barnabas.errors import BarnabasError, ErrorCode
from barnabas.pipelines.offsets import OptionError

VALUES: dict[str, Any] = {
    "code": ErrorCode.OFFSET_OUT_OF_RANGE,
    "partition": 3,
    "version": 2,
    "size": 5,
    "limit": 7,
    "position": 8,
    "timeout_ms": 9,
    "batch": 1,
    "lost": 1,
    "of": 2,
    "tasks": 4,
    "last_batch": 5,
    "offset": 6,
    "ours": (1, 2),
    "theirs": None,
    "topics": ("a", "b"),
    "record_errors": [(1, "why")],
    "failures": (),
    "story": ("a", "b"),
    "timestamp": 5,
    "newest": 5,
}


def _classes() -> list[type[BaseException]]:
    for package in (barnabas.client, barnabas.pipelines):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    found: list[type[BarnabasError]] = [BarnabasError]
    for each in found:
        found += [kind for kind in each.__subclasses__() if kind not in found]
    ours = ("barnabas.errors", "barnabas.client", "barnabas.pipelines")
    return [OptionError, *(kind for kind in found if kind.__module__.startswith(ours))]


@pytest.mark.parametrize("kind", _classes(), ids=lambda kind: kind.__qualname__)
def test_an_error_arrives_with_its_fields(kind: type[BaseException]) -> None:
    takes = list(inspect.signature(kind.__init__).parameters)[1:] if inspect.isfunction(kind.__init__) else []
    error = kind(*(VALUES.get(name, f"some {name}") for name in takes)) if takes else kind("some text")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.args, vars(again)) == (kind, str(error), error.args, vars(error))
