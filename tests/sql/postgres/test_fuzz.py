"""Random and mutated bytes at the listener: it answers or closes, and goes on."""

from __future__ import annotations

import random
from struct import pack

import pytest

from tests.sql.postgres.running import (
    FLUSH,
    SSL_REQUEST,
    SYNC,
    Running,
    bind,
    close,
    describe,
    execute,
    message,
    parse,
    query,
    startup,
)
from tests.waiting import wait_until

GOOD = [
    query("select 1"), query("begin"), query("rollback"), parse("select $1::int", "s"), parse("select 1"), bind(b"1", statement="s"),
    bind(), describe("S", "s"), describe("P"), execute(), execute("", 1), close("S", "s"), close("P"), SYNC, FLUSH,
    query("copy t from stdin"), message("d", b"1\n"), message("c"), message("f", b"no\0"), message("p", b"x\0"), message("F", b"\0\0"),
    query("declare c cursor with hold for select 1"), query("fetch all from c"), query("close c"), query("select ';"),
]  # fmt: skip


def mutated(random_: random.Random, data: bytes) -> bytes:
    found = bytearray(data)
    for _ in range(random_.randint(0, 3)):
        kind = random_.randrange(4)
        at = random_.randrange(len(found) + 1)
        if kind == 0 and found:
            found[at % len(found)] = random_.randrange(256)
        elif kind == 1:
            del found[at : at + random_.randrange(8)]
        elif kind == 2:
            found[at:at] = random_.randbytes(random_.randrange(8))
        elif len(found) >= 5:
            found[1:5] = pack(">I", random_.choice([0, 3, 4, 5, len(found), 2**31 - 1, 2**31, 2**32 - 1]))
    return bytes(found)


@pytest.mark.parametrize("seed", range(120))
def test_a_session_of_mutated_messages(server: Running, seed: int) -> None:
    random_ = random.Random(seed)
    with server.client() as client:
        try:
            client.send(*[mutated(random_, random_.choice(GOOD)) for _ in range(random_.randint(1, 12))])
            client.socket.shutdown(1)
        except OSError:
            pass
        client.rest()
    wait_until(lambda: not server.engine.sessions)
    assert server.server.budget.held == 0


@pytest.mark.parametrize("seed", range(80))
def test_a_startup_of_mutated_packets(server: Running, seed: int) -> None:
    random_ = random.Random(seed)
    packets = [
        startup(),
        startup(196_610, application_name="x"),
        SSL_REQUEST,
        pack(">IIII", 16, (1234 << 16) + 5678, 1, 2),
        random_.randbytes(40),
    ]
    with server.stranger() as client:
        try:
            client.send(*[mutated(random_, random_.choice(packets)) for _ in range(random_.randint(1, 3))])
            client.socket.shutdown(1)
        except OSError:
            pass
        client.rest()
    wait_until(lambda: not server.engine.sessions)


@pytest.mark.parametrize("size", [0, 1, 4, 5, 6, 30])
def test_a_client_that_leaves_in_the_middle(server: Running, size: int) -> None:
    with server.client() as client:
        client.send((parse("select 1", "s") + bind(statement="s") + execute() + SYNC)[:size])
    with server.stranger() as client:
        client.send(startup()[:size])
    wait_until(lambda: not server.engine.sessions and server.server.connections == 0)


def test_after_all_of_it_the_server_serves(server: Running) -> None:
    with server.client() as client:
        assert client.query("select 1")[1].row == [b"1"]
