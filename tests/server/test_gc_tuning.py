"""Permanent objects are frozen for the garbage collector, and no others."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from barnabas.server.gc_tuning import MANY, FrozenLogs


class Thing:
    """May refer to itself."""

    me: Thing


@pytest.fixture(autouse=True)
def unfrozen() -> Iterator[None]:
    """The garbage collector visits the objects of a test again, but not modules and tests; see `conftest.py`."""
    yield
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def test_what_was_garbage_before_is_collected() -> None:
    thing = Thing()
    thing.me = thing
    is_there = weakref.ref(thing)
    del thing
    with FrozenLogs().making(MANY):
        pass
    gc.collect()
    assert is_there() is None


def frozen_by(logs: FrozenLogs, total: int) -> bool:
    before = gc.get_freeze_count()
    with logs.making(total):
        made = [[number] for number in range(1_000)]
    assert gc.isenabled()
    return gc.get_freeze_count() - before >= len(made)


def test_what_is_made_is_kept_from_it_when_there_is_twice_as_much_as_ever() -> None:
    logs = FrozenLogs()
    totals = [MANY - 1, MANY, MANY, 2 * MANY - 1, 2 * MANY, MANY, 3 * MANY, 5 * MANY]
    assert [frozen_by(logs, total) for total in totals] == [False, True, False, False, True, False, False, True]
