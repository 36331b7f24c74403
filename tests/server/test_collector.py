"""What stays is kept from the collector, and nothing else is."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from barnabas.server.collector import kept_from_collector


class Thing:
    """May refer to itself."""

    me: Thing


@pytest.fixture(autouse=True)
def unfrozen() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_what_was_garbage_before_is_collected() -> None:
    thing = Thing()
    thing.me = thing
    is_there = weakref.ref(thing)
    del thing
    with kept_from_collector():
        pass
    gc.collect()
    assert is_there() is None


def test_what_was_made_is_not_walked_over() -> None:
    frozen = gc.get_freeze_count()
    with kept_from_collector():
        kept = [[number] for number in range(1_000)]
    assert gc.get_freeze_count() - frozen >= len(kept)
    assert gc.isenabled()
