"""Closes listening sockets without losing clients that have just connected."""

from __future__ import annotations

import asyncio


async def close_server(loop: asyncio.AbstractEventLoop, server: asyncio.Server) -> None:
    """Close a server when all accepted connections have their protocols.

    A selector loop accepts in one turn and makes the transport in the next turn. A server that closes in between drops the socket. The
    client then waits until a garbage collection closes the socket.
    """
    if isinstance(loop, asyncio.SelectorEventLoop):
        for listening in server.sockets:
            loop.remove_reader(listening.fileno())
        await asyncio.sleep(0)
    server.close()
