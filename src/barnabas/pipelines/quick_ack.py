"""Handing small things over between the JVM and a Python worker, without the delays that TCP has for them.

Who has written a few bytes and writes more waits for the acknowledgement of the first (Nagle's algorithm), and Linux delays that by 40 ms
where nothing is sent back meanwhile. Spark does so both ways: the JVM writes what a task needs in several pieces, and a worker answers the
commit of a micro-batch in two. That was most of what a small micro-batch took.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any


def acknowledging(work: Callable[..., int]) -> Callable[..., int]:
    """Spark's function for a task on a connection to the JVM, with a connection that is acknowledged and written to without delay.

    To be set for each task, since the kernel goes back to delaying by itself.
    """

    def work_at_once(connection: socket.socket, *arguments: Any) -> int:
        if connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if hasattr(socket, "TCP_QUICKACK"):  # Linux
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        return work(connection, *arguments)

    return work_at_once
