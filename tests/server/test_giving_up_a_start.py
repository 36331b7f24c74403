"""A broker that is told to stop while it starts: whatever it is at, it ends in order, and the next start finds all."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest

from barnabas.config.broker import BrokerConfig
from barnabas.server import main
from barnabas.server.broker import Broker
from barnabas.signals import ending_signals
from tests.server.in_process import running

AFTER_TURNS = (0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89)  # of the loop


async def test_a_start_that_is_given_up_at_any_point_leaves_all_to_the_next(tmp_path: Path) -> None:
    async with running([tmp_path]) as client:
        await client.create(3)
        for index in range(3):
            assert await client.produce(b"%d" % index, index) == 0
    properties = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path)}
    for turns in AFTER_TURNS:
        config, _ = BrokerConfig.from_properties(properties)
        broker = Broker(config, asyncio.get_running_loop())
        starting, stopping = asyncio.create_task(main._start(broker, None, stop := asyncio.Event())), stop
        for _ in range(turns):
            await asyncio.sleep(0)
        stopping.set()
        await starting
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
