"""Iterators in threads, and scans that use them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from barnabas.tables import scan
from barnabas.tables.formats import Raw
from barnabas.tables.parallel import ROOM, interleaved
from barnabas.tables.scan import Columns, Scan
from tests.tables.memory_source import MemorySource
from tests.waiting import wait_until


def numbers(part: int, count: int) -> Iterator[tuple[int, int]]:
    for number in range(count):
        yield part, number


def threads_of_parts() -> int:
    return sum(each.name.endswith("(_work)") for each in threading.enumerate())


def parts_of(*counts: int) -> list[Callable[[], Iterator[tuple[int, int]]]]:
    return [partial(numbers, part, count) for part, count in enumerate(counts)]


@pytest.mark.parametrize("counts", [(), (0,), (5,), (7, 0, 3), (50, 40, 30, 20)])
def test_each_part_keeps_its_order(counts: tuple[int, ...]) -> None:
    found = list(interleaved(parts_of(*counts), 2))
    assert sorted(found) == [(part, number) for part, count in enumerate(counts) for number in range(count)]
    for part, count in enumerate(counts):
        assert [number for other, number in found if other == part] == list(range(count))
    assert threads_of_parts() == 0


def test_the_first_error_reaches_the_caller_and_ends_the_others() -> None:
    def failing() -> Iterator[tuple[int, int]]:
        yield 0, 0
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        list(interleaved([failing, *parts_of(10_000)], 2))
    assert threads_of_parts() == 0


def test_a_slow_caller_bounds_what_is_made() -> None:
    made: list[int] = []

    def counted() -> Iterator[int]:
        for number in range(100):
            made.append(number)
            yield number

    items = interleaved([counted, counted], 2)
    next(items)
    wait_until(lambda: len(made) == 1 + ROOM + 2)
    items.close()  # type: ignore[attr-defined]  # it is a generator
    assert len(made) == 1 + ROOM + 2
    assert threads_of_parts() == 0


def test_a_caller_may_take_a_part_only() -> None:
    for taken in range(4):
        items = interleaved(parts_of(10, 10), 2)
        for _ in range(taken):
            next(items)
        items.close()  # type: ignore[attr-defined]  # it is a generator
        assert threads_of_parts() == 0


def test_a_large_scan_of_several_partitions_gives_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    source = MemorySource("t", partitions=3)
    for partition in range(3):
        for number in range(40):
            source.append(partition, [(b"k", b"%d" % number), (b"k", b"x")])
    columns, names = Columns(Raw("_key"), Raw("value")), ["_partition", "_offset", "value"]
    found, reports, counts = [], [], []
    for least in (10_000, 1):
        monkeypatch.setattr(scan, "PARALLEL_OFFSETS", least)
        reading = Scan(source, source.snapshot(), columns, names)
        found.append([row for batch in reading.batches() for row in batch.to_pylist()])
        reports.append((reading.report.rows, reading.report.bytes))
        counts.append(Scan(source, source.snapshot(), columns, names).count())
    assert sorted(found[1], key=lambda row: (row["_partition"], row["_offset"])) == found[0]
    for partition in range(3):
        offsets = [row["_offset"] for row in found[1] if row["_partition"] == partition]
        assert offsets == list(range(80))
    assert reports[0] == reports[1]
    assert counts == [240, 240]
