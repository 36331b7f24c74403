"""A crowd that asks something small, on sockets whose other ends are here."""

from __future__ import annotations

import multiprocessing
import socket
from collections.abc import Iterator

import pytest
from bench.suite.connections import trickling
from bench.wire import BadAnswer

from tests.waiting import wait_until


@pytest.fixture
def pairs() -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    found = [socket.socketpair() for _ in range(2)]
    yield found
    for pair in found:
        for end in pair:
            end.close()


def test_one_client_after_the_other_asks(pairs: list[tuple[socket.socket, socket.socket]]) -> None:
    with trickling(b"?", [near.fileno() for near, _ in pairs]):
        for _, far in pairs * 2:
            assert far.recv(10) == b"?"
            far.sendall(b"!")
    assert not multiprocessing.active_children()


def test_a_client_that_is_not_answered_is_told(pairs: list[tuple[socket.socket, socket.socket]]) -> None:
    crowd = trickling(b"?", [near.fileno() for near, _ in pairs])
    crowd.__enter__()
    pairs[0][1].shutdown(socket.SHUT_RDWR)
    wait_until(lambda: not multiprocessing.active_children())
    with pytest.raises(BadAnswer, match="was not answered"):
        crowd.__exit__(None, None, None)
