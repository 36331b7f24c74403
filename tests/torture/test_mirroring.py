"""A short form of the torture of two clusters with a mirror link, and the long way between them."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.carrier import HeldPackets, carry, order
from tests.torture.check import Broken
from tests.torture.mirroring.__main__ import main
from tests.torture.mirroring.groups import demand_within

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.timeout(400)  # eight servers start slowly on a busy machine
def test_kills_of_both_clusters_leave_the_copies_equal() -> None:
    """With network namespaces, the third round makes the way between the clusters long; without, it is another kill."""
    command = [sys.executable, "-m", "tests.torture.mirroring", "--rounds", "3", "--kinds", "kill-source,kill-target,far"]
    done = subprocess.run([*command, "--hold", "1"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 rounds in" in done.stdout
    assert "none is missing in the copy" in done.stdout


def test_the_long_way_delays_loses_and_keeps_the_order() -> None:
    held = HeldPackets(random.Random(1))
    assert held.wait_s(0.0) is None
    held.set(0.5, 0.0)
    held.take(b"a", 10.0)
    held.set(0.1, 0.0)
    held.take(b"b", 10.1)  # it does not overtake
    assert held.wait_s(10.1) == pytest.approx(0.4)
    assert list(held.due(10.4)) == []
    assert list(held.due(10.5)) == [b"a", b"b"]
    held.set(0.0, 0.3)
    for number in range(1000):
        held.take(b"%d" % number, 11.0)
    got = [int(packet) for packet in held.due(11.0)]
    assert got == sorted(got)
    assert 650 < len(got) < 750


def test_a_line_has_a_rate_and_a_short_queue() -> None:
    held = HeldPackets(random.Random(1))
    held.set(1.0, 0.0, 1000.0)
    for number in range(10):
        held.take(b"%d" % number * 100, 10.0)  # 0.1 s of the line each; the fourth would wait for 0.3 s
    assert list(held.due(11.09)) == []
    assert [packet[:1] for packet in held.due(11.11)] == [b"0"]
    assert [packet[:1] for packet in held.due(20.0)] == [b"1", b"2"]
    assert held.wait_s(20.0) is None


def test_packets_pass_by_the_commands() -> None:
    """A pair of sockets that keep the bounds of packets stands for the device."""
    device, far_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    reading, writing = os.pipe()
    device.setblocking(False)
    thread = threading.Thread(target=carry, args=({device.fileno(): device.fileno()}, reading, random.Random(1)))
    thread.start()
    with device, far_end:
        far_end.settimeout(30)
        os.write(writing, (order(delay_s=0.001) + order(delay_s=0.002)).encode())
        sent = [b"%d" % number for number in range(50)]
        for packet in sent:
            far_end.send(packet)
        got = [far_end.recv(100) for _ in sent]
        os.close(writing)
        thread.join()
    os.close(reading)
    assert got == sent


def test_an_offset_past_the_copy_is_seen() -> None:
    ends = {("t", 0): 5}
    demand_within({("g", ("t", 0)): 5}, ends)
    with pytest.raises(Broken, match="group g is at 6 in the copy"):
        demand_within({("g", ("t", 0)): 6}, ends)


def test_unknown_kinds_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--kinds", "never", "--loopback"])
    assert ended.value.code == 2
    assert "there is no kind of round 'never'" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["--kinds", "cut", "--loopback"])
    assert ended.value.code == 2
    assert "need network namespaces" in capsys.readouterr().err
