"""Looks at once: answers that overlap give the rows of the log."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from barnabas.client.results import Fetched
from barnabas.protocol.records.record import Record, build_batch
from barnabas.sql.live.reading import TableChanged, take
from barnabas.sql.live.rows import LivePartition, LiveRows
from barnabas.tables.scalar_format import ScalarFormat


def answer(first: int, counts: list[int], log_start: int = 0) -> Fetched:
    """Batches of so many records from an offset on; each record has its own key and its offset as its value."""
    data, at = b"", first
    for count in counts:
        data += build_batch([Record(each, 1_000, b"%d" % each, b"%d" % each) for each in range(at, at + count)], base_offset=at)
        at += count
    return Fetched(data, at, at, log_start, ())


def rows() -> LiveRows:
    made = LiveRows(ScalarFormat(pa.field("id", pa.int64())))
    made.partitions[0] = LivePartition()
    return made


def values(live: LiveRows) -> list[Any]:
    found: list[Any] = live.all().column("value").to_pylist()
    return found


@pytest.mark.parametrize("size", [2, 200])  # with and without the kernels
def test_answers_from_one_position_are_taken_once(size: int) -> None:
    live = rows()
    take(live, "t", 0, 0, answer(0, [size]))
    take(live, "t", 0, 0, answer(0, [size, size]))
    take(live, "t", 0, 0, answer(0, [size]))
    assert live.partitions[0].position == 2 * size
    assert values(live) == [b"%d" % each for each in range(2 * size)]


def test_an_answer_from_behind_the_rows_is_left_alone() -> None:
    live = rows()
    take(live, "t", 0, 5, answer(5, [2]))
    assert (live.partitions[0].position, values(live)) == (0, [])


def test_an_older_answer_takes_back_no_start_of_the_log() -> None:
    live = rows()
    take(live, "t", 0, 0, answer(0, [3, 3], log_start=4))
    take(live, "t", 0, 0, answer(0, [3]))
    assert live.partitions[0].log_start == 4
    assert values(live) == [b"4", b"5"]


def test_a_log_that_ends_before_the_position_is_another_one() -> None:
    live = rows()
    take(live, "t", 0, 0, answer(0, [3]))
    with pytest.raises(TableChanged):
        take(live, "t", 0, 3, answer(0, [1]))
