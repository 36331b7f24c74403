"""A server that answers every request at once with the same bytes. Its rate is the maximum of the load itself on this machine."""

from __future__ import annotations

import asyncio
import re
import sys
from typing import cast

import uvloop

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
BODY = b'{"id":1,"schemaType":"AVRO","schema":"\\"string\\""}'
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(BODY), BODY)


class Answering(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's transports do not inherit from WriteTransport

    def data_received(self, data: bytes) -> None:
        data = self._data + data
        while (end := data.find(b"\r\n\r\n") + 4) >= 4:
            length = LENGTH.search(data, 0, end)
            end += int(length[1]) if length else 0
            if len(data) < end:
                break
            self._transport.write(ANSWER)
            data = data[end:]
        self._data = data


async def serve(port: int) -> None:
    """Answer on a port of 127.0.0.1 until the process ends."""
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
