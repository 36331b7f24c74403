"""A process of a system: waited for, told apart with its children, and gone afterwards with its folder."""

from __future__ import annotations

import os
import sys

import pytest
from bench.peers.peer import PeerUnavailable
from bench.peers.process import Process, cpu_by_pid, cpu_of, cpu_since, disk_bytes, family, forget_peak, peak_mb, resident_mb

WAITS = [sys.executable, "-c", "import signal; signal.pause()"]


def test_a_process_that_ends_is_told_in_one_line_and_nothing_is_left() -> None:
    process = Process("short")
    with pytest.raises(PeerUnavailable, match=r"^short did not start: no memory$") as raised:
        process.start([sys.executable, "-c", "print('no'); print('memory')"], lambda: False)
    assert len(str(raised.value).splitlines()) == 1
    assert process.pids == []
    assert not process.folder.exists()


def test_an_interruption_while_waiting_stops_what_was_started() -> None:
    process = Process("interrupted")
    started: list[int] = []

    def is_ready() -> bool:
        started.extend(process.pids)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        process.start(WAITS, is_ready)
    assert started
    assert not any(os.path.exists(f"/proc/{pid}") for pid in started)


def test_what_the_kernel_knows_of_a_process() -> None:
    process = Process("waits")
    try:
        process.start(WAITS, lambda: True)
        (pid,) = process.pids
        assert pid in family(os.getpid())
        forget_peak([pid])
        assert peak_mb([pid]) >= resident_mb([pid]) * 0.5 > 0
        assert cpu_of([pid]) >= 0
        (process.folder / "data").write_bytes(bytes(10_000))
        assert disk_bytes(process.folder) >= 10_000
    finally:
        process.stop()
    assert not process.folder.exists()


def test_a_process_that_has_ended_takes_nothing() -> None:
    process = Process("ends")
    process.start(WAITS, lambda: True)
    (pid,) = process.pids
    process.stop()
    forget_peak([pid])
    assert (cpu_of([pid]), peak_mb([pid]), resident_mb([pid])) == (0.0, 0.0, 0.0)


def test_processor_time_of_processes_that_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    used = {1: 5.0, 2: 7.0}

    def seconds(pid: int) -> float:
        if pid not in used:
            raise FileNotFoundError
        return used[pid]

    monkeypatch.setattr("bench.peers.process.cpu_seconds", seconds)
    before = cpu_by_pid([1, 2])
    used |= {1: 6.0, 3: 2.0}
    del used[2]
    assert cpu_since(before, [1, 2, 3]) == 3
