"""The input, record by record, and what the pipeline must make of it, by plain Python.

Record number i has the key i % KEYS, the event time i * STEP_MS and i as its value; it lies in the partition i % PARTITIONS. Each window of
each key is one record of the output: how many records, their sum, the least and the greatest.

In update mode a window is written whenever a micro-batch has brought records of it, so that what comes out depends on the micro-batches. Of
each window the counts grow from record to record of the output, and its last one is that of the plain calculation.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from enum import Enum

IN, OUT = "torture-in", "torture-out"
PARTITIONS = 3
KEYS = 8
STEP_MS = 20
WINDOW_MS = 10_000
WATERMARK_MS = 60_000  # the lag between partitions is always smaller
CLOSING_MS = 10 * WATERMARK_MS  # after the last record: closes all windows, and is itself in a window that stays open


class Sink(Enum):
    """How the output is written."""

    STREAM = "stream"  # format("barnabas"), append mode
    UPDATES = "updates"  # write_stream, update mode


Row = tuple[int, int, int, int, int, int]  # key, window start in ms, count, sum, minimum, maximum


def value_of(number: int) -> bytes:
    return json.dumps({"key": number % KEYS, "ms": number * STEP_MS, "number": number}).encode()


def closing_value(count: int) -> bytes:
    return json.dumps({"key": -1, "ms": count * STEP_MS + CLOSING_MS, "number": 0}).encode()


def expected(count: int) -> list[Row]:
    """Every row of the output for records [0, count), in order."""
    groups: dict[tuple[int, int], list[int]] = {}
    for number in range(count):
        start = number * STEP_MS // WINDOW_MS * WINDOW_MS
        groups.setdefault((number % KEYS, start), []).append(number)
    return sorted((key, start, len(all_), sum(all_), min(all_), max(all_)) for (key, start), all_ in groups.items())


def row_of(value: bytes) -> Row:
    read = json.loads(value)
    return read["key"], read["start"], read["count"], read["sum"], read["least"], read["greatest"]


def wrong(wanted: Sequence[Row], found: Iterable[Row], sink: Sink) -> list[Row]:
    """Rows of the output, in the order of each partition, that should not be there: rows that were repeated, or that nobody calculated."""
    left = {row[:2]: row for row in wanted}
    counts: dict[tuple[int, int], int] = {}
    bad = []
    for row in found:
        key = row[:2]
        last, before = left.get(key), counts.get(key, 0)
        is_right = last is not None and (row[2] > before) and (row == last or (sink is Sink.UPDATES and row[2] < last[2]))
        if key[0] >= 0 and not is_right:
            bad.append(row)
        counts[key] = row[2]
    return bad


def missing(wanted: Sequence[Row], found: Iterable[Row]) -> list[Row]:
    """Rows of the plain calculation that the output does not have."""
    there = set(found)
    return [row for row in wanted if row not in there]
