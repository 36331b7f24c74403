"""The bench of mirror links: all parts are measured with few records, and its section of the page says what was compared."""

from __future__ import annotations

import os
import socket
import subprocess
import time

import pytest
from bench.mirror import __main__ as cases
from bench.mirror import page
from bench.mirror.line import Line
from bench.storage.result import Result

from tests.carrier import TUN

FEW = cases.Amounts({cases.OURS: 20_000}, lag_s=0.5, idle_s=0.1, partitions=10, batches=2)


def test_a_link_is_measured() -> None:
    absent: dict[str, str] = {}
    results = {each.case: each for each in cases.measure(1, FEW, absent, ["copying", "many"])}
    assert absent == {}
    assert {"rate", "first", "cpu", "memory", "lag50", "lag99", "many", "many_cpu", "idle"} <= results.keys()
    assert all(results[case].figures[cases.OURS][0] > 0 for case in ("first", "lag50", "lag99", "many"))
    least = [
        value for case in ("rate", "cpu", "idle", "many_cpu") for values in results[case].figures.values() for value in values
    ]
    assert min(least) >= 0  # so few records may be there at the first look


def test_the_section_has_the_figures_and_names_a_copier_that_was_not_measured() -> None:
    result = Result("rate", "copying", "records/s", {"barnabas": [1e6], "MirrorMaker 2": [1e4]}, ">= 500,000", True, ratio=100.0)
    kept = {
        "date": "2001-02-03",
        "command": "python -m bench.mirror",
        "quick": False,
        "others_cpu": 0.01,
        "results": [result.as_json()],
        "absent": {"MirrorMaker 2": "no Java"},
    }
    text = page.render(kept)
    assert "| copying (records/s) | barnabas | 1,000,000 |" in text
    assert ">= 500,000: yes" in text
    assert "copying: 100 times MirrorMaker 2" in text
    assert "MirrorMaker 2: not measured: no Java" in text
    assert "100 times" not in page.render({**kept, "others_cpu": 0.9})


def test_a_line_has_its_delay_and_its_rate() -> None:
    if os.geteuid() or not TUN.exists():
        pytest.skip("a line needs root and a TUN device")
    with Line() as line, socket.create_server((line.near, 0)) as server:
        line.set(0.1, 1e6)
        address = f"{line.near}/{server.getsockname()[1]}"
        sender = subprocess.Popen([*line.inside, "bash", "-c", f"head -c 200000 /dev/zero > /dev/tcp/{address}"])
        received, _ = server.accept()
        began, size = time.monotonic(), 0
        with received:
            while part := received.recv(65536):
                size += len(part)
        assert sender.wait() == 0
        assert size == 200_000
        assert time.monotonic() - began >= 0.2
