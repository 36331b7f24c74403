"""What the broker asks of the system's scheduler: that its loop need not wait for the end of others' turns.

Where more threads want to run than there are cores, one that wakes up waits until somebody's turn ends, which are milliseconds, while the
loop's own work on a request takes 50 us. From version 6.12 on Linux lets a thread say that short turns are enough for it, and has it go
before those with longer ones as soon as it wakes up; it gets no larger share of the time. It takes no privilege. Elsewhere nothing changes.
"""

from __future__ import annotations

import ctypes
import logging
import os
import platform
import struct

logger = logging.getLogger(__name__)

TURN_NS = 100_000  # the least that the system takes
RESET_ON_FORK = 1  # threads and processes that this one makes have turns of the usual length
_SCHED_SETATTR = {
    "x86_64": 314,
    "aarch64": 274,
    "riscv64": 274,
}  # numbers of the system call: C libraries have no name for it yet
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")  # size, policy, flags, nice value, priority, length of a turn, deadline, period


def ask_for_short_turns() -> bool:
    """For the calling thread; whether the system took it. One that was given another kind of scheduling keeps it."""
    number = _SCHED_SETATTR.get(platform.machine())
    if platform.system() != "Linux" or number is None or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    attributes = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_OTHER, RESET_ON_FORK, nice, 0, TURN_NS, 0, 0)
    if ctypes.CDLL(None, use_errno=True).syscall(number, 0, ctypes.c_char_p(attributes), 0):
        logger.debug("event=scheduler-not-told-of-short-turns error=%r", os.strerror(ctypes.get_errno()))
        return False
    return True
