"""Random and mutated bytes at the listener: it answers or closes, and goes on."""

from __future__ import annotations

import pytest

from tests.fuzz.fuzz_postgres import nothing_is_left, one_session, one_startup
from tests.sql.postgres.running import SYNC, Running, bind, execute, parse, startup


@pytest.mark.parametrize("seed", range(120))
def test_a_session_of_mutated_messages(server: Running, seed: int) -> None:
    one_session(server, seed)
    nothing_is_left(server)


@pytest.mark.parametrize("seed", range(80))
def test_a_startup_of_mutated_packets(server: Running, seed: int) -> None:
    one_startup(server, seed)
    nothing_is_left(server)


@pytest.mark.parametrize("size", [0, 1, 4, 5, 6, 30])
def test_a_client_that_leaves_in_the_middle(server: Running, size: int) -> None:
    with server.client() as client:
        client.send((parse("select 1", "s") + bind(statement="s") + execute() + SYNC)[:size])
    with server.stranger() as client:
        client.send(startup()[:size])
    nothing_is_left(server)


def test_after_all_of_it_the_server_serves(server: Running) -> None:
    with server.client() as client:
        assert client.query("select 1")[1].row == [b"1"]
