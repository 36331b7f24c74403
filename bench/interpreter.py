"""The minimal server in Python: an interpreter with the broker's event loop (uvloop), which listens and sends back the bytes
that it receives.

No broker in Python can start faster or use less memory than this.
"""

from __future__ import annotations

import asyncio
import resource
from contextlib import ExitStack
from typing import cast

import uvloop

from bench.loop import Loop


class Interpreter(Loop):
    """A process with this server."""

    name = "bare interpreter"

    def _command(self, stack: ExitStack) -> list[str]:
        return ["bench.interpreter"]


class _Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's transports do not inherit from WriteTransport

    def data_received(self, data: bytes) -> None:
        self._transport.write(data)


async def _serve() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    server = await asyncio.get_running_loop().create_server(_Echo, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve())
