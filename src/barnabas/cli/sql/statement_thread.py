"""Runs the statements of a session in a thread, so that the main thread can take Ctrl-C and print meanwhile.

The thread is at most PREFETCHED batches ahead of the printing. A consumer that stops early cancels the statement.
"""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")
PREFETCHED = 2
PATIENCE_S = 3.0  # how long a statement that was cancelled may take to end
LOOK_AGAIN_S = 0.1


class _Failed:
    def __init__(self, error: BaseException) -> None:
        self.error = error


_END = object()


class Work:
    """The items of an iterator that runs in a thread.

    Args:
        make: makes the iterator, in the thread.
        cancel: ends what the iterator waits for; called from the main thread.
    """

    def __init__(self, make: Callable[[], Iterator[Any]], cancel: Callable[[], None]) -> None:
        self._make, self._cancel = make, cancel
        self._items: queue.Queue[Any] = queue.Queue(PREFETCHED)
        self._stopped = threading.Event()
        self._interrupted = False
        self._thread = threading.Thread(target=self._run, name="sql-statement", daemon=True)

    def _run(self) -> None:
        items = None
        try:
            items = self._make()
            for item in items:
                if not self._put(item):
                    return
            self._put(_END)
        except BaseException as error:  # noqa: BLE001 - the main thread raises it
            self._put(_Failed(error))
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()

    def _put(self, item: Any) -> bool:
        while not self._stopped.is_set():
            try:
                self._items.put(item, timeout=LOOK_AGAIN_S)
            except queue.Full:
                continue
            return True
        return False

    def __iter__(self) -> Iterator[Any]:
        """The items; raises what the iterator raised."""
        self._thread.start()
        has_ended = False
        try:
            while (item := self._get()) is not _END:
                if isinstance(item, _Failed):
                    has_ended = True
                    raise item.error
                yield item
            has_ended = True
        finally:
            self._stop(has_ended=has_ended)

    def _get(self) -> Any:
        while True:
            try:
                return self._items.get(timeout=LOOK_AGAIN_S)
            except queue.Empty:
                if self._interrupted:
                    self._cancel()

    def interrupt(self) -> None:
        """End the statement. It is cancelled again and again, since it may be between two steps that can be cancelled.

        Raises KeyboardInterrupt when it is called again.
        """
        if self._interrupted:
            raise KeyboardInterrupt
        self._interrupted = True
        self._cancel()

    @property
    def is_interrupted(self) -> bool:
        """Whether the user has ended it."""
        return self._interrupted

    def _stop(self, *, has_ended: bool) -> None:
        self._stopped.set()
        if not has_ended:
            self._cancel()
        self._thread.join(PATIENCE_S)

    @property
    def is_stuck(self) -> bool:
        """Whether the statement goes on although it was cancelled."""
        return self._thread.is_alive()


@contextmanager
def ctrl_c_calls(interrupt: Callable[[], None]) -> Iterator[None]:
    """In this context SIGINT calls `interrupt` instead of raising KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def receive(_number: int, _frame: FrameType | None) -> None:
        interrupt()

    before = signal.signal(signal.SIGINT, receive)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
