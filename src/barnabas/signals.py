"""The signals that end a barnabas process, and the end of a process together with its parent."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import current_thread, main_thread
from types import FrameType

PR_SET_PDEATHSIG = 1  # <linux/prctl.h>


def die_with_parent() -> None:
    """Make Linux kill this process when the thread that started it ends."""
    import ctypes  # imported here, because the import takes milliseconds

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def ending_signals() -> list[signal.Signals]:
    """The signals that end the process: SIGTERM always; SIGINT and SIGHUP unless the process ignores them itself or inherited
    this from its parent.

    A shell without job control, and nohup, start background processes that ignore them (Ctrl-C is for the foreground). The JVM
    respects this, and therefore Kafka's broker and tools do too; kcat does not.
    """
    others = (signal.SIGINT, signal.SIGHUP)
    return [signal.SIGTERM, *(each for each in others if signal.getsignal(each) is not signal.SIG_IGN)]


@contextmanager
def interrupted_by_sigterm() -> Iterator[None]:
    """In this context SIGTERM raises KeyboardInterrupt, like Ctrl-C; a second SIGTERM ends the process at once.

    Only the main thread can be interrupted; in other threads the context has no effect.
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
