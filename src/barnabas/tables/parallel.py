"""Takes the items of several iterators that run in threads, in the order of each iterator.

Rules
  1. Threads stop at a full channel, so memory holds one item for each thread and `ROOM` more, however slow the caller is.
  2. The first error ends all iterators, and the caller gets it. A caller that closes the generator ends them too.
  3. The threads end with the program, also if a caller keeps a generator that it did not take to its end.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
ROOM = 2  # items that wait for the caller


class _Channel(Generic[T]):
    """Items on their way from threads to one caller."""

    def __init__(self, parts: Sequence[Callable[[], Iterator[T]]], writers: int) -> None:
        self._waiting = deque(parts)
        self._writers = writers
        self._items: deque[T] = deque()
        self._error: BaseException | None = None
        self._is_closed = False
        self._changed = threading.Condition()

    def next_part(self) -> Callable[[], Iterator[T]] | None:
        """A part that nobody has begun; None if there is none."""
        with self._changed:
            return None if self._is_closed or not self._waiting else self._waiting.popleft()

    def put(self, item: T) -> bool:
        """Wait for room; False if nobody wants the item any more."""
        with self._changed:
            while len(self._items) >= ROOM and not self._is_closed:
                self._changed.wait()
            if not self._is_closed:
                self._items.append(item)
                self._changed.notify_all()
            return not self._is_closed

    def end(self, error: BaseException | None) -> None:
        """A thread has ended."""
        with self._changed:
            self._writers -= 1
            if error is not None:
                self._error = self._error or error
                self._is_closed = True
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def items(self) -> Iterator[T]:
        while True:
            with self._changed:
                while not self._items and self._writers and self._error is None:
                    self._changed.wait()
                if self._error is not None:
                    raise self._error
                if not self._items:
                    return
                item = self._items.popleft()
                self._changed.notify_all()
            yield item


def interleaved(parts: Sequence[Callable[[], Iterator[T]]], threads: int) -> Iterator[T]:
    """The items of all parts; those of one part in their order. Raises the first error of a part."""
    channel = _Channel(parts, threads)
    workers = [threading.Thread(target=_work, args=(channel,), daemon=True) for _ in range(threads)]
    for worker in workers:
        worker.start()
    try:
        yield from channel.items()
    finally:
        channel.close()
        for worker in workers:
            worker.join()


def _work(channel: _Channel[T]) -> None:
    error: BaseException | None = None
    try:
        while (part := channel.next_part()) is not None:
            for item in part():
                if not channel.put(item):
                    break
    except BaseException as raised:  # noqa: BLE001 - the caller gets it
        error = raised
    channel.end(error)
