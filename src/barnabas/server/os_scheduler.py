"""Asks the system's scheduler for short time slices, so that the loop waits less for other threads.

If more threads want to run than there are cores, a thread that wakes up waits until the slice of another thread ends. That takes
milliseconds; the loop needs 50 us for a request. In Linux 6.12 and later a thread can ask for short slices. It then runs before threads
with longer slices when it wakes up. Its share of the time stays the same, and it needs no privilege. On other systems nothing changes.
"""

from __future__ import annotations

import ctypes
import logging
import os
import platform
import struct

logger = logging.getLogger(__name__)

TURN_NS = 100_000  # the kernel's minimum
RESET_ON_FORK = 1  # child threads and processes get the default time slice
_SCHED_SETATTR = {
    "x86_64": 314,
    "aarch64": 274,
    "riscv64": 274,
}  # numbers of the system call sched_setattr: older C libraries have no function for it
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")  # size, policy, flags, nice value, priority, time slice, deadline, period


def ask_for_short_turns() -> bool:
    """Ask for the calling thread. Returns whether the system accepted it. A thread with another scheduling policy keeps its policy."""
    number = _SCHED_SETATTR.get(platform.machine())
    if platform.system() != "Linux" or number is None or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    attributes = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_OTHER, RESET_ON_FORK, nice, 0, TURN_NS, 0, 0)
    if ctypes.CDLL(None, use_errno=True).syscall(number, 0, ctypes.c_char_p(attributes), 0):
        logger.debug("event=scheduler-not-told-of-short-turns error=%r", os.strerror(ctypes.get_errno()))
        return False
    return True
