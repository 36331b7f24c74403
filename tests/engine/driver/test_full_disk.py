"""A disk that takes nothing more, as a limit of the size of files makes one."""

from __future__ import annotations

import random
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas.incremental.interface import FlowError
from barnabas.testing import Broker
from tests.engine.driver.keeping import Keeping

ROWS = 20_000  # of keys that do not compress


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_view_whose_state_finds_no_room_says_so_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    draw = random.Random(1)
    keys = [f"{draw.getrandbits(256):x}" for _ in range(ROWS)]
    with Broker() as broker:
        keeping = Keeping(broker.bootstrap_servers, tmp_path)
        keeping.produce({"k": "a", "x": 1})
        keeping.open().begin()
        keeping.take(1, 0, 1)
        for start in range(0, ROWS, 1_000):
            keeping.produce(*({"k": key, "x": 1} for key in keys[start : start + 1_000]))
        with files_of_at_most(1 << 20), pytest.raises(FlowError) as raised:
            keeping.take(2, 1, ROWS + 1)
        assert "File too large" in str(raised.value)
        assert "\n" not in str(raised.value)
        every = {"a": (1, 1), **dict.fromkeys(keys, (1, 1))}
        assert keeping.rows() == every, "rows are written before the state is"

        keeping.open().begin()
        keeping.take(2, 1, ROWS + 1)
        keeping.produce({"k": "a", "x": 5})
        keeping.take(3, ROWS + 1, ROWS + 2)
        assert keeping.rows() == every | {"a": (2, 6)}
        assert len(keeping.written()) == ROWS + 2, "each change is written once"
        keeping.close()
