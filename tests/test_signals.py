from __future__ import annotations

import signal
from collections.abc import Iterator
from threading import Thread

import pytest

from barnabas.signals import ending_signals, interrupted_by_sigterm


@pytest.fixture(autouse=True)
def handlers_as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_what_is_ignored_from_the_start_does_not_end_a_process() -> None:
    others = [signal.SIGINT, signal.SIGHUP]
    for number in others:
        signal.signal(number, signal.SIG_DFL)
    assert ending_signals() == [signal.SIGTERM, *others]
    for number in others:
        signal.signal(number, signal.SIG_IGN)
        others = others[1:]
        assert ending_signals() == [signal.SIGTERM, *others]


def test_sigterm_interrupts_and_the_second_one_ends() -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with interrupted_by_sigterm():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler


def test_other_threads_are_left_alone() -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen = []

    def work() -> None:
        with interrupted_by_sigterm():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
