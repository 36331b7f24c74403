"""The small HTTP endpoint for operators: /metrics, /healthz, /readyz.

It serves only GET with a short head. Other requests get an error status. The endpoint closes each connection after one answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from barnabas import limits
from barnabas.server.closing import close_server

logger = logging.getLogger(__name__)
Answer = tuple[int, bytes | list[bytes]]  # status and text; a long text comes in pieces
Page = Callable[[], Answer | Awaitable[Answer]]
REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}


class HttpEndpoint:
    """Serves pages by their path.

    Args:
        pages: by path, a function that returns the status and the text, at once or in several turns of the loop.
    """

    def __init__(self, pages: dict[str, Page]) -> None:
        self._pages = pages
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self.address = ("", 0)

    async def start(self, host: str, port: int) -> None:
        """Open the address.

        Raises:
            OSError: the address is not available.
        """
        # Serve only after `_server` is set, so that `close` finds it: a start may be given up at each of its steps.
        self._server = await asyncio.start_server(self._serve, host, port, limit=limits.MAX_HTTP_HEAD_BYTES, start_serving=False)
        self.address = self._server.sockets[0].getsockname()[:2]
        await self._server.start_serving()

    async def close(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await close_server(asyncio.get_running_loop(), server)
            for writer in list(self._open):
                writer.transport.abort()
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._server is None or len(self._open) >= limits.MAX_HTTP_CONNECTIONS:
            writer.transport.abort()
            return
        self._open.add(writer)
        try:
            async with asyncio.timeout(limits.HTTP_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
            # no timeout here: the page of a large broker may take long, and its work must not be wasted
            status, text = await self._answer(head)
            pieces = [text] if isinstance(text, bytes) else text
            content = "text/plain; version=0.0.4; charset=utf-8"
            async with asyncio.timeout(limits.HTTP_TIMEOUT_S):
                writer.write(
                    f"HTTP/1.1 {status} {REASONS[status]}\r\nContent-Type: {content}\r\n"
                    f"Content-Length: {sum(map(len, pieces))}\r\nConnection: close\r\n\r\n".encode()
                )
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (TimeoutError, ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            writer.transport.abort()
        except Exception:  # a fault of the broker must not leave the connection open
            logger.exception("event=page-failed")
            writer.transport.abort()
        finally:
            self._open.discard(writer)

    async def _answer(self, head: bytes) -> Answer:
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3:
            return 400, b"not a request\n"
        if words[0] != b"GET":
            return 405, b"only GET\n"
        page = self._pages.get(words[1].split(b"?")[0].decode("latin-1"))
        if page is None:
            return 404, b"no such page\n"
        answer = page()
        return answer if isinstance(answer, tuple) else await answer
