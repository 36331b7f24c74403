"""Asks the system's scheduler for short time slices, so that the loop waits less for other threads.

If more threads want to run than there are cores, a woken thread waits until another's slice ends. That takes milliseconds; the loop works
50 us on a request. Linux 6.12 and later let a thread say that short slices are enough. The thread then runs before threads with longer
slices when it wakes up. Its share of the time stays the same, and it needs no privilege. On other systems nothing changes.
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
    """Ask for the calling thread; whether the system accepted it. A thread with another scheduling policy keeps it."""
    number = _SCHED_SETATTR.get(platform.machine())
    if platform.system() != "Linux" or number is None or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    attributes = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_OTHER, RESET_ON_FORK, nice, 0, TURN_NS, 0, 0)
    if ctypes.CDLL(None, use_errno=True).syscall(number, 0, ctypes.c_char_p(attributes), 0):
        logger.debug("event=scheduler-not-told-of-short-turns error=%r", os.strerror(ctypes.get_errno()))
        return False
    return True
