"""Which signals end a process of ours, and what ends it with the one that started it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import current_thread, main_thread
from types import FrameType

PR_SET_PDEATHSIG = 1  # <linux/prctl.h>


def die_with_parent() -> None:
    """Have Linux kill this process when the thread that started it is gone."""
    import ctypes  # here, for it takes milliseconds

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def ending_signals() -> list[signal.Signals]:
    """SIGTERM always; SIGINT and SIGHUP unless the process was started with them ignored, or its owner ignores them.

    A shell without job control starts so what it puts in the background (Ctrl-C is for what is in front), and so does nohup. The JVM keeps
    to it, and so do Kafka's broker and tools; kcat does not.
    """
    others = (signal.SIGINT, signal.SIGHUP)
    return [signal.SIGTERM, *(each for each in others if signal.getsignal(each) is not signal.SIG_IGN)]


@contextmanager
def interrupted_by_sigterm() -> Iterator[None]:
    """What is inside ends by SIGTERM as it does by Ctrl-C, with KeyboardInterrupt; a second SIGTERM ends the process at once.

    Only the main thread can be interrupted; in others nothing changes.
    """

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        raise KeyboardInterrupt

    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
