"""Windows of records: the files do not depend on how the records come, and a kill loses and doubles nothing."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from barnabas.connect.plugins.files.partitioners import Folders
from barnabas.connect.plugins.files.windows import Gathering, Rules

Row = tuple[int, int, str]  # offset, time, folder
BIG = 1 << 40


def add(gathering: Gathering, rows: list[Row], end: int | None = None, values: pa.Array[Any] | None = None) -> None:
    names = sorted({each[2] for each in rows})
    records = pa.table(
        {
            "offset": pa.array([each[0] for each in rows], pa.int64()),
            "value": pa.array([each[0] for each in rows], pa.int64()) if values is None else values,
        }
    )
    codes = np.array([names.index(each[2]) for each in rows], np.int64)
    times = np.array([each[1] for each in rows], np.int64)
    gathering.add(records, times, Folders(names, codes), rows[-1][0] + 1 if end is None else end)


def files(gathering: Gathering) -> list[tuple[str, int, list[Any]]]:
    found = [each for window in gathering.ended for each in window.files()]
    gathering.ended.clear()
    return [(each.folder, each.start, each.records.column("offset").to_pylist()) for each in found]


def rows(count: int, folder: str = "a", start: int = 0) -> list[Row]:
    return [(offset, offset * 10, folder) for offset in range(start, start + count)]


def test_a_window_ends_with_the_record_that_fills_a_folder() -> None:
    gathering = Gathering(Rules(2, None, BIG))
    add(gathering, [(0, 0, "a"), (1, 0, "b"), (2, 0, "a"), (3, 0, "b"), (4, 0, "b")])
    assert gathering.durable == 0
    assert files(gathering) == [("a", 0, [0, 2]), ("b", 1, [1]), ("b", 3, [3, 4])]
    assert gathering.durable == 5


def test_a_window_ends_before_the_record_that_is_too_late_for_it() -> None:
    gathering = Gathering(Rules(100, 30, BIG))
    add(gathering, rows(5))
    assert (files(gathering), gathering.durable) == ([("a", 0, [0, 1, 2])], 3)
    add(gathering, rows(3, start=5))
    assert (files(gathering), gathering.durable) == ([("a", 3, [3, 4, 5])], 6)


def test_a_window_ends_when_it_has_too_many_bytes() -> None:
    gathering = Gathering(Rules(100, None, 1))
    add(gathering, rows(2))
    add(gathering, rows(1, start=2))
    assert files(gathering) == [("a", 0, [0, 1]), ("a", 2, [2])]


def test_offsets_without_records_are_passed() -> None:
    gathering = Gathering(Rules(2, None, BIG))
    add(gathering, [(10, 0, "a"), (17, 0, "a")], end=20)
    assert gathering.durable == 10
    assert (files(gathering), gathering.durable) == ([("a", 10, [10, 17])], 20)


def test_records_that_come_again_are_added_once() -> None:
    gathering = Gathering(Rules(3, None, BIG))
    add(gathering, rows(2))
    add(gathering, rows(4))
    assert (files(gathering), gathering.durable) == ([("a", 0, [0, 1, 2])], 3)


def test_records_of_one_offset_stay_together() -> None:
    gathering = Gathering(Rules(2, None, BIG))
    add(gathering, [(0, 0, "a"), (1, 0, "a"), (1, 0, "a"), (2, 0, "a")])
    assert (files(gathering), gathering.durable) == ([("a", 0, [0, 1, 1])], 2)


def test_a_schema_that_does_not_fit_begins_another_window() -> None:
    gathering = Gathering(Rules(100, None, BIG))
    add(gathering, rows(1))
    add(gathering, rows(1, start=1), values=pa.array(["x"]))
    assert (files(gathering), gathering.durable) == ([("a", 0, [0])], 1)


@pytest.mark.parametrize("seed", range(200))
def test_a_record_is_in_one_file_whatever_is_killed_when(seed: int) -> None:
    """A disk gets the files of windows one by one. A kill loses the rest, and the rules differ each time as clock and memory do."""
    chance = random.Random(seed)
    count = chance.randint(1, 60)
    log: list[Row] = [(offset, chance.randint(0, 50), chance.choice("abc")) for offset in range(count)]
    disk: dict[tuple[str, int], list[Any]] = {}
    committed = 0
    while committed < count:
        gathering = Gathering(Rules(chance.randint(1, 6), chance.choice([None, 20]), BIG))
        at, is_alive = committed, True
        while is_alive and at < count:
            end = min(count, at + chance.randint(1, 20))
            add(gathering, log[at:end])
            at = end
            if chance.random() < 0.3 or at == count:
                gathering.end()
            while gathering.ended and is_alive:
                for file in gathering.ended[0].files():
                    disk[file.folder, file.start] = file.records.column("offset").to_pylist()
                    is_alive = is_alive and chance.random() > 0.1
                    if not is_alive:
                        break
                else:
                    del gathering.ended[0]
                    if chance.random() < 0.9:
                        committed = gathering.durable
                    else:
                        is_alive = False
    assert sorted((offset, name) for (name, _), some in disk.items() for offset in some) == [(each[0], each[2]) for each in log]
