"""Our broker's answers to a client with few rights, compared with the recorded answers of Kafka: every API with every right."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from barnabas.server.api_table import SERVED
from barnabas.server.broker import Broker
from barnabas.server.guards.guard_table import ASKS_ITSELF, GUARDS
from tests.differential.rights.rights import ALICE
from tests.differential.rights.walk import SECURED, flat, load, walk
from tests.differential.runner import CONFIG
from tests.differential.talk import Address
from tests.differential.wire import KEYS, Line
from tests.server.authorization.people import guarded
from tests.waiting import WITHIN_S

SHOWN = 30
ANONYMOUS = "User:ANONYMOUS"


@contextmanager
def broker_beside(folder: Path) -> Iterator[Broker]:
    """A broker with an authorizer, on a loop of its own. A client without a log-in may do everything."""
    started: list[Broker] = []
    ready, done = threading.Event(), asyncio.Event()

    async def run() -> None:
        settings = {name.replace(".", "_"): value for name, value in (CONFIG | SECURED).items()}
        async with guarded(folder, **settings, super_users=ANONYMOUS) as people:
            people.admin.close()
            started.append(people.admin.broker)
            ready.set()
            await done.wait()

    def serve() -> None:
        try:
            asyncio.run(run())
        finally:
            ready.set()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        assert ready.wait(30)
        yield started[0]
    finally:
        if started:
            started[0].loop.call_soon_threadsafe(done.set)
        thread.join()


def connect_as(broker: Broker, principal: str) -> Line:
    """A connection that is somebody's: logins have tests of their own."""
    line = Line(("127.0.0.1", broker.endpoints[0].port))
    port = line.socket.getsockname()[1]
    named = threading.Event()

    def name() -> None:
        mine = [connection for connection in broker.connections if connection.peer_port == port]
        for connection in mine:
            connection.principal = principal
            named.set()
        if not mine:
            broker.loop.call_later(0.001, name)

    broker.loop.call_soon_threadsafe(name)
    assert named.wait(WITHIN_S)
    return line


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, str], Any]]:
    """Ours, by question and right."""
    with broker_beside(tmp_path_factory.mktemp("rights")) as broker:
        address = Address.of(f"127.0.0.1:{broker.endpoints[0].port}")
        with Line((address.host, address.port)) as admin:
            yield flat(walk(admin, lambda: connect_as(broker, ALICE), address.node_id))


def test_the_answers_are_those_of_kafka(answers: dict[tuple[str, str], Any]) -> None:
    expected = {key: answer for key, answer in load().items() if KEYS[key[0].split()[0]] in SERVED}
    assert expected.keys() <= answers.keys()
    lines = [
        f"{step} with {right}:\n  kafka {answer}\n  ours  {answers[step, right]}"
        for (step, right), answer in expected.items()
        if answers[step, right] != answer
    ]
    assert not lines, f"{len(lines)} differences\n" + "\n".join(lines[:SHOWN])


def test_every_api_is_asked() -> None:
    asked = {KEYS[step.split()[0]] for step, _ in load()}
    assert (GUARDS.keys() | ASKS_ITSELF) & SERVED <= asked
