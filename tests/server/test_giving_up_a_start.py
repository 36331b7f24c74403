"""A broker gets the signal to stop while it starts: it ends in order at every step, and the next start finds everything."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.config.broker import BrokerConfig
from barnabas.server import main
from barnabas.server.broker import Broker, Opened
from barnabas.signals import ending_signals
from tests.server.in_process import running

WHEN: dict[str, Callable[[Broker], object]] = {  # how far the start has come
    "at once": lambda broker: True,
    "with its logs": lambda broker: Opened.LOGS in broker._opened,
    "with the page of metrics": lambda broker: broker.http is not None,
    "with addresses": lambda broker: broker.endpoints,
    "registered": lambda broker: broker._registered,
    "with coordinators": lambda broker: Opened.COORDINATORS in broker._opened,
    "ready": lambda broker: broker.ready,
}
MOST_TURNS = 1_000_000  # turns of the event loop; a start takes some hundreds


@pytest.mark.parametrize("when", WHEN)
async def test_a_start_that_is_given_up_leaves_all_to_the_next(tmp_path: Path, when: str) -> None:
    async with running([tmp_path]) as client:
        await client.create(3)
        for index in range(3):
            assert await client.produce(b"%d" % index, index) == 0
    config, _ = BrokerConfig.from_properties({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path)})
    broker, stopping = Broker(config, asyncio.get_running_loop()), asyncio.Event()
    starting = asyncio.create_task(main._start(broker, ("127.0.0.1", 0), stopping))
    for _ in range(MOST_TURNS):
        await asyncio.sleep(0)
        if WHEN[when](broker):
            break
    assert WHEN[when](broker)
    stopping.set()
    assert await starting == broker.ready
    await broker.stop()
    async with running([tmp_path]) as client:
        assert [await client.fetch(index) for index in range(3)] == [(0, [b"%d" % index]) for index in range(3)]


async def test_a_signal_is_heard_while_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = asyncio.Event()

    async def start(self: Broker, *_: Any) -> None:
        begun.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(Broker, "start", start)
    config, _ = BrokerConfig.from_properties({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path)})
    serving = asyncio.create_task(main._serve(config, None))
    try:
        await begun.wait()
        signal.raise_signal(signal.SIGTERM)
        assert await serving == main.EXIT_OK
    finally:
        for number in ending_signals():
            asyncio.get_running_loop().remove_signal_handler(number)
