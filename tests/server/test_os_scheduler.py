"""Asking for short turns: the thread has them, those that it makes have not."""

from __future__ import annotations

import os
import platform
import threading
from pathlib import Path

import pytest

from barnabas.server.os_scheduler import TURN_NS, ask_for_short_turns

KERNEL = tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2]) if platform.system() == "Linux" else (0, 0)


def slice_ns(thread: int) -> int:
    lines = Path(f"/proc/self/task/{thread}/sched").read_text().splitlines()
    return int(float(next(line for line in lines if line.startswith("se.slice")).split(":")[1]))


@pytest.mark.skipif(KERNEL < (6, 12) or not Path("/proc/self/sched").exists(), reason="the system does not do it, or not show it")
def test_the_thread_that_asks_has_short_turns_and_those_it_makes_have_not() -> None:
    found: dict[str, int] = {}

    def child() -> None:
        found["child"] = slice_ns(threading.get_native_id())

    def asking() -> None:
        assert ask_for_short_turns()
        found["after"] = slice_ns(threading.get_native_id())
        thread = threading.Thread(target=child)
        thread.start()
        thread.join()

    thread = threading.Thread(target=asking)
    thread.start()
    thread.join()
    assert found["after"] == TURN_NS < found["child"]


@pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="there is no other kind of scheduling")
def test_who_was_given_another_kind_of_scheduling_keeps_it() -> None:
    found: list[bool] = []

    def asking() -> None:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        found.append(ask_for_short_turns())
        assert os.sched_getscheduler(0) == os.SCHED_BATCH
        found.append(True)

    thread = threading.Thread(target=asking)
    thread.start()
    thread.join()
    assert found == [False, True]
