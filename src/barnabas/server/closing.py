"""How listening sockets are closed without losing who has just connected."""

from __future__ import annotations

import asyncio


async def close_server(loop: asyncio.AbstractEventLoop, server: asyncio.Server) -> None:
    """Close a server when the connections that it has accepted have their protocols.

    A selector loop accepts in one turn and makes the transport in the next: a server that was closed in between drops the socket, and who
    connected waits until a garbage collection closes it.
    """
    if isinstance(loop, asyncio.SelectorEventLoop):
        for listening in server.sockets:
            loop.remove_reader(listening.fileno())
        await asyncio.sleep(0)
    server.close()
