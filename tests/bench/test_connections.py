"""A crowd that asks something small, on sockets whose other ends are here."""

from __future__ import annotations

import multiprocessing
import socket
from collections.abc import Iterator

import pytest
from bench.suite.connections import trickling
from bench.wire import BadAnswer

from tests.waiting import WITHIN_S, wait_until


@pytest.fixture
def pairs() -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    found = [socket.socketpair() for _ in range(2)]
    for _, far in found:
        far.settimeout(WITHIN_S)
    yield found
    for pair in found:
        for end in pair:
            end.close()


def test_one_client_after_the_other_asks(pairs: list[tuple[socket.socket, socket.socket]]) -> None:
    with trickling(b"?", [near.fileno() for near, _ in pairs]) as asked:
        for number, (_, far) in enumerate(pairs * 2):
            assert far.recv(10) == b"?"
            assert asked.value == number
            far.sendall(b"!")
        wait_until(lambda: asked.value == 4)
    assert not multiprocessing.active_children()


def test_a_client_that_is_not_answered_is_told(pairs: list[tuple[socket.socket, socket.socket]]) -> None:
    def ask_who_is_gone() -> None:
        with trickling(b"?", [near.fileno() for near, _ in pairs]):
            pairs[0][1].shutdown(socket.SHUT_RDWR)
            wait_until(lambda: not multiprocessing.active_children())

    with pytest.raises(BadAnswer, match="was not answered"):
        ask_who_is_gone()
