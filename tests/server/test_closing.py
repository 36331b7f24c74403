"""A client that connects while a broker stops gets an answer."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from barnabas.config.broker import BrokerConfig
from barnabas.server.broker import Broker
from barnabas.server.http import HttpEndpoint


async def start_broker(folder: Path) -> tuple[Broker, int]:
    config, _ = BrokerConfig.from_properties({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(folder)})
    broker = Broker(config, asyncio.get_running_loop())
    await broker.start()
    return broker, broker.endpoints[0].port


async def accept(port: int) -> socket.socket:
    """A connection that is accepted in this turn of the loop, and whose transport is made in the next."""
    connected = socket.create_connection(("127.0.0.1", port))
    connected.setblocking(False)
    for _ in range(2):
        await asyncio.sleep(0)
    return connected


async def is_closed(connected: socket.socket) -> bool:
    async with asyncio.timeout(60):
        try:
            return await asyncio.get_running_loop().sock_recv(connected, 1) == b""
        except ConnectionResetError:
            return True


async def test_who_was_accepted_in_the_turn_in_which_a_broker_stops_is_closed(tmp_path: Path) -> None:
    broker, port = await start_broker(tmp_path)
    with await accept(port) as connected:
        await broker.stop()
        assert await is_closed(connected)


@pytest.mark.parametrize("turns", range(4))
async def test_who_asks_for_a_page_as_the_broker_stops_is_closed(turns: int) -> None:
    endpoint = HttpEndpoint({})
    await endpoint.start("127.0.0.1", 0)
    with await accept(endpoint.address[1]) as connected:
        for _ in range(turns):
            await asyncio.sleep(0)
        await endpoint.close()
        assert await is_closed(connected)
