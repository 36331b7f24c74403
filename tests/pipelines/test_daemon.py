"""The daemon that workers are forked from: what is in its memory, and how its workers listen to the JVM."""

from __future__ import annotations

import json
import socket
import subprocess
import sys

import pytest

from barnabas.pipelines.daemon import acknowledging

ASK = """
import gc, json, sys
from barnabas.pipelines import daemon
daemon.preload()
print(json.dumps([[name in sys.modules for name in daemon.OF_TASKS], len(gc.get_objects())]))
"""


def test_workers_find_everything_loaded_and_their_collector_nothing_to_do() -> None:
    told = subprocess.run([sys.executable, "-c", ASK], check=True, capture_output=True).stdout
    loaded, objects = json.loads(told)
    assert all(loaded)
    assert objects < 100


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_UNIX])
def test_a_task_acknowledges_and_writes_without_delay(family: socket.AddressFamily) -> None:
    with socket.socket(family) as connection:
        asked = []

        def work(given: socket.socket, authenticated: bool) -> int:
            asked.append((given, authenticated))
            return 3

        assert acknowledging(work)(connection, True) == 3
        assert asked == [(connection, True)]
        if family == socket.AF_INET:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK)
