"""Small messages between the JVM and a Python worker, without the delays of TCP.

With Nagle's algorithm a second small write waits until the first is acknowledged. Linux delays the acknowledgement by 40 ms if
there is no data to send back. Spark makes such writes in both directions: the JVM writes the input of a task in several pieces,
and a worker answers the commit of a micro-batch in two pieces. These delays would take most of the time of a small micro-batch.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any


def acknowledging(work: Callable[..., int]) -> Callable[..., int]:
    """Spark's function for a task on a connection to the JVM, with a connection that acknowledges and writes without delay.

    It sets the option for each task, since the kernel returns to delayed acknowledgements by itself.
    """

    def work_at_once(connection: socket.socket, *arguments: Any) -> int:
        if connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if hasattr(socket, "TCP_QUICKACK"):  # only Linux has it
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        return work(connection, *arguments)

    return work_at_once
