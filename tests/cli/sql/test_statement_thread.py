"""A statement runs in a thread, which the main thread can end."""

from __future__ import annotations

import itertools
import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from barnabas.cli.sql.statement_thread import PREFETCHED, Work, ctrl_c_calls


def test_items_come_in_order_and_an_error_ends_them() -> None:
    def items() -> Iterator[int]:
        yield from range(10)
        raise LookupError("no more")

    found: list[int] = []
    with pytest.raises(LookupError, match="no more"):
        found.extend(Work(items, lambda: None))
    assert list(Work(lambda: iter(range(3)), lambda: None)) == [0, 1, 2]


def test_the_thread_is_few_items_ahead_and_a_consumer_that_stops_ends_it() -> None:
    made: list[int] = []
    cancelled = threading.Event()
    closed = threading.Event()

    def items() -> Iterator[int]:
        try:
            for number in itertools.count():
                made.append(number)
                yield number
        finally:
            closed.set()

    work = Work(items, cancelled.set)
    items_taken = iter(work)
    assert [next(items_taken), next(items_taken)] == [0, 1]
    items_taken.close()  # type: ignore[attr-defined]  # it is a generator
    assert cancelled.is_set()
    assert closed.is_set()
    assert not work.is_stuck
    assert len(made) <= 2 + PREFETCHED + 2


def test_an_interrupt_cancels_until_the_statement_ends() -> None:
    """The first cancellation comes before the statement can be cancelled."""
    calls = itertools.count(1)
    third = threading.Event()

    def cancel() -> None:
        if next(calls) >= 3:
            third.set()

    def items() -> Iterator[int]:
        third.wait(60)
        yield 1

    work = Work(items, cancel)
    work.interrupt()
    assert work.is_interrupted
    assert list(work) == [1]
    with pytest.raises(KeyboardInterrupt):
        work.interrupt()


def test_ctrl_c_calls_and_is_given_back() -> None:
    calls: list[int] = []
    call: Callable[[], None] = lambda: calls.append(1)  # noqa: E731 - short
    before = signal.getsignal(signal.SIGINT)
    with ctrl_c_calls(call):
        signal.raise_signal(signal.SIGINT)
    assert calls == [1]
    assert signal.getsignal(signal.SIGINT) is before


def test_in_another_thread_ctrl_c_stays_as_it_is() -> None:
    seen: list[object] = []

    def look() -> None:
        with ctrl_c_calls(lambda: None):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]
