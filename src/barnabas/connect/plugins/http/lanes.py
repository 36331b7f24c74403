"""Requests in flight at once. A lane is a list of requests that go one behind the other; lanes go side by side.

Rule: the requests of a batch depend on its records and the config alone, so a batch that comes again has the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import groupby
from typing import Any, NamedTuple
from zlib import crc32

ORDERS = ("key", "partition", "none")


class Sent(NamedTuple):
    """A record as it is sent."""

    row: int
    place: tuple[str, int, int]  # topic, partition, offset
    key: Any
    value: Any
    body: bytes | None


Some = Sequence[Sent]


def lanes_of(rows: Sequence[Sent], *, order: str, most: int, size: int) -> list[list[Some]]:
    """The requests of each lane, in their order.

    Args:
        order: what keeps its order: records of one key, of one partition, or nothing. Records without a key keep none.
        most: lanes.
        size: records of a request.
    """
    if most == 1:
        return [_requests(rows, size)]
    if order == "none":
        return _dealt(_requests(rows, size), most)
    parts: list[list[Sent]] = [[] for _ in range(most)]
    loose = []
    for each in rows:
        if order == "partition":
            parts[crc32(f"{each.place[0]}-{each.place[1]}".encode()) % most].append(each)
        elif each.key is None:
            loose.append(each)
        else:
            parts[crc32(repr(each.key).encode()) % most].append(each)
    lanes = [_requests(part, size) for part in parts]
    for lane, more in zip(lanes, _dealt(_requests(loose, size), most), strict=False):
        lane += more
    return [lane for lane in lanes if lane]


def _requests(rows: Sequence[Sent], size: int) -> list[Some]:
    """Neighbours of one topic, which can go to one URL, by the size of a request."""
    topics = [list(some) for _, some in groupby(rows, key=lambda each: each.place[0])]
    return [some[first : first + size] for some in topics for first in range(0, len(some), size)]


def _dealt(requests: Sequence[Some], most: int) -> list[list[Some]]:
    return [list(requests[at::most]) for at in range(min(most, len(requests)))]


class Lanes:
    """Runs lanes in threads; one lane in the caller's."""

    def __init__(self, most: int) -> None:
        self._pool = ThreadPoolExecutor(most, "http-sink") if most > 1 else None

    def run(self, work: Callable[[list[Some]], None], lanes: Iterable[list[Some]]) -> None:
        """Do the work of all lanes. Raises what the first one raised, when all have ended."""
        if self._pool is None:
            for each in lanes:
                work(each)
            return
        done = [self._pool.submit(work, each) for each in lanes]
        wait(done)
        for one in done:
            one.result()

    def close(self) -> None:
        """End the threads, when their requests have ended."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
