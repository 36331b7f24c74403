"""The input, record by record, and what the pipeline must make of it, by plain Python.

Record number i has the key i % KEYS, the event time i * STEP_MS and i as its value; it lies in the partition i % PARTITIONS. Each window of
each key is one record of the output: how many records, their sum, the least and the greatest.
"""

from __future__ import annotations

import json

IN, OUT = "torture-in", "torture-out"
PARTITIONS = 3
KEYS = 8
STEP_MS = 20
WINDOW_MS = 10_000
WATERMARK_MS = 60_000  # partitions are never so far apart
CLOSING_MS = 10 * WATERMARK_MS  # after the last record: closes every window, and lies in one that stays open

Row = tuple[int, int, int, int, int, int]  # key, window start in ms, count, sum, least, greatest


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
