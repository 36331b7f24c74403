"""Mutated messages and startup packets at a Postgres listener: `python -m tests.fuzz.fuzz_postgres --seconds N --seed S`.

The listener answers or closes; no session, no thread and no memory for messages stays.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import time
from struct import pack

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
    running,
    startup,
)  # fmt: skip
from tests.waiting import wait_until

GOOD = [
    query("select 1"), query("begin"), query("rollback"), parse("select $1::int", "s"), parse("select 1"), bind(b"1", statement="s"),
    bind(), describe("S", "s"), describe("P"), execute(), execute("", 1), close("S", "s"), close("P"), SYNC, FLUSH,
    query("copy t from stdin"), message("d", b"1\n"), message("c"), message("f", b"no\0"), message("p", b"x\0"), message("F", b"\0\0"),
    query("declare c cursor with hold for select 1"), query("fetch all from c"), query("close c"), query("select ';"),
]  # fmt: skip


STARTUPS = [
    startup(),
    startup(196_610, application_name="x"),
    SSL_REQUEST,
    pack(">IIII", 16, (1234 << 16) + 5678, 1, 2),
    bytes(40),
]


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


def one_session(server: Running, seed: int) -> None:
    """Mutated messages after a log-in."""
    chance = random.Random(seed)
    with server.client() as client:
        with contextlib.suppress(OSError):
            client.send(*[mutated(chance, chance.choice(GOOD)) for _ in range(chance.randint(1, 12))])
            client.socket.shutdown(1)
        client.rest()


def one_startup(server: Running, seed: int) -> None:
    """Mutated packets instead of a log-in."""
    chance = random.Random(seed)
    with server.stranger() as client:
        with contextlib.suppress(OSError):
            client.send(*[mutated(chance, chance.choice(STARTUPS)) for _ in range(chance.randint(1, 3))])
            client.socket.shutdown(1)
        client.rest()


def nothing_is_left(server: Running) -> None:
    """No session, and no memory for messages."""
    wait_until(lambda: not server.engine.sessions and not server.server.connections)
    assert server.server.budget.held == 0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.fuzz_postgres", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    end, seed = time.monotonic() + options.seconds, options.seed << 32
    with running() as server:
        while time.monotonic() < end:
            for _ in range(100):
                one_session(server, seed)
                one_startup(server, seed)
                seed += 1
            nothing_is_left(server)
            with server.client() as client:
                assert client.query("select 1")[1].row == [b"1"]
    print(f"{seed - (options.seed << 32)} sessions and as many startups of mutated bytes")


if __name__ == "__main__":
    main()
