"""How a worker listens and answers to the JVM."""

from __future__ import annotations

import socket

import pytest

from barnabas.pipelines.quick_ack import acknowledging


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
